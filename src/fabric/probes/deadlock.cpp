// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/probes/deadlock.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "graph/machine/cycle.hpp"

namespace weft {

std::vector<LinkLane> find_waiting_cycle(std::vector<WaitEdge> edges) {
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  std::map<LinkLane, std::size_t> number;
  for (const WaitEdge& edge : edges) {
    number.emplace(edge.from, 0);
    number.emplace(edge.to, 0);
  }
  std::vector<LinkLane> lanes;
  for (auto& [lane, index] : number) {
    index = lanes.size();
    lanes.push_back(lane);
  }
  std::vector<std::pair<std::size_t, std::size_t>> waits;
  for (const WaitEdge& edge : edges) waits.emplace_back(number.at(edge.from), number.at(edge.to));
  std::vector<LinkLane> result;
  for (const std::size_t at : shortest_cycle(lanes.size(), waits)) result.push_back(lanes[at]);
  return result;
}

std::string describe_cycle(const std::vector<LinkLane>& cycle, const ClusterGraph& graph) {
  std::string text;
  for (const LinkLane& hop : cycle) {
    const LinkProperties& link = graph.link(LinkId(hop.directed_link / 2));
    text +=
        graph.name(link.ends[hop.directed_link % 2]) + ":" + std::to_string(link.ports[hop.directed_link % 2]) + " -> ";
  }
  if (!cycle.empty()) {
    const LinkProperties& link = graph.link(LinkId(cycle.front().directed_link / 2));
    text += graph.name(link.ends[cycle.front().directed_link % 2]);
  }
  return text;
}

}  // namespace weft
