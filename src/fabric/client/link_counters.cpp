// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/client/link_counters.hpp"

namespace weft {

std::vector<LinkCounters> counters_of_links(const ClusterGraph& graph, const Partition& partition, int process) {
  std::vector<LinkCounters> result;
  for (std::uint32_t node = 0; node < graph.node_count(); ++node) {
    if (partition.owner[node] != process) continue;
    const auto ports = graph.ports(NodeId(node));
    for (std::uint32_t port = 0; port < ports.size(); ++port) {
      const LinkProperties& link = graph.link(ports[port].link);
      LinkCounters& counters = result.emplace_back();
      counters.directed_link = directed(ports[port].link, ports[port].direction);
      counters.from = NodeId(node);
      counters.to = ports[port].peer;
      counters.from_port = port;
      counters.times = {link.rate, link.delay};
    }
  }
  return result;
}

}  // namespace weft
