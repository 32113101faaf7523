// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/ns3/ns3_view.hpp"

#include <utility>

#include <fmt/format.h>
#include <ns3/make-event.h>
#include <ns3/names.h>
#include <ns3/simulator.h>

#include "engine/parallel_simulator_impl.hpp"
#include "support/basics/contract.hpp"

namespace weft {

Ns3View::Ns3View(Fabric& fabric, const Topology& topology)
    : fabric_(fabric), graph_(topology.graph), hosts_(topology.graph.host_count()) {
  for (std::uint32_t n = 0; n < graph_.node_count(); ++n)
    WEFT_EXPECT(!ns3::Names::Find<ns3::Object>(graph_.plain_name(NodeId(n))), "an ns-3 object is named {} already",
                graph_.plain_name(NodeId(n)));
  traces_ = std::make_unique<Ns3TraceQueue>(fabric);
  nodes_.resize(graph_.node_count());
  first_device_.assign(graph_.node_count(), 0);
  for (std::uint32_t n = 0; n < graph_.node_count(); ++n)
    if (fabric.owns(NodeId(n))) add_node(fabric, NodeId(n));
  for (std::uint32_t l = 0; l < graph_.link_count(); ++l) connect(fabric, LinkId(l));
}

Ns3View::~Ns3View() {
  if (frames_ != nullptr) frames_->set_receiver(nullptr);
  for (const auto& device : devices_) device->detach();
  for (const auto& channel : channels_) channel->detach();
  // Names of one object cannot be taken back alone.
  ns3::Names::Clear();
}

void Ns3View::carry_packets() {
  frames_ = &fabric_.carry_frames();
  frames_->set_receiver([this](FrameTable::Arrival arrival) { expect(std::move(arrival)); });
}

void Ns3View::expect(FrameTable::Arrival arrival) {
  const ns3::Ptr<FabricPortDevice> device = this->device(NodeId(arrival.host), 0);
  const std::uint32_t context = device->GetNode()->GetId();
  const auto received = [frames = frames_, device, frame = arrival.frame, bytes = arrival.bytes] {
    frames->count_delivered(bytes);
    device->receive(frame);
  };
  if (fabric_.drive() == Fabric::Drive::ns3_events) {
    const ns3::Time delay = ns3::TimeStep(static_cast<std::uint64_t>(arrival.time.ps())) - ns3::Simulator::Now();
    ns3::Simulator::ScheduleWithContext(context, delay, received);
    return;
  }
  const auto engine = ns3::DynamicCast<ParallelSimulatorImpl>(ns3::Simulator::GetImplementation());
  engine->schedule_arrival(context, arrival.time, arrival.port, ns3::MakeEvent(received));
}

void Ns3View::add_node(Fabric& fabric, NodeId id) {
  const std::string name = graph_.plain_name(id);
  const auto node = ns3::CreateObject<ns3::Node>(ns3::Simulator::GetSystemId());
  ns3::Names::Add(name, node);
  nodes_[id.value()] = node;
  first_device_[id.value()] = static_cast<std::uint32_t>(devices_.size());
  const auto ends = graph_.ports(id);
  for (std::uint32_t port = 0; port < ends.size(); ++port) {
    PortPlace place{&fabric,
                    id,
                    port,
                    graph_.is_host(id),
                    fmt::format("{}:{}", name, port),
                    directed(ends[port].link, ends[port].direction)};
    devices_.push_back(ns3::CreateObject<FabricPortDevice>(std::move(place), *traces_));
    node->AddDevice(devices_.back());
  }
}

void Ns3View::connect(Fabric& fabric, LinkId id) {
  const ns3::Ptr<FabricPortDevice> ends[2] = {end_of(id, 0), end_of(id, 1)};
  if (!ends[0] && !ends[1]) return;
  const auto channel = ns3::CreateObject<FabricChannel>(fabric, id);
  channels_.push_back(channel);
  for (unsigned i = 0; i < 2; ++i) {
    if (!ends[i]) continue;
    ends[i]->set_channel(channel);
    ends[i]->set_peer(ns3::PeekPointer(ends[1 - i]));
    channel->attach(ends[i]);
  }
}

ns3::Ptr<FabricPortDevice> Ns3View::end_of(LinkId id, unsigned i) const {
  const LinkProperties& link = graph_.link(id);
  return device(link.ends[i], link.ports[i]);
}

ns3::NetDeviceContainer Ns3View::ends(LinkId link) const {
  ns3::NetDeviceContainer result;
  for (unsigned i = 0; i < 2; ++i)
    if (const auto device = end_of(link, i)) result.Add(device);
  return result;
}

ns3::Ptr<FabricPortDevice> Ns3View::device(NodeId node, std::uint32_t port) const {
  if (!nodes_[node.value()]) return nullptr;
  return devices_.at(first_device_[node.value()] + port);
}

ns3::NodeContainer Ns3View::between(std::uint32_t first, std::uint32_t end) const {
  ns3::NodeContainer result;
  for (std::uint32_t n = first; n < end; ++n)
    if (nodes_[n]) result.Add(nodes_[n]);
  return result;
}

}  // namespace weft
