// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/local/local_network.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "support/basics/error.hpp"

namespace weft {
namespace {

// Ties between ports are broken by a hash of (seed, ingress link, link sequence), so that no port is favoured by its
// number.
inline std::uint64_t tie_of(std::uint64_t salt, std::uint64_t sequence) {
  std::uint64_t x = salt + sequence * 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 32)) * 0xbf58476d1ce4e5b9U;
  return x ^ (x >> 29);
}

}  // namespace

LocalNetwork::LocalNetwork(const Topology& topology, const Partition& partition, int process,
                           const NetworkParameters& parameters, const RoutingAlgorithm& routing, std::uint64_t seed,
                           Drive drive, HostClient* const& client)
    : topology(topology),
      parameters(parameters),
      routing(routing),
      seed(seed),
      client(client),
      sizes(topology, this->parameters),
      nodes(topology, partition, process),
      clock(nodes, drive),
      links(topology, this->parameters, routing),
      cut(topology, partition, process, nodes) {
  WEFT_EXPECT(topology.graph.host_count() <= Packet::max_hosts, "{} hosts, packets can address {}",
              topology.graph.host_count(), Packet::max_hosts);
  outputs.resize(nodes.of_port.size());
  inputs.resize(nodes.of_port.size());
  tie_salts_.resize(nodes.of_port.size());
  heads.assign(nodes.of_port.size(), never);
  build_ports();
  cut.mark_ports(outputs);
  // The epoch is the same on every process: the least time from sending to arriving over any link of the machine. A
  // second is long enough for any epoch.
  clock.set_epoch(std::clamp(links.min_crossing(), Time::from_ps(1), Time::from_s(1)));
}

void LocalNetwork::build_ports() {
  const ClusterGraph& graph = topology.graph;
  for (const LocalNode& node : nodes.all) {
    const auto ends = graph.ports(node.id);
    for (std::uint32_t p = 0; p < node.ports; ++p) {
      const PortEnd& end = ends[p];
      const LinkProperties& link = graph.link(end.link);
      OutputPort& port = outputs[node.first_port + p];
      port.directed_link = directed(end.link, end.direction);
      port.after = link.delay + links.latency_of(end.peer);
      links.set_port_times(port, link.rate);
      // Packets that arrive through this port use the other direction of the link.
      tie_salts_[node.first_port + p] = mix64(seed ^ mix64(directed(end.link, 1U - end.direction) + 1ULL));
      const std::uint32_t peer = nodes.local_of[end.peer];
      if (peer == no_slot) continue;
      port.peer_node = peer;
      port.peer_port = (nodes.all[peer].first_port + end.peer_port).value();
    }
  }
}

void LocalNetwork::push_into_new_block(PortId port_index, const Packet& packet, Time arrival, std::uint32_t node) {
  // A packet waits for all that has been committed before it, so its arrival may be as far ahead as all of them take.
  // Packets of a block are few, and each takes Time::longest_wait() at most: only the first one of a block can exceed
  // 63 bits, and then it looks negative.
  if (static_cast<std::uint64_t>(arrival.ps()) >= static_cast<std::uint64_t>(Time::limit().ps()))
    throw TimeLimitError(fmt::format("packets wait too long at {}", topology.graph.name(NodeId(nodes.all[node].id))));
  inputs[port_index].add_block(blocks);
  push_local(port_index, packet, arrival, node);
}

bool LocalNetwork::arrives_before(const Arrival& a, const Arrival& b) const {
  if (a.time != b.time) [[likely]]
    return a.time < b.time;
  // Links of one node differ, and packets of one link differ in time: the link decides if even the hashes are equal.
  const std::uint64_t tie_a = tie_of(tie_salts_[a.port], a.sequence);
  const std::uint64_t tie_b = tie_of(tie_salts_[b.port], b.sequence);
  return tie_a != tie_b ? tie_a < tie_b : a.port < b.port;
}

const ArrivalOrder& LocalNetwork::collect(const LocalNode& node, Time end) {
  order_.clear();
  for (PortId p = node.first_port; p < node.end_port(); ++p) {
    if (heads[p] >= end) continue;
    PacketQueue& queue = inputs[p];
    Arrival* at = order_.begin_run(queue.size());
    queue.pop_before(end, blocks, [&at, p](Packet& packet, std::uint64_t sequence) {
      // Field by field: an Arrival that was put together first would be read back in wider loads than its stores.
      at->time = packet.time;
      at->sequence = sequence;
      at->packet = &packet;
      at->port = p;
      ++at;
    });
    order_.end_run(at);
    heads[p] = queue.empty() ? never : queue.front().time;
  }
  return order_;
}

std::span<const Arrival> LocalNetwork::in_order() {
  return order_.sorted([this](const Arrival& a, const Arrival& b) { return arrives_before(a, b); });
}

ArrivalOrder& LocalNetwork::by_port(std::span<const std::uint16_t> routes, std::size_t ports) {
  order_.deal_out(routes, ports, [this](const Arrival& a, const Arrival& b) { return arrives_before(a, b); });
  return order_;
}

std::uint64_t LocalNetwork::memory_bytes() const {
  std::uint64_t bytes = nodes.all.capacity() * sizeof(LocalNode) +
                        outputs.capacity() * (sizeof(OutputPort) + sizeof(PacketQueue) + 2 * sizeof(Time));
  return bytes + blocks.memory() + observers.memory_bytes();
}

}  // namespace weft
