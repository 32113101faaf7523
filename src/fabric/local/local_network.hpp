// SPDX-License-Identifier: GPL-2.0-only
// Data that both models of ports work on: the nodes, ports and links of one process, and packets between them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "fabric/client/host_client.hpp"
#include "fabric/local/cut_codec.hpp"
#include "fabric/local/earlier_rates.hpp"
#include "fabric/local/link_table.hpp"
#include "fabric/local/local_nodes.hpp"
#include "fabric/local/node_clock.hpp"
#include "fabric/local/packet_sizes.hpp"
#include "fabric/local/port_observers.hpp"
#include "fabric/local/port_sampler.hpp"
#include "fabric/packet/arrival_order.hpp"
#include "fabric/packet/packet_queue.hpp"
#include "fabric/packet/port.hpp"
#include "fabric/parameters/network_parameters.hpp"
#include "support/system/huge_pages.hpp"
#include "transport/messages/message.hpp"

namespace weft {

/// Plain data with what every packet-hop does to it. Links over the cut end in batches for the neighbour processes.
class LocalNetwork {
 public:
  static constexpr Time never = Time::max();

  LocalNetwork(const Topology& topology, const Partition& partition, int process, const NetworkParameters& parameters,
               const RoutingAlgorithm& routing, std::uint64_t seed, Drive drive, HostClient* const& client);

  const Topology& topology;
  NetworkParameters parameters;
  const RoutingAlgorithm& routing;
  const std::uint64_t seed;
  HostClient* const& client;  ///< the software of hosts; set before the run

  PacketSizes sizes;
  LocalNodes nodes;
  NodeClock clock;
  LinkTable links;
  CutCodec cut;
  PerPort<HugeVector<OutputPort>> outputs;  ///< [local ports]
  PacketBlocks blocks;                      ///< of all inputs
  PerPort<HugeVector<PacketQueue>> inputs;  ///< [local ports]: packets on their way to this node through that port
  PerPort<HugeVector<Time>> heads;          ///< [local ports]: arrival time of the first of them, or never
  MessagePool messages;
  EarlierRates rates;
  PortSampler sampler{rates};
  PortObservers observers;
  bool fetches_ahead = false;  ///< what an epoch touches does not fit the second cache

  /// A packet is on its way to a local port, behind those that are.
  // A call with the same arguments at the end, so that no register is saved for the common case.
  void push_local(PortId port_index, const Packet& packet, Time arrival, std::uint32_t node) {
    PacketQueue& queue = inputs[port_index];
    if (queue.needs_block()) [[unlikely]]
      return push_into_new_block(port_index, packet, arrival, node);
    const bool first = queue.empty();
    queue.push(packet, arrival);
    if (first) heads[port_index] = arrival;
    clock.note_arrival(node, arrival, first);
  }
  /// Takes the packets that arrive at a node before `end` out of its queues, in order. They stay readable in their
  /// blocks until the node is done, the order until the next call.
  std::span<const Arrival> gather(const LocalNode& node, Time end) {
    collect(node, end);
    return in_order();
  }
  /// The first half of gather(): they are in order port by port.
  const ArrivalOrder& collect(const LocalNode& node, Time end);
  /// The second half: all in order.
  std::span<const Arrival> in_order();
  /// Instead of it: those in order that leave by the same port. `routes`: of each collected one.
  ArrivalOrder& by_port(std::span<const std::uint16_t> routes, std::size_t ports);
  /// When the first packet arrives at a node, or never.
  Time next_arrival(const LocalNode& node) const {
    Time next = never;
    for (PortId p = node.first_port; p < node.end_port(); ++p) next = heads[p] < next ? heads[p] : next;
    return next;
  }
  std::uint64_t memory_bytes() const;

 private:
  void build_ports();
  void push_into_new_block(PortId port_index, const Packet& packet, Time arrival, std::uint32_t node);
  bool arrives_before(const Arrival& a, const Arrival& b) const;

  PerPort<std::vector<std::uint64_t>> tie_salts_;  // [local ports]: from the seed and the directed link that ends there
  ArrivalOrder order_;
};

}  // namespace weft
