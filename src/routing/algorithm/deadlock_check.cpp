// SPDX-License-Identifier: GPL-2.0-only
// Can packets wait for each other in a cycle?
#include "routing/algorithm/deadlock_check.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <unordered_set>

#include <boost/functional/hash.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/depth_first_search.hpp>
#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "support/basics/random.hpp"

namespace weft {
namespace {

using Edge = std::pair<std::uint32_t, std::uint32_t>;

/// Where a packet is: the channel that it holds, and what routing remembers.
struct Holder {
  std::uint32_t channel;
  std::uint8_t state;
  auto operator<=>(const Holder&) const = default;
};

class DependencySearch {
 public:
  DependencySearch(const Topology& topology, const RoutingAlgorithm& routing)
      : graph_(topology.graph), routing_(routing), lanes_(routing.lanes()) {}

  void follow(const RouteRequest& flow) {
    seen_.clear();
    open_.clear();
    const PortEnd& first = graph_.ports(flow.source).front();
    push({channel(first, 0), 0});
    while (!open_.empty()) {
      const Holder holder = open_.back();
      open_.pop_back();
      const std::uint32_t link = holder.channel / lanes_;
      const LinkProperties& properties = graph_.link(LinkId(link / 2));
      const NodeId at = properties.ends[1 - link % 2];
      if (at == flow.destination) continue;
      const std::uint16_t in_port = properties.ports[1 - link % 2];
      next(at, in_port, flow, holder, [&](const RouteChoice& choice) {
        const PortEnd& end = graph_.ports(at)[choice.port];
        const Holder after{channel(end, choice.lane), choice.state};
        edges_.insert({holder.channel, after.channel});
        push(after);
      });
    }
  }

  std::vector<Edge> edges() const {
    std::vector<Edge> result(edges_.begin(), edges_.end());
    std::sort(result.begin(), result.end());
    return result;
  }

 private:
  std::uint32_t channel(const PortEnd& end, std::uint8_t lane) const {
    WEFT_EXPECT(lane < lanes_, "lane {} of {}", lane, lanes_);
    return directed(end.link, end.direction) * lanes_ + lane;
  }
  void push(const Holder& holder) {
    if (seen_.insert(holder).second) open_.push_back(holder);
  }

  template <class Visit>
  void next(NodeId at, std::uint16_t in_port, const RouteRequest& flow, const Holder& holder, const Visit& visit) {
    if (!routing_.per_packet()) {
      for (const std::uint16_t port : routing_.candidates(at, flow.destination)) visit(RouteChoice{port, 0, 0});
      return;
    }
    AdaptiveRequest request{flow, 0, in_port, static_cast<std::uint8_t>(holder.channel % lanes_), holder.state};
    const std::size_t ports = graph_.ports(at).size();
    constexpr Bytes long_queue = Bytes::mib(1);
    queued_.assign(ports, Bytes());
    visit(routing_.choose(at, request, queued_));
    queued_.assign(ports, long_queue);
    for (std::size_t port = 0; port < ports; ++port) {
      queued_[port] = Bytes();
      visit(routing_.choose(at, request, queued_));
      queued_[port] = long_queue;
    }
  }

  const ClusterGraph& graph_;
  const RoutingAlgorithm& routing_;
  std::uint32_t lanes_;
  std::set<Holder> seen_;
  std::vector<Holder> open_;
  std::vector<Bytes> queued_;
  std::unordered_set<Edge, boost::hash<Edge>> edges_;  ///< only filled and sorted
};

using DependencyGraph = boost::compressed_sparse_row_graph<boost::directedS>;

/// Follows tree edges, and stops at the first edge back to a vertex on the way.
class CycleFinder : public boost::default_dfs_visitor {
 public:
  CycleFinder(std::vector<std::uint32_t>& parent, std::vector<std::uint32_t>& cycle) : parent_(parent), cycle_(cycle) {}
  void tree_edge(DependencyGraph::edge_descriptor edge, const DependencyGraph& graph) {
    parent_[boost::target(edge, graph)] = static_cast<std::uint32_t>(boost::source(edge, graph));
  }
  void back_edge(DependencyGraph::edge_descriptor edge, const DependencyGraph& graph) {
    if (!cycle_.empty()) return;
    const auto last = static_cast<std::uint32_t>(boost::target(edge, graph));
    auto at = static_cast<std::uint32_t>(boost::source(edge, graph));
    cycle_.push_back(at);
    while (at != last) cycle_.push_back(at = parent_[at]);
    std::reverse(cycle_.begin(), cycle_.end());
  }

 private:
  std::vector<std::uint32_t>& parent_;
  std::vector<std::uint32_t>& cycle_;
};

}  // namespace

DeadlockReport check_deadlock(const Topology& topology, const RoutingAlgorithm& routing, const DeadlockSearch& search) {
  const std::uint32_t hosts = topology.graph.host_count();
  const std::uint64_t pairs = std::uint64_t{hosts} * hosts;
  DependencySearch dependencies(topology, routing);
  const std::uint64_t followed = std::min(pairs, search.max_pairs);
  for (std::uint64_t i = 0; i < followed; ++i) {
    const std::uint64_t pair = followed == pairs ? i : random_below(pairs, 1, i, 0);
    const NodeId source(static_cast<std::uint32_t>(pair / hosts));
    const NodeId destination(static_cast<std::uint32_t>(pair % hosts));
    if (source == destination) continue;
    const std::uint32_t flows = routing.per_packet() ? search.flows_per_pair : 1;
    for (std::uint32_t queue_pair = 0; queue_pair < flows; ++queue_pair)
      dependencies.follow({source, destination, queue_pair});
  }

  const std::vector<Edge> edges = dependencies.edges();
  DeadlockReport report;
  report.dependencies = edges.size();
  std::set<std::uint32_t> used;
  for (const auto& [from, to] : edges) {
    used.insert(from);
    used.insert(to);
  }
  report.channels = used.size();
  const std::size_t vertices = std::size_t{2} * topology.graph.link_count() * routing.lanes();
  const DependencyGraph graph(boost::edges_are_sorted, edges.begin(), edges.end(), vertices);
  std::vector<std::uint32_t> parent(vertices);
  std::vector<std::uint32_t> cycle;
  std::vector<boost::default_color_type> color(vertices);
  boost::depth_first_search(
      graph, boost::visitor(CycleFinder(parent, cycle))
                 .color_map(boost::make_iterator_property_map(color.begin(), boost::get(boost::vertex_index, graph))));
  for (const std::uint32_t channel : cycle)
    report.cycle.push_back({channel / routing.lanes(), static_cast<std::uint8_t>(channel % routing.lanes())});
  return report;
}

std::string to_text(const Topology& topology, const std::vector<Channel>& cycle) {
  std::string text;
  for (const Channel& channel : cycle) {
    const LinkProperties& link = topology.graph.link(LinkId(channel.directed_link / 2));
    const unsigned from = channel.directed_link % 2;
    text += fmt::format("{}{} -> {} lane {}", text.empty() ? "" : ", ", topology.graph.name(link.ends[from]),
                        topology.graph.name(link.ends[1 - from]), channel.lane);
  }
  return text;
}

}  // namespace weft
