// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/local/local_nodes.hpp"

#include "support/basics/contract.hpp"

namespace weft {

LocalNodes::LocalNodes(const Topology& topology, const Partition& partition, int process) {
  const ClusterGraph& graph = topology.graph;
  local_of.assign(graph.node_count(), no_slot);
  std::uint32_t ports = 0;
  for (const NodeId id : graph.nodes()) {
    if (partition.owner[id.value()] != process) continue;
    LocalNode node;
    node.id = id;
    node.first_port = PortId(ports);
    node.ports = static_cast<std::uint32_t>(graph.ports(id).size());
    ports += node.ports;
    if (graph.is_host(id)) {
      node.host = static_cast<std::uint32_t>(hosts.size());
      hosts.push_back(id);
    }
    local_of[id] = static_cast<std::uint32_t>(all.size());
    all.push_back(node);
    of_port.insert(of_port.end(), node.ports, local_of[id]);
  }
}

PortId LocalNodes::port(NodeId node, std::uint32_t port) const {
  const std::uint32_t local = local_of[node];
  WEFT_EXPECT(local != no_slot && port < all[local].ports, "port {} of node {} is not here", port, node.value());
  return all[local].first_port + port;
}

}  // namespace weft
