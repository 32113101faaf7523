// SPDX-License-Identifier: GPL-2.0-only
// What is read from the fabric when a run has ended.
#include <algorithm>
#include <cstring>
#include <utility>

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
      WEFT_EXPECT(port.packets == inputs_[port.peer_port].taken(), "link {}: {} packets sent, {} received",
                  port.directed_link, port.packets, inputs_[port.peer_port].taken());
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
      WEFT_EXPECT(port.packets == received, "link {}: {} packets sent, {} received", port.directed_link, port.packets,
                  received);
    }
  }
  WEFT_EXPECT(messages_.live() == 0, "{} messages have not been delivered", messages_.live());
}

}  // namespace weft
