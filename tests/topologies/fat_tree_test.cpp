// SPDX-License-Identifier: GPL-2.0-only
// The fat-tree against its closed forms, and the port numbers that formula routing relies on.
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/topologies/machine.hpp"

namespace weft::fat_tree_test {
namespace {

using test::distances_from;
using test::expect_error;
using test::machine;

Topology fat_tree(std::uint32_t k) {
  return machine(fmt::format("{{kind: fat_tree, k: {}, link_rate: 400 Gb/s, link_delay: 500 ns}}", k));
}

class FatTreeOf : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  const std::uint32_t k = GetParam();
  const std::uint32_t half = k / 2;
  const std::uint32_t hosts = k * k * k / 4;
  const std::uint32_t edges = k * k / 2;
  const Topology topology = fat_tree(k);
  const ClusterGraph& graph = topology.graph;

  NodeId edge(std::uint32_t pod, std::uint32_t e) const { return NodeId(hosts + pod * half + e); }
  NodeId aggregation(std::uint32_t pod, std::uint32_t a) const { return NodeId(hosts + edges + pod * half + a); }
  NodeId core(std::uint32_t c) const { return NodeId(hosts + 2 * edges + c); }
};

TEST_P(FatTreeOf, Counts) {
  EXPECT_EQ(topology.kind, "fat_tree");
  EXPECT_EQ(topology.routing, "fat_tree");
  EXPECT_EQ(topology.radix, k);
  EXPECT_EQ(graph.host_count(), k * k * k / 4);
  EXPECT_EQ(graph.switch_count(), 5 * k * k / 4);
  EXPECT_EQ(graph.link_count(), 3 * k * k * k / 4);
  for (std::uint32_t node = 0; node < graph.node_count(); ++node)
    EXPECT_EQ(graph.ports(NodeId(node)).size(), graph.is_host(NodeId(node)) ? 1U : k);
}

TEST_P(FatTreeOf, TiersAndGroups) {
  for (std::uint32_t host = 0; host < hosts; ++host) {
    EXPECT_EQ(graph.node(NodeId(host)).tier, 0);
    EXPECT_EQ(graph.node(NodeId(host)).group, host / (half * half));
  }
  for (std::uint32_t pod = 0; pod < k; ++pod) {
    for (std::uint32_t i = 0; i < half; ++i) {
      EXPECT_EQ(graph.node(edge(pod, i)).tier, 1);
      EXPECT_EQ(graph.node(edge(pod, i)).group, pod);
      EXPECT_EQ(graph.node(aggregation(pod, i)).tier, 2);
      EXPECT_EQ(graph.node(aggregation(pod, i)).group, pod);
    }
  }
  for (std::uint32_t c = 0; c < half * half; ++c) {
    EXPECT_EQ(graph.node(core(c)).tier, 3);
    EXPECT_EQ(graph.node(core(c)).group, no_group);
  }
}

TEST_P(FatTreeOf, PortNumbersThatFormulaRoutingReliesOn) {
  for (std::uint32_t pod = 0; pod < k; ++pod) {
    for (std::uint32_t i = 0; i < half; ++i) {
      for (std::uint32_t j = 0; j < half; ++j) {
        EXPECT_EQ(graph.ports(edge(pod, i))[j].peer, NodeId((pod * half + i) * half + j));
        EXPECT_EQ(graph.ports(edge(pod, i))[half + j].peer, aggregation(pod, j));
        EXPECT_EQ(graph.ports(aggregation(pod, i))[j].peer, edge(pod, j));
        EXPECT_EQ(graph.ports(aggregation(pod, i))[half + j].peer, core(i * half + j));
        EXPECT_EQ(graph.ports(core(i * half + j))[pod].peer, aggregation(pod, i));
      }
    }
  }
}

TEST_P(FatTreeOf, LinkClassesAndDirections) {
  std::vector<std::uint32_t> count(topology.link_classes.size(), 0);
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    const LinkProperties& link = graph.link(LinkId(i));
    const auto lower = graph.node(link.ends[0]).tier;
    EXPECT_EQ(topology.link_class[i], lower);
    EXPECT_EQ(graph.node(link.ends[1]).tier, lower + 1);
    ++count.at(topology.link_class[i]);
  }
  EXPECT_EQ(topology.link_classes, (std::vector<std::string>{"host", "edge-aggregation", "aggregation-core"}));
  EXPECT_EQ(count, std::vector<std::uint32_t>(3, k * k * k / 4));
}

TEST_P(FatTreeOf, DistancesAndNumbersOfShortestPaths) {
  // hops -> hosts at that distance, and hops -> number of shortest paths
  const std::map<std::uint32_t, std::uint32_t> far = {
      {2, half - 1}, {4, half * (half - 1)}, {6, k * k * k / 4 - k * k / 4}};
  const std::map<std::uint32_t, std::uint64_t> paths = {{2, 1}, {4, half}, {6, half * half}};
  std::uint64_t total = 0;
  for (std::uint32_t source = 0; source < hosts; ++source) {
    const auto distances = distances_from(graph, NodeId(source));
    std::map<std::uint32_t, std::uint32_t> histogram = {{2, 0}, {4, 0}, {6, 0}};
    for (std::uint32_t host = 0; host < hosts; ++host) {
      if (host == source) continue;
      ++histogram[distances.hops[host]];
      total += distances.hops[host];
      ASSERT_EQ(distances.paths[host], paths.at(distances.hops[host])) << source << " -> " << host;
    }
    EXPECT_EQ(histogram, far) << source;
  }
  const double mean = static_cast<double>(total) / (static_cast<double>(hosts) * (hosts - 1));
  const double expected = (2.0 * far.at(2) + 4.0 * far.at(4) + 6.0 * far.at(6)) / (hosts - 1);
  EXPECT_DOUBLE_EQ(mean, expected);
}

INSTANTIATE_TEST_SUITE_P(Sizes, FatTreeOf, ::testing::Values(2U, 4U, 6U, 8U));

TEST(FatTree, MeanDistancesInDigits) {
  // (2(h-1) + 4h(h-1) + 6(2h^3-h^2)) / (2h^3-1) with h = k/2: k = 4: 82/15, k = 8: 726/127
  const std::pair<std::uint32_t, double> known[] = {{4, 5.466667}, {8, 5.716535}};
  for (const auto& [k, mean] : known) {
    const Topology topology = fat_tree(k);
    const auto distances = distances_from(topology.graph, NodeId(0));
    double sum = 0;
    for (std::uint32_t host = 1; host < topology.graph.host_count(); ++host) sum += distances.hops[host];
    EXPECT_NEAR(sum / (topology.graph.host_count() - 1), mean, 5e-7);
  }
}

TEST(FatTree, HostLinksMayDiffer) {
  const Topology topology = machine(
      "{kind: fat_tree, k: 4, link_rate: 400 Gb/s, link_delay: 500 ns, host_link_rate: 200 Gb/s, host_link_delay: 50 "
      "ns}");
  for (std::uint32_t i = 0; i < topology.graph.link_count(); ++i) {
    const LinkProperties& link = topology.graph.link(LinkId(i));
    EXPECT_EQ(link.rate, Bandwidth::from_gbps(topology.link_class[i] == 0 ? 200 : 400));
    EXPECT_EQ(link.delay, Time::from_ns(topology.link_class[i] == 0 ? 50 : 500));
  }
}

TEST(FatTree, ErrorsAtTheirLine) {
  const std::string links = "link_rate: 400 Gb/s\nlink_delay: 500 ns\n";
  expect_error("kind: fat_tree\nk: 5\n" + links, 2, {"must be even", "found 5", "4 or 6"});
  expect_error("kind: fat_tree\nk: 0\n" + links, 2, {"0"});
  expect_error("kind: fat_tree\nk: 1000\n" + links, 2, {"1000", "256"});
  expect_error("kind: fat_tree\nk: four\n" + links, 2, {"four"});
  expect_error("kind: fat_tree\n" + links, 1, {"'k'"});
  expect_error("kind: fat_tree\nk: 4\nlink_rate: 400\nlink_delay: 500 ns\n", 3, {"400", "unit"});
  expect_error("kind: fat_tree\nk: 4\nlink_rate: 400 Gb/s\nlink_delay: 0 ns\n", 4, {"zero delay links"});
  expect_error("kind: fat_tree\nk: 4\nhost_link_delay: 0 ns\n" + links, 3, {"zero delay links"});
  expect_error("kind: fat_tree\nk: 4\n" + links + "link_rat: 1 Gb/s\n", 5, {"link_rat", "did you mean 'link_rate'?"});
}

}  // namespace
}  // namespace weft::fat_tree_test
