// SPDX-License-Identifier: GPL-2.0-only
// Nodes, links and port numbers of the graph.
#include "graph/machine/cluster_graph.hpp"

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "graph/machine/boost_graph.hpp"
#include "support/basics/error.hpp"

namespace weft::cluster_graph_test {
namespace {

const Bandwidth rate = Bandwidth::from_gbps(100);
const Time delay = Time::from_ns(500);

/// host0 - switch0 = switch1 - host1, the switches joined twice.
ClusterGraph small_graph() {
  ClusterGraph graph;
  const NodeId h0 = graph.add_host(7);
  const NodeId h1 = graph.add_host();
  const NodeId s0 = graph.add_switch(1, 7);
  const NodeId s1 = graph.add_switch(2);
  graph.add_link(h0, s0, rate, delay);
  graph.add_link(s0, s1, rate, delay);
  graph.add_link(s1, s0, Bandwidth::from_gbps(200), Time::from_ns(7));
  graph.add_link(s1, h1, rate, delay);
  return graph;
}

void expect_consistent(const ClusterGraph& graph) {
  std::size_t ports = 0;
  for (std::uint32_t node = 0; node < graph.node_count(); ++node) {
    const auto here = graph.ports(NodeId(node));
    ports += here.size();
    for (std::size_t i = 0; i < here.size(); ++i) {
      const LinkProperties& link = graph.link(here[i].link);
      EXPECT_EQ(link.ends[here[i].direction], NodeId(node));
      EXPECT_EQ(link.ports[here[i].direction], i);
      EXPECT_EQ(link.ends[1 - here[i].direction], here[i].peer);
      const PortEnd& back = graph.ports(here[i].peer)[here[i].peer_port];
      EXPECT_EQ(back.peer, NodeId(node));
      EXPECT_EQ(back.peer_port, i);
      EXPECT_EQ(back.link, here[i].link);
      EXPECT_NE(back.direction, here[i].direction);
    }
  }
  EXPECT_EQ(ports, 2 * graph.link_count());
}

TEST(ClusterGraph, CountsNamesAndProperties) {
  const ClusterGraph graph = small_graph();
  EXPECT_EQ(graph.host_count(), 2U);
  EXPECT_EQ(graph.switch_count(), 2U);
  EXPECT_EQ(graph.node_count(), 4U);
  EXPECT_EQ(graph.link_count(), 4U);
  EXPECT_TRUE(graph.is_host(NodeId(1)));
  EXPECT_FALSE(graph.is_host(NodeId(2)));
  EXPECT_EQ(graph.name(NodeId(1)), "host1");
  EXPECT_EQ(graph.name(NodeId(3)), "switch1");
  EXPECT_EQ(graph.node(NodeId(0)).group, 7U);
  EXPECT_EQ(graph.node(NodeId(1)).group, no_group);
  EXPECT_EQ(graph.node(NodeId(0)).kind, NodeKind::host);
  EXPECT_EQ(graph.node(NodeId(3)).kind, NodeKind::network_switch);
  EXPECT_EQ(graph.node(NodeId(3)).tier, 2);
  EXPECT_EQ(graph.link(LinkId(2)).rate, Bandwidth::from_gbps(200));
  EXPECT_EQ(graph.link(LinkId(2)).delay, Time::from_ns(7));
}

TEST(ClusterGraph, PortsAreNumberedInOrderOfAdding) {
  const ClusterGraph graph = small_graph();
  expect_consistent(graph);
  const auto ports = graph.ports(NodeId(2));
  ASSERT_EQ(ports.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(ports[i].link, LinkId(i));
  EXPECT_EQ(ports[2].direction, 1);  // link 2 was added from switch1
}

TEST(ClusterGraph, BoostGraphHasTheSameEdges) {
  const ClusterGraph graph = small_graph();
  const BoostGraph same = boost_graph(graph);
  ASSERT_EQ(boost::num_vertices(same), graph.node_count());
  ASSERT_EQ(boost::num_edges(same), graph.link_count());
  std::uint32_t next = 0;
  for (auto [edge, end] = boost::edges(same); edge != end; ++edge, ++next) {
    const LinkId link = same[*edge];
    EXPECT_EQ(link, LinkId(next));
    EXPECT_EQ(boost::source(*edge, same), graph.link(link).ends[0].value());
    EXPECT_EQ(boost::target(*edge, same), graph.link(link).ends[1].value());
  }
}

TEST(ClusterGraph, CopiesAndMovesOutliveTheOriginal) {
  auto original = std::make_unique<ClusterGraph>(small_graph());
  const ClusterGraph copy = *original;
  const ClusterGraph moved = std::move(*original);
  original.reset();
  for (const ClusterGraph* graph : {&copy, &moved}) {
    expect_consistent(*graph);
    EXPECT_EQ(graph->link(LinkId(2)).delay, Time::from_ns(7));
    EXPECT_EQ(graph->link_count(), 4U);
  }
}

TEST(ClusterGraph, RefusesWhatIsNoGraph) {
  ClusterGraph graph = small_graph();
  EXPECT_THROW(graph.add_host(), InternalError);
  EXPECT_THROW(graph.add_link(NodeId(1), NodeId(1), rate, delay), InternalError);
  EXPECT_THROW(graph.add_link(NodeId(1), NodeId(4), rate, delay), InternalError);
  EXPECT_THROW(graph.node(NodeId(4)), InternalError);
  EXPECT_THROW(graph.link(LinkId(4)), InternalError);
  EXPECT_THROW(graph.ports(NodeId::none()), InternalError);
}

TEST(ClusterGraph, PortNumbersDoNotOverflow) {
  ClusterGraph graph;
  const NodeId a = graph.add_switch(1);
  const NodeId b = graph.add_switch(1);
  for (std::uint32_t i = 0; i < ClusterGraph::max_ports; ++i) graph.add_link(a, b, rate, delay);
  EXPECT_EQ(graph.ports(b).back().peer_port, ClusterGraph::max_ports - 1);
  EXPECT_THROW(graph.add_link(a, b, rate, delay), InternalError);
}

}  // namespace
}  // namespace weft::cluster_graph_test
