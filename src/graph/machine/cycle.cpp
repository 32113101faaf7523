// SPDX-License-Identifier: GPL-2.0-only
#include "graph/machine/cycle.hpp"

#include <algorithm>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/strong_components.hpp>

namespace weft {
namespace {

// A set of neighbours in ascending order: the first cycle found does not depend on the order of the edges.
using DirectedGraph = boost::adjacency_list<boost::setS, boost::vecS, boost::directedS>;

// Shortest way from `start` back to itself; empty if there is none.
std::vector<std::size_t> cycle_through(const DirectedGraph& graph, std::size_t start) {
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

std::vector<std::size_t> shortest_cycle(std::size_t vertices,
                                        const std::vector<std::pair<std::size_t, std::size_t>>& edges) {
  DirectedGraph graph(edges.begin(), edges.end(), vertices);
  // Only within a strongly connected component is there a cycle.
  std::vector<std::size_t> component(vertices);
  std::vector<std::size_t> size(boost::strong_components(graph, component.data()), 0);
  for (const std::size_t c : component) ++size[c];
  std::vector<std::size_t> best;
  for (std::size_t start = 0; start < vertices; ++start) {
    if (size[component[start]] < 2 && !boost::edge(start, start, graph).second) continue;
    auto cycle = cycle_through(graph, start);
    if (!cycle.empty() && (best.empty() || cycle.size() < best.size())) best = std::move(cycle);
  }
  return best;
}

}  // namespace weft
