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

  /// Number of the path of a queue pair among those that differ.
  std::uint32_t profile_of_path(NodeId source, NodeId destination, std::uint32_t queue_pair);
  const std::vector<PathLink>& profile(std::uint32_t number) const { return profiles_[number]; }

  // Changes, before the run -------------------------------------------------------------------------------------------
  /// The other processes do not know of it until settle().
  void change(std::uint32_t directed_link, const LinkTimes& times);
  /// Collective: gives `apply` the changes of all other processes since the last call. Throws InputError if two
  /// processes have changed one direction of a link differently.
  void settle(ProcessGroup& group, const std::function<void(std::uint32_t, const LinkTimes&)>& apply);
  void close() { closed_ = true; }
  bool closed() const { return closed_; }

 private:
  const Topology& topology_;
  const NetworkParameters& parameters_;
  const RoutingAlgorithm& routing_;
  std::map<std::uint32_t, LinkTimes> changed_;    // directed links that differ from the topology
  std::map<std::uint32_t, LinkTimes> unsettled_;  // those that the other processes do not know of
  bool closed_ = false;
  std::vector<std::vector<PathLink>> profiles_;
};

}  // namespace weft
