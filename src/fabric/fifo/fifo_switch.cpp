// SPDX-License-Identifier: GPL-2.0-only
// The hot path: gather an epoch's arrivals of a switch, order them, route, send.
#include <algorithm>

#include "fabric/fifo/fifo_model.hpp"
#include "fabric/probes/waits_by_job.hpp"

namespace weft {
namespace {

constexpr std::size_t ahead = 4;  // packets; enough to hide a fetch from memory

}  // namespace

void FifoModel::run(const LocalNode& node, Time end) {
  if (node.host == no_slot)
    run_switch(node, end);
  else
    run_host(node, end);
}

void FifoModel::run_switch(const LocalNode& node, Time end) {
  arrivals_ = net_.gather(node, end);
  const std::size_t count = arrivals_.size();
  if (count == 0) return;
  if (requests_.size() < count) {
    requests_.resize(count);
    routes_.resize(count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Packet& packet = *arrivals_[i].packet;
    requests_[i] = {packet.source(), packet.destination(), packet.queue_pair};
  }
  net_.routing.route(node.id, {requests_.data(), count}, routes_.data());
  net_.clock.happen(arrivals_[count - 1].time, count);
  if (net_.cut.on_boundary(net_.clock.running)) return send_from_boundary(node);
  for (std::size_t i = 0; i < count; ++i) {
    // The queues of the next nodes are scattered in memory: prefetch them while other packets are sent.
    if (i + ahead < count) __builtin_prefetch(&net_.inputs[net_.outputs[node.first_port + routes_[i + ahead]].peer()]);
    transmit(node.first_port + routes_[i], arrivals_[i].time, *arrivals_[i].packet);
  }
}

// First the packets that stay in this process, then those that leave it: a packet's direction is random, and a branch
// for each would be mispredicted half of the times. Ports do not depend on each other, and each sends in order.
void FifoModel::send_from_boundary(const LocalNode& node) {
  const std::size_t count = arrivals_.size();
  if (staying_.size() < count) {
    staying_.resize(count);
    leaving_.resize(count);
  }
  std::size_t stay = 0;
  std::size_t leave = 0;
  for (std::size_t i = 0; i < count; ++i) {
    // As a number: from a condition the compiler would make a branch.
    const std::uint32_t leaves = net_.outputs[node.first_port + routes_[i]].peer_port / OutputPort::remote;
    staying_[stay] = leaving_[leave] = static_cast<std::uint32_t>(i);
    leave += leaves;
    stay += 1 - leaves;
  }
  for (std::size_t s = 0; s < stay; ++s) {
    if (s + ahead < stay)
      __builtin_prefetch(&net_.inputs[net_.outputs[node.first_port + routes_[staying_[s + ahead]]].peer()]);
    const std::uint32_t i = staying_[s];
    transmit(node.first_port + routes_[i], arrivals_[i].time, *arrivals_[i].packet);
  }
  for (std::size_t l = 0; l < leave; ++l) {
    const std::uint32_t i = leaving_[l];
    transmit(node.first_port + routes_[i], arrivals_[i].time, *arrivals_[i].packet);
  }
}

void FifoModel::transmit(PortId port_index, Time now, const Packet& packet) {
  LocalNetwork& net = net_;  // loaded once
  OutputPort& port = net.outputs[port_index];
  if (net.sampler.due(port, now)) net.sampler.flush(port, now, Bytes());
  Time serialization;
  Bytes wire = net.sizes.control_wire;
  if (packet.kind == PacketKind::data) {
    wire = Bytes(packet.payload) + net.sizes.data_overhead;
    serialization = Bytes(packet.payload) == net.sizes.mtu ? port.full_packet : net.sizes.odd_time(port, packet, wire);
    ++port.data_packets;
    port.payload_bytes += Bytes(packet.payload);
    if ((packet.flags & packet_last) != 0) {
      net.messages[packet.message].add_wait(port.directed_link, port.free_at - now);
      if (WaitsByJob* waits = net.observers.waits()) waits->waited(port_index, packet.source(), now, port.free_at);
    }
  } else {
    serialization = net.sizes.control_time(port, packet);
  }
  const Time start = std::max(now, port.free_at);
  port.free_at = start + serialization;
  if (net.observers.several_jobs()) [[unlikely]]
    net.observers.waits()->sent(port_index, packet.source(), start, port.free_at, now);
  ++port.packets;
  port.busy += serialization;
  port.peak_backlog = std::max(port.peak_backlog, port.free_at - now);
  port.add_wait(start - now, wire, serialization);
  if (port.tapped) [[unlikely]]
    net.observers.transmitted(port_index, start, packet);
  const Time arrival = port.free_at + port.after;
  if (!port.leaves_process()) [[likely]]
    net.push_local(port.peer(), packet, arrival, port.peer_node);
  else
    export_packet(port, packet, arrival);
}

void FifoModel::export_packet(const OutputPort& port, const Packet& packet, Time arrival) {
  Batch& batch = net_.cut.write(port, packet, arrival);
  if (!carries_descriptor(packet)) [[likely]]
    return;
  batch.append(net_.messages[packet.message]);
  net_.messages.release(packet.message);
}

void FifoModel::take_in(const CutEnd& end, Packet packet, Time arrival, std::span<const std::byte> batch,
                        std::size_t& at) {
  packet.time = arrival;
  if (carries_descriptor(packet)) packet.message = net_.messages.add(take_record<Message>(batch, at));
  if (net_.observers.observes_arrivals())
    net_.observers.arrived(end.port, packet, net_.links.latency_of(NodeId(net_.nodes.all[end.node].id)));
  net_.push_local(end.port, packet, arrival, end.node);
}

/// The port that sends packets to a local one, if their times depend on it.
OutputPort FifoModel::sender_of(PortId input) const {
  const LocalNode& node = net_.nodes.all[net_.nodes.of_port[input]];
  OutputPort port;
  port.directed_link = net_.outputs[input].directed_link ^ 1U;
  const LinkTimes times = net_.links.times(port.directed_link);
  port.after = times.delay + net_.links.latency_of(node.id);
  net_.links.set_port_times(port, times.rate);
  return port;
}

std::vector<WaitBeyond> FifoModel::settle_waits(Time end) const {
  std::vector<WaitBeyond> beyond;
  for (const PortId input : net_.nodes.ports()) {
    if (net_.inputs[input].empty()) continue;
    const OutputPort port = sender_of(input);
    unsigned __int128 sum = 0;
    net_.inputs[input].for_each([&](const Packet& packet) {
      const WireTime size = net_.sizes.wire_time(port, packet);
      const Time start = packet.time - port.after - size.busy;
      if (start > end)
        sum += static_cast<unsigned __int128>(static_cast<std::uint64_t>((start - end).ps())) *
               static_cast<std::uint64_t>(size.wire.count());
    });
    if (sum > 0) beyond.push_back({sum, port.directed_link});
  }
  return beyond;
}

}  // namespace weft
