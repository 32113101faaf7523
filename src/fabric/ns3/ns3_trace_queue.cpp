// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/ns3/ns3_trace_queue.hpp"

#include <algorithm>
#include <tuple>

#include <ns3/node.h>
#include <ns3/simulator.h>

#include "engine/parallel_simulator_impl.hpp"
#include "fabric/ns3/ns3_port_device.hpp"
#include "fabric/ns3/pcap_tap.hpp"

namespace weft {

Ns3TraceQueue::Ns3TraceQueue(Fabric& fabric) : fabric_(fabric) {
  if (fabric.drive() == Fabric::Drive::epochs) fabric.set_after_advance([this](Time end) { deliver(end); });
}

Ns3TraceQueue::~Ns3TraceQueue() { fabric_.set_after_advance(nullptr); }

bool Ns3TraceQueue::later(const Entry& a, const Entry& b) {
  return std::tie(a.at, a.node, a.port, a.event, a.number) > std::tie(b.at, b.node, b.port, b.event, b.number);
}

void Ns3TraceQueue::fire(const Entry& entry) {
  ns3::Ptr<const ns3::Packet> frame = entry.frame;
  if (!frame) {
    const auto bytes = roce_frame(entry.packet);
    frame = ns3::Create<ns3::Packet>(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
  }
  entry.device->trace(entry.event, frame);
}

void Ns3TraceQueue::add(Time at, ns3::Ptr<FabricPortDevice> device, PortEvent event, const Packet& packet,
                        ns3::Ptr<const ns3::Packet> frame) {
  Entry entry{at, device->place().node.value(), device->place().port, event, added_++, device, packet, frame};
  if (fabric_.drive() == Fabric::Drive::ns3_events) {
    const ns3::Time delay = ns3::TimeStep(static_cast<std::uint64_t>(at.ps())) - ns3::Simulator::Now();
    ns3::Simulator::ScheduleWithContext(device->GetNode()->GetId(), delay, [entry] { fire(entry); });
    return;
  }
  heap_.push_back(std::move(entry));
  std::push_heap(heap_.begin(), heap_.end(), &later);
}

void Ns3TraceQueue::deliver(Time end) {
  if (heap_.empty() || heap_.front().at >= end) return;
  const auto engine = ns3::DynamicCast<ParallelSimulatorImpl>(ns3::Simulator::GetImplementation());
  while (!heap_.empty() && heap_.front().at < end) {
    std::pop_heap(heap_.begin(), heap_.end(), &later);
    const Entry entry = std::move(heap_.back());
    heap_.pop_back();
    if (entry.device->place().fabric == nullptr) continue;  // disposed of
    engine->enter(entry.device->GetNode()->GetId(), entry.at);
    fire(entry);
  }
}

}  // namespace weft
