// SPDX-License-Identifier: GPL-2.0-only
// How far the hosts of a machine are from each other.
#include "graph/machine/distances.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace weft {
namespace {

constexpr std::uint32_t unseen = std::numeric_limits<std::uint32_t>::max();

/// Nodes other than hosts, and hosts that hang on no switch, in one array of neighbours each (parallel links repeat).
class Searcher {
 public:
  explicit Searcher(const ClusterGraph& graph) : graph_(graph), hops_(graph.node_count()), paths_(graph.node_count()) {
    const std::uint32_t nodes = graph.node_count();
    begin_.reserve(nodes + 1);
    leaves_.assign(nodes, 0);
    for (std::uint32_t node = 0; node < nodes; ++node) {
      begin_.push_back(static_cast<std::uint32_t>(neighbours_.size()));
      for (const PortEnd& port : graph.ports(NodeId(node))) {
        if (is_leaf(port.peer))
          ++leaves_[node];
        else if (!is_leaf(NodeId(node)))
          neighbours_.push_back(port.peer.value());
      }
    }
    begin_.push_back(static_cast<std::uint32_t>(neighbours_.size()));
  }

  std::uint64_t steps() const { return neighbours_.size() + graph_.node_count(); }
  /// Hosts of one link to a switch: nothing goes through them, so that they are counted at their switch.
  bool is_leaf(NodeId node) const {
    const auto ports = graph_.ports(node);
    return graph_.is_host(node) && ports.size() == 1 && !graph_.is_host(ports.front().peer);
  }
  /// Hosts that are represented by a node: those that hang on it, or itself.
  std::uint32_t hosts_at(std::uint32_t node) const {
    if (!graph_.is_host(NodeId(node))) return leaves_[node];
    return is_leaf(NodeId(node)) ? 0 : 1;
  }

  void add_pairs_from(std::uint32_t source, HostDistances& result) {
    search(source);
    const std::uint64_t sources = hosts_at(source);
    for (const std::uint32_t node : order_) {
      const std::uint64_t targets = hosts_at(node) - (node == source ? 1 : 0);
      if (hosts_at(node) == 0 || targets == 0) continue;
      const std::uint32_t distance = links_between(source, node);
      const std::uint64_t pairs = sources * targets;
      result.histogram[distance] += pairs;
      result.mean_paths += static_cast<double>(pairs) * paths_[node];
      if (result.max_paths == 0 || paths_[node] < result.fewest_paths) result.fewest_paths = paths_[node];
      result.max_paths = std::max(result.max_paths, paths_[node]);
    }
    result.sources += sources;
  }

  struct Farthest {
    std::uint32_t node = 0;
    std::uint32_t links = 0;
  };
  /// Of the other hosts; the first found, if several are equally far.
  Farthest farthest_from(std::uint32_t source) {
    search(source);
    Farthest result{source, 0};
    for (const std::uint32_t node : order_) {
      if (hosts_at(node) <= (node == source ? 1U : 0U)) continue;
      const std::uint32_t links = links_between(source, node);
      if (links > result.links) result = {node, links};
    }
    return result;
  }

 private:
  /// Of hosts at two nodes, after a search from the first.
  std::uint32_t links_between(std::uint32_t source, std::uint32_t node) const {
    const auto to_host = [this](std::uint32_t at) { return graph_.is_host(NodeId(at)) ? 0U : 1U; };
    return hops_[node] + to_host(source) + to_host(node);
  }
  void search(std::uint32_t source) {
    std::fill(hops_.begin(), hops_.end(), unseen);
    order_.clear();
    order_.push_back(source);
    hops_[source] = 0;
    paths_[source] = 1;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::uint32_t at = order_[i];
      for (std::uint32_t n = begin_[at]; n < begin_[at + 1]; ++n) {
        const std::uint32_t peer = neighbours_[n];
        if (hops_[peer] == unseen) {
          hops_[peer] = hops_[at] + 1;
          paths_[peer] = 0;
          order_.push_back(peer);
        }
        if (hops_[peer] == hops_[at] + 1) paths_[peer] += paths_[at];
      }
    }
  }

  const ClusterGraph& graph_;
  std::vector<std::uint32_t> begin_;
  std::vector<std::uint32_t> neighbours_;
  std::vector<std::uint32_t> leaves_;
  std::vector<std::uint32_t> hops_;
  std::vector<double> paths_;
  std::vector<std::uint32_t> order_;
};

}  // namespace

std::uint32_t estimate_diameter(const ClusterGraph& graph) {
  Searcher searcher(graph);
  std::uint32_t start = 0;
  while (start < graph.node_count() && searcher.hosts_at(start) == 0) ++start;
  if (start == graph.node_count()) return 0;
  Searcher::Farthest found = searcher.farthest_from(start);
  for (;;) {
    const Searcher::Farthest next = searcher.farthest_from(found.node);
    if (next.links <= found.links) return found.links;
    found = next;
  }
}

HostDistances measure_distances(const ClusterGraph& graph, std::uint64_t max_steps) {
  Searcher searcher(graph);
  std::vector<std::uint32_t> starts;
  for (std::uint32_t node = 0; node < graph.node_count(); ++node)
    if (searcher.hosts_at(node) > 0) starts.push_back(node);
  const std::uint64_t affordable = std::max<std::uint64_t>(1, max_steps / searcher.steps());
  const std::size_t searches = std::min<std::uint64_t>(starts.size(), affordable);
  HostDistances result;
  for (std::size_t i = 0; i < searches; ++i) searcher.add_pairs_from(starts[i * starts.size() / searches], result);
  double pairs = 0;
  for (const auto& [distance, count] : result.histogram) {
    pairs += static_cast<double>(count);
    result.mean += static_cast<double>(distance) * static_cast<double>(count);
    result.diameter = std::max(result.diameter, distance);
  }
  if (pairs > 0) {
    result.mean /= pairs;
    result.mean_paths /= pairs;
  }
  return result;
}

}  // namespace weft
