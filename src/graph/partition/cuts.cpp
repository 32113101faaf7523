// SPDX-License-Identifier: GPL-2.0-only
// Bandwidth between the halves of a machine, and ways between two switches that share no link.
#include "graph/partition/cuts.hpp"

#include <algorithm>

// GCC 12 sees no initialisation in Boost's iterators over all edges.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>

#include "graph/partition/metis_partition.hpp"
#include "support/basics/contract.hpp"

namespace weft {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct FlowVertex {
  boost::default_color_type color{};
  std::int64_t distance = 0;
  Traits::edge_descriptor predecessor;
};
struct FlowEdge {
  std::int64_t capacity = 0;
  std::int64_t residual = 0;
  Traits::edge_descriptor reverse;
};
using FlowGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, FlowVertex, FlowEdge>;

void add_edge(FlowGraph& flow, std::uint32_t a, std::uint32_t b, std::int64_t forwards, std::int64_t backwards) {
  const auto there = boost::add_edge(a, b, FlowEdge{forwards, 0, {}}, flow).first;
  const auto back = boost::add_edge(b, a, FlowEdge{backwards, 0, {}}, flow).first;
  flow[there].reverse = back;
  flow[back].reverse = there;
}

std::int64_t largest_flow(FlowGraph& flow, std::uint32_t source, std::uint32_t sink) {
  return boost::boykov_kolmogorov_max_flow(
      flow, boost::get(&FlowEdge::capacity, flow), boost::get(&FlowEdge::residual, flow),
      boost::get(&FlowEdge::reverse, flow), boost::get(&FlowVertex::predecessor, flow),
      boost::get(&FlowVertex::color, flow), boost::get(&FlowVertex::distance, flow),
      boost::get(boost::vertex_index, flow), source, sink);
}

}  // namespace

Bisection estimate_bisection(const ClusterGraph& graph) {
  WEFT_EXPECT(graph.host_count() >= 2, "halves of {} hosts", graph.host_count());
  const std::vector<std::uint16_t> half = metis_halves_of_hosts(graph);
  Bisection result;
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    const LinkProperties& link = graph.link(LinkId(i));
    if (half[link.ends[0].value()] != half[link.ends[1].value()]) result.cut_bps += link.rate.bps();
  }
  constexpr std::uint32_t max_links = 400'000;  // some seconds
  if (graph.link_count() > max_links) {
    result.flow_bps = -1;
    return result;
  }
  FlowGraph flow(graph.node_count() + 2);
  const std::uint32_t source = graph.node_count();
  const std::uint32_t sink = source + 1;
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    const LinkProperties& link = graph.link(LinkId(i));
    add_edge(flow, link.ends[0].value(), link.ends[1].value(), link.rate.bps(), link.rate.bps());
  }
  for (std::uint32_t host = 0; host < graph.host_count(); ++host) {
    std::int64_t rate = 0;
    for (const PortEnd& port : graph.ports(NodeId(host))) rate += graph.link(port.link).rate.bps();
    if (half[host] == 0)
      add_edge(flow, source, host, rate, 0);
    else
      add_edge(flow, host, sink, rate, 0);
  }
  result.flow_bps = largest_flow(flow, source, sink);
  return result;
}

std::uint32_t edge_disjoint_paths(const ClusterGraph& graph, NodeId from, NodeId to) {
  FlowGraph flow(graph.node_count());
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    const LinkProperties& link = graph.link(LinkId(i));
    add_edge(flow, link.ends[0].value(), link.ends[1].value(), 1, 1);
  }
  return static_cast<std::uint32_t>(largest_flow(flow, from.value(), to.value()));
}

}  // namespace weft
