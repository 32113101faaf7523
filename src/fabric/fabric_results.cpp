// SPDX-License-Identifier: GPL-2.0-only
// What is read from the fabric when a run has ended.
#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/buffered_state.hpp"
#include "fabric/fabric.hpp"
#include "support/contract.hpp"

namespace weft {

std::uint64_t Fabric::packet_hops() const {
  std::uint64_t total = 0;
  for (const OutputPort& port : outputs_) total += port.packets;
  return total;
}

std::vector<LinkCounters> Fabric::link_counters() const {
  std::vector<LinkCounters> result;
  result.reserve(outputs_.size());
  for (const Node& node : nodes_) {
    const auto ends = topology_.graph.ports(NodeId(node.id));
    for (std::uint32_t p = 0; p < node.ports; ++p) {
      const OutputPort& port = outputs_[node.first_port + p];
      LinkCounters counters;
      counters.directed_link = port.directed_link;
      counters.from = NodeId(node.id);
      counters.to = ends[p].peer;
      counters.from_port = p;
      counters.bytes = port.payload_bytes + static_cast<std::int64_t>(port.data_packets) * data_overhead_ +
                       static_cast<std::int64_t>(port.packets - port.data_packets) * control_wire_;
      counters.payload_bytes = port.payload_bytes;
      counters.packets = port.packets;
      counters.data_packets = port.data_packets;
      counters.busy_ps = port.busy;
      // Unsent work in ps times the rate: exact, in whole bytes.
      if (buffered_) counters.bytes = buffered_->ports[node.first_port + p].wire_bytes;
      counters.peak_queue_bytes =
          static_cast<std::int64_t>(static_cast<__int128>(port.peak_backlog) * port.rate_bps / 8'000'000'000'000);
      counters.queue_byte_ps = static_cast<double>(port.waited);
      counters.times = link_times(port.directed_link);
      if (!others_.empty()) {
        counters.other_packets = others_[node.first_port + p].packets;
        counters.other_bytes = others_[node.first_port + p].bytes;
      }
      result.push_back(counters);
    }
  }
  return result;
}

std::vector<PortSample> Fabric::take_samples(Time end) {
  if (sampling_ == 0) return {};
  // One boundary at or after the end closes the last interval.
  return take_closed_samples(Time::from_ps((end.ps() + sampling_ - 1) / sampling_ * sampling_));
}

std::vector<PortSample> Fabric::take_closed_samples(Time now) {
  for (OutputPort& port : outputs_)
    if (now.ps() >= port.next_sample) flush_samples(port, now.ps());
  return std::exchange(samples_, {});
}

bool Fabric::idle() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [this](const Node& node) { return node_next_time(node) == never; });
}

void Fabric::check_conservation(ProcessGroup& group) {
  for (const Node& node : nodes_) {
    for (std::uint32_t p = node.first_port; p < node.first_port + node.ports; ++p) {
      WEFT_EXPECT(inputs_[p].empty(), "node {} port {}: {} packets have not been received", node.id,
                  p - node.first_port, inputs_[p].size());
      const OutputPort& port = outputs_[p];
      if ((port.peer_port & OutputPort::remote) != 0) continue;
      WEFT_EXPECT(packets_delivered(p) == inputs_[port.peer_port].taken(), "link {}: {} packets delivered, {} received",
                  port.directed_link, packets_delivered(p), inputs_[port.peer_port].taken());
    }
  }
  // Cut links: tell every neighbour how many packets came in over each of them.
  for (std::size_t n = 0; n < neighbours_.size(); ++n) {
    outgoing_[n].clear();
    for (const std::uint32_t port : neighbours_[n].incoming_port) {
      const std::uint64_t taken = inputs_[port].taken();
      const auto* bytes = reinterpret_cast<const std::byte*>(&taken);
      outgoing_[n].insert(outgoing_[n].end(), bytes, bytes + sizeof(taken));
    }
  }
  group.exchange(neighbour_processes_, outgoing_, incoming_);
  for (std::size_t n = 0; n < neighbours_.size(); ++n) {
    outgoing_[n].clear();
    for (std::size_t i = 0; i < neighbours_[n].outgoing_port.size(); ++i) {
      std::uint64_t received = 0;
      std::memcpy(&received, incoming_[n].data() + i * sizeof(received), sizeof(received));
      const OutputPort& port = outputs_[neighbours_[n].outgoing_port[i]];
      const std::uint64_t delivered = packets_delivered(neighbours_[n].outgoing_port[i]);
      WEFT_EXPECT(delivered == received, "link {}: {} packets delivered, {} received", port.directed_link, delivered,
                  received);
    }
  }
  WEFT_EXPECT(messages_.live() == 0, "{} messages have not been delivered", messages_.live());
  if (buffered_) check_nodes();
}

// Packets that went into a link less those that it has lost.
std::uint64_t Fabric::packets_delivered(std::uint32_t port) const {
  return outputs_[port].packets - (buffered_ ? buffered_->ports[port].lost : 0);
}

// What came into a switch left it or was dropped, its memory is free, and no class of a port holds anything.
void Fabric::check_nodes() const {
  const BufferedState& state = *buffered_;
  for (const Node& node : nodes_) {
    std::uint64_t in = 0;
    std::uint64_t out = 0;
    for (std::uint32_t p = node.first_port; p < node.first_port + node.ports; ++p) {
      in += inputs_[p].taken();
      out += outputs_[p].packets;
      for (std::uint32_t lane = 0; lane < state.plan.count; ++lane) {
        const ClassQueue& queue = state.queue_of(p, lane);
        out += queue.dropped;
        WEFT_EXPECT(queue.bytes == 0 && queue.queue.empty(), "node {} port {} lane {}: {} bytes wait", node.id,
                    p - node.first_port, lane, queue.bytes);
      }
    }
    if (node.host != no_slot) continue;
    WEFT_EXPECT(in == out, "node {}: {} packets in, {} out or dropped", node.id, in, out);
    const std::uint32_t buffer = state.buffer_of[local_of_[node.id]];
    if (buffer == no_slot) continue;
    for (std::uint32_t queue = 0; queue < node.ports * state.plan.count; ++queue)
      WEFT_EXPECT(state.buffers[buffer].held(queue) == 0, "node {}: {} bytes of ingress queue {} are held", node.id,
                  state.buffers[buffer].held(queue), queue);
    WEFT_EXPECT(state.buffers[buffer].shared_used() == 0, "node {}: {} shared bytes are held", node.id,
                state.buffers[buffer].shared_used());
  }
  WEFT_EXPECT(state.telemetry.live() == 0, "{} telemetry records are held", state.telemetry.live());
}

}  // namespace weft
