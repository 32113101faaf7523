// SPDX-License-Identifier: GPL-2.0-only
// Which nodes of the machine a process holds, and how they and their ports are numbered here.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/partition/partition.hpp"
#include "graph/topology/topology_builder.hpp"
#include "transport/messages/message.hpp"
#include "units/port_id.hpp"

namespace weft {

struct LocalNode {
  NodeId id;
  PortId first_port;
  std::uint32_t ports = 0;
  std::uint32_t host = no_slot;  ///< of a host: its position among the hosts of this process

  ConsecutivePorts all_ports() const { return {first_port, ports}; }
  PortId end_port() const { return first_port + ports; }
};

/// Nodes and ports are numbered from 0 in each process, in the order of the machine.
struct LocalNodes {
  LocalNodes(const Topology& topology, const Partition& partition, int process);

  std::vector<LocalNode> all;
  PerNode<std::vector<std::uint32_t>> local_of;  ///< [nodes of the machine] -> position in `all`, or no_slot
  std::vector<NodeId> hosts;                     ///< of this process
  PerPort<std::vector<std::uint32_t>> of_port;   ///< [local ports] -> position in `all`

  bool owns(NodeId node) const { return local_of[node] != no_slot; }
  ConsecutivePorts ports() const { return {PortId(0), static_cast<std::uint32_t>(of_port.size())}; }
  const LocalNode& of_host(NodeId host) const { return all[local_of[host]]; }
  /// Local port of a port of a node that is here; an InternalError otherwise.
  PortId port(NodeId node, std::uint32_t port) const;
};

}  // namespace weft
