// SPDX-License-Identifier: GPL-2.0-only
// Times of one direction of each link of the machine, also where they differ from the topology.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "fabric/client/link_counters.hpp"
#include "fabric/packet/port.hpp"
#include "fabric/parameters/network_parameters.hpp"
#include "graph/topology/topology_builder.hpp"
#include "routing/algorithm/routing_algorithm.hpp"
#include "transport/messages/ideal_time.hpp"

namespace weft {

class ProcessGroup;

class LinkTable {
 public:
  LinkTable(const Topology& topology, const NetworkParameters& parameters, const RoutingAlgorithm& routing)
      : topology_(topology), parameters_(parameters), routing_(routing) {}

  LinkTimes times(std::uint32_t directed_link) const;
  /// The latency of a node as a switch: from the arrival of a packet until it is at an output.
  Time latency_of(NodeId node) const { return parameters_.latency_of(topology_.graph.node(node)); }
  /// The shortest time from sending to arrival over one direction of a link with these times.
  Time min_crossing(std::uint32_t directed_link, const LinkTimes& times) const;
  /// The same over all links of the machine.
  Time min_crossing() const;
  /// Time from the first bit of a packet that arrives at `rate` until `node` can begin to send it; 0 if the node stores
  /// packets.
  Time head_time(NodeId node, Bandwidth rate) const;
  void set_port_times(OutputPort& port, Bandwidth rate) const;

  /// Payload of a full packet between two hosts.
  Bytes mtu(NodeId source, NodeId destination) const {
    return parameters_.mtu_between(topology_.graph.node(source), topology_.graph.node(destination));
  }
  /// Number of the path of a queue pair among those that differ.
  std::uint32_t profile_of_path(NodeId source, NodeId destination, std::uint32_t queue_pair);
  const std::vector<PathLink>& profile(std::uint32_t number) const { return profiles_[number]; }
  /// The directed link by which the packets of a queue pair come to their destination. In a server it is the slowest
  /// one on the way from the network to the host, which is that of the NIC's port, or on the way from another host
  /// inside.
  std::uint32_t way_in(NodeId source, NodeId destination, std::uint32_t queue_pair) const;
  /// The slowest directed link on the way from the host out of its server, including that of the NIC, or all the way to
  /// another host inside.
  std::uint32_t way_out(NodeId source, NodeId destination, std::uint32_t queue_pair) const;
  /// Time of a data packet of `payload` bytes on a directed link.
  Time packet_time(std::uint32_t directed_link, Bytes payload) const;

  // Changes, before the run -------------------------------------------------------------------------------------------
  /// The other processes do not know of it until settle().
  void change(std::uint32_t directed_link, const LinkTimes& times);
  /// Collective: gives `apply` the changes of all other processes since the last call. Throws InputError if two
  /// processes have changed one direction of a link differently.
  void settle(ProcessGroup& group, const std::function<void(std::uint32_t, const LinkTimes&)>& apply);
  void close() { closed_ = true; }
  bool closed() const { return closed_; }

 private:
  /// A host, or a node in a server.
  bool is_end(NodeId node) const { return topology_.graph.is_host(node) || topology_.graph.node(node).in_server; }
  /// Calls visit(PortEnd) for each hop of a queue pair.
  template <class Visit>
  void follow(NodeId source, NodeId destination, std::uint32_t queue_pair, const Visit& visit) const;

  const Topology& topology_;
  const NetworkParameters& parameters_;
  const RoutingAlgorithm& routing_;
  std::map<std::uint32_t, LinkTimes> changed_;    // directed links that differ from the topology
  std::map<std::uint32_t, LinkTimes> unsettled_;  // those that the other processes do not know of
  bool closed_ = false;
  std::vector<std::vector<PathLink>> profiles_;
};

}  // namespace weft
