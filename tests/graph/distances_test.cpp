// SPDX-License-Identifier: GPL-2.0-only
// Distances, cuts and disjoint paths against naive counting and closed forms.
#include "graph/machine/distances.hpp"

#include <algorithm>

#include "graph/partition/cuts.hpp"
#include "tests/topologies/properties.hpp"

namespace weft::distances_test {
namespace {

using test::distances_from;
using test::machine;

const std::string links = ", link_rate: 100 Gb/s, link_delay: 1 us}";

const std::vector<std::string> machines = {"{kind: star, hosts: 5",
                                           "{kind: star, hosts: 1",
                                           "{kind: line, links: 1",
                                           "{kind: line, links: 4",
                                           "{kind: fat_tree, k: 4",
                                           "{kind: torus, dims: [4, 3, 2], hosts_per_router: 2",
                                           "{kind: dragonfly, p: 2, a: 4, h: 2",
                                           "{kind: xgft, m: [4, 4], w: [1, 2], p: [1, 2]",
                                           "{kind: hyperx, dims: [3, 4], parallel: 2",
                                           "{kind: slim_fly, q: 5"};

TEST(HostDistances, EqualNaiveCounting) {
  for (const std::string& text : machines) {
    SCOPED_TRACE(text);
    const ClusterGraph graph = machine(text + links).graph;
    const HostDistances found = measure_distances(graph);
    std::map<std::uint32_t, std::uint64_t> histogram;
    double sum = 0;
    double paths = 0;
    double fewest = 0;
    double max = 0;
    double pairs = 0;
    for (std::uint32_t source = 0; source < graph.host_count(); ++source) {
      const auto distances = distances_from(graph, NodeId(source));
      for (std::uint32_t host = 0; host < graph.host_count(); ++host) {
        if (host == source) continue;
        ++histogram[distances.hops[host]];
        const auto ways = static_cast<double>(distances.paths[host]);
        sum += distances.hops[host];
        paths += ways;
        fewest = pairs == 0 ? ways : std::min(fewest, ways);
        max = std::max(max, ways);
        pairs += 1;
      }
    }
    EXPECT_EQ(found.histogram, histogram);
    EXPECT_EQ(found.sources, graph.host_count());
    EXPECT_EQ(found.diameter, histogram.empty() ? 0 : histogram.rbegin()->first);
    EXPECT_EQ(estimate_diameter(graph), found.diameter);
    EXPECT_NEAR(found.mean, pairs > 0 ? sum / pairs : 0, 1e-12);
    EXPECT_EQ(found.fewest_paths, fewest);
    EXPECT_EQ(found.max_paths, max);
    EXPECT_NEAR(found.mean_paths, pairs > 0 ? paths / pairs : 0, 1e-9);
  }
}

TEST(HostDistances, ASampleSaysSo) {
  const ClusterGraph graph = machine("{kind: torus, dims: [8, 8], hosts_per_router: 2" + links).graph;
  // A search visits all nodes and both ends of all links between routers.
  const std::uint64_t search = graph.node_count() + 2 * 128;
  const HostDistances sample = measure_distances(graph, 5 * search);
  EXPECT_EQ(sample.sources, 10U);
  // A torus looks the same from every node.
  const HostDistances all = measure_distances(graph);
  EXPECT_DOUBLE_EQ(sample.mean, all.mean);
  EXPECT_EQ(sample.histogram.at(10) * 64, all.histogram.at(10) * 5);
  EXPECT_EQ(measure_distances(graph, 1).sources, 2U);
}

TEST(Bisection, EstimateFindsTheFormulaOfSymmetricMachines) {
  // Machines whose formula is the exact bisection. METIS may miss the best cut, never beat it.
  for (const std::string text :
       {"{kind: star, hosts: 8", "{kind: star, hosts: 9", "{kind: line, links: 3", "{kind: fat_tree, k: 4",
        "{kind: torus, dims: [4, 4]", "{kind: torus, dims: [8]", "{kind: mesh, dims: [4, 4]",
        "{kind: torus, dims: [2, 8]", "{kind: hyperx, dims: [4, 4], hosts_per_switch: 4",
        "{kind: hypercube, dimensions: 4", "{kind: fully_connected, switches: 6, hosts_per_switch: 4",
        "{kind: xgft, m: [4, 4], w: [1, 2]", "{kind: leaf_spine, leaves: 4, hosts_per_leaf: 4, spines: 4",
        "{kind: dragonfly, p: 2, a: 2, h: 1, g: 2"}) {
    const Topology topology = machine(text + links);
    const Bisection found = estimate_bisection(topology.graph);
    SCOPED_TRACE(text);
    EXPECT_LE(found.flow_bps, found.cut_bps);
    EXPECT_EQ(found.flow_bps, topology.bisection_bps);
  }
}

TEST(Bisection, OddDragonflySplitsAGroup) {
  // a = 4, h = 1, g = 5: by trying all cuts into halves of routers, 8 links in each of the four wirings.
  for (const std::string arrangement : {"consecutive", "palmtree", "relative", "circulant"}) {
    const Topology topology = machine("{kind: dragonfly, p: 1, a: 4, h: 1, arrangement: " + arrangement + links);
    EXPECT_EQ(topology.bisection_bps, 0);
    EXPECT_EQ(estimate_bisection(topology.graph).cut_bps, 8 * 100'000'000'000LL) << arrangement;
  }
}

TEST(EdgeDisjointPaths, AreLimitedByTheLinksOfASwitch) {
  const auto between = [](const std::string& text, std::uint32_t a, std::uint32_t b) {
    const Topology topology = machine(text + links);
    const std::uint32_t first = topology.graph.host_count();
    return edge_disjoint_paths(topology.graph, NodeId(first + a), NodeId(first + b));
  };
  EXPECT_EQ(between("{kind: torus, dims: [4, 4, 4]", 0, 42), 6U);
  EXPECT_EQ(between("{kind: mesh, dims: [4, 4]", 0, 15), 2U);
  EXPECT_EQ(between("{kind: fat_tree, k: 4", 0, 7), 2U);
  EXPECT_EQ(between("{kind: fully_connected, switches: 5, parallel: 3", 1, 4), 12U);
  EXPECT_EQ(between("{kind: line, links: 6", 0, 4), 1U);
  EXPECT_EQ(between("{kind: dragonfly, p: 2, a: 4, h: 2", 0, 35), 5U);
}

}  // namespace
}  // namespace weft::distances_test
