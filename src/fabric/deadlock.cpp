// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/deadlock.hpp"

#include <algorithm>
#include <map>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/strong_components.hpp>

namespace weft {
namespace {

using WaitGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

// Shortest way from `start` back to itself; empty if there is none.
std::vector<std::size_t> shortest_cycle(const WaitGraph& graph, std::size_t start) {
  constexpr std::size_t nobody = ~std::size_t{0};
  std::vector<std::size_t> before(boost::num_vertices(graph), nobody);
  boost::breadth_first_search(
      graph, start,
      boost::visitor(boost::make_bfs_visitor(boost::record_predecessors(before.data(), boost::on_tree_edge()))));
  std::vector<std::size_t> best;
  for (std::size_t last = 0; last < before.size(); ++last) {
    if ((last != start && before[last] == nobody) || !boost::edge(last, start, graph).second) continue;
    std::vector<std::size_t> cycle;
    for (std::size_t at = last; at != start; at = before[at]) cycle.push_back(at);
    cycle.push_back(start);
    std::reverse(cycle.begin(), cycle.end());
    if (best.empty() || cycle.size() < best.size()) best = std::move(cycle);
  }
  return best;
}

}  // namespace

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
  WaitGraph graph(lanes.size());
  for (const WaitEdge& edge : edges) boost::add_edge(number.at(edge.from), number.at(edge.to), graph);
  // Only within a strongly connected component is there a circle.
  std::vector<std::size_t> component(lanes.size());
  const std::size_t count = boost::strong_components(graph, component.data());
  std::vector<std::size_t> size(count, 0);
  for (const std::size_t c : component) ++size[c];
  std::vector<std::size_t> best;
  for (std::size_t start = 0; start < lanes.size(); ++start) {
    if (size[component[start]] < 2 && !boost::edge(start, start, graph).second) continue;
    auto cycle = shortest_cycle(graph, start);
    if (!cycle.empty() && (best.empty() || cycle.size() < best.size())) best = std::move(cycle);
  }
  std::vector<LinkLane> result;
  for (const std::size_t at : best) result.push_back(lanes[at]);
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
