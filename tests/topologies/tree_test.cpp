// SPDX-License-Identifier: GPL-2.0-only
// Generalized fat-trees and leaf-spine networks against their closed forms.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/shapes/tree_shape.hpp"
#include "tests/topologies/properties.hpp"

namespace weft::tree_test {
namespace {

using test::expect_error;
using test::Histogram;
using test::histogram_of;
using test::machine;

using Numbers = std::vector<std::uint32_t>;

Topology xgft(const Numbers& m, const Numbers& w, const Numbers& p) {
  return machine(fmt::format("{{kind: xgft, m: [{}], w: [{}], p: [{}], link_rate: 100 Gb/s, link_delay: 1 us}}",
                             fmt::join(m, ", "), fmt::join(w, ", "), fmt::join(p, ", ")));
}

struct Parameters {
  Numbers m, w, p;
};
const std::vector<Parameters> cases = {
    {{5}, {1}, {1}},
    {{8, 8}, {1, 8}, {1, 1}},
    {{8, 8}, {1, 4}, {1, 2}},
    {{8, 8}, {1, 4}, {1, 1}},
    {{4, 4, 4}, {1, 4, 4}, {1, 1, 1}},
    {{4, 4, 8}, {1, 4, 4}, {1, 1, 1}},
    {{2, 3, 4, 2}, {1, 2, 1, 3}, {1, 2, 1, 2}},
};

TEST(Xgft, CountsDistancesAndPaths) {
  for (const auto& [m, w, p] : cases) {
    SCOPED_TRACE(fmt::format("{} {} {}", fmt::join(m, ","), fmt::join(w, ","), fmt::join(p, ",")));
    const Topology topology = xgft(m, w, p);
    test::expect_consistent_ports(topology.graph);
    const auto levels = static_cast<std::uint32_t>(m.size());
    std::uint64_t hosts = 1;
    for (const std::uint32_t children : m) hosts *= children;
    EXPECT_EQ(topology.graph.host_count(), hosts);
    // Level l: prod_{i<=l} w_i prod_{i>l} m_i switches; between l - 1 and l: that many of l - 1 times w_l p_l links.
    std::uint64_t switches = 0;
    std::uint64_t lower = hosts;
    std::uint64_t below = 1;
    std::uint64_t copies = 1;
    std::uint64_t paths = 1;
    Histogram expected;
    const auto distances = test::distances_from(topology.graph, NodeId(0));
    for (std::uint32_t l = 1; l <= levels; ++l) {
      EXPECT_EQ(test::links_of_class(topology, l == 1 ? "host" : fmt::format("level {}-{}", l - 1, l)),
                lower * w[l - 1] * p[l - 1]);
      below *= m[l - 1];
      copies *= w[l - 1];
      lower = hosts / below * copies;
      switches += lower;
      // Pairs whose nearest common ancestors are of level l are 2 (l - 1) links between switches apart, by
      // prod_{i<=l} w_i p_i^2 paths: any parallel link up, any parent, any parallel link down.
      const std::uint64_t pairs = hosts * (below - below / m[l - 1]);
      if (pairs > 0) expected[2 * (l - 1)] = pairs;
      paths *= std::uint64_t{w[l - 1]} * p[l - 1] * p[l - 1];
      if (pairs > 0) {
        EXPECT_EQ(distances.paths[below / m[l - 1]], paths);
      }
    }
    EXPECT_EQ(topology.graph.switch_count(), switches);
    EXPECT_EQ(histogram_of(topology), expected);
  }
}

TEST(Xgft, KaryTrees) {
  // k-ary n-tree: k^n hosts, n k^(n-1) switches, (n-1) k^n links between them, bisection k^n / 2 (F. Petrini, M.
  // Vanneschi, IPPS 1997).
  const std::map<std::pair<std::uint32_t, std::uint32_t>, Histogram> known = {
      {{2, 3}, {{0, 8}, {2, 16}, {4, 32}}}, {{8, 2}, {{0, 448}, {2, 3584}}}, {{4, 3}, {{0, 192}, {2, 768}, {4, 3072}}}};
  for (const auto& [size, histogram] : known) {
    const auto [k, n] = size;
    Numbers w(n, k);
    w[0] = 1;
    const Topology topology = xgft(Numbers(n, k), w, Numbers(n, 1));
    std::uint32_t hosts = 1;
    for (std::uint32_t i = 0; i < n; ++i) hosts *= k;
    EXPECT_EQ(topology.graph.host_count(), hosts);
    EXPECT_EQ(topology.graph.switch_count(), n * hosts / k);
    EXPECT_EQ(test::switch_links(topology), (n - 1) * hosts);
    EXPECT_EQ(topology.bisection_bps, hosts / 2 * 100'000'000'000LL);
    EXPECT_EQ(histogram_of(topology), histogram);
  }
}

TEST(Xgft, PortsLeadWhereTheShapeSays) {
  for (const auto& [m, w, p] : cases) {
    const Topology topology = xgft(m, w, p);
    const auto& shape = *shape_of<TreeShape>(topology);
    auto first = static_cast<std::uint32_t>(shape.hosts());
    for (std::uint32_t l = 1; l < shape.levels(); ++l) {
      const auto copies = static_cast<std::uint32_t>(shape.copies(l));
      const auto count = static_cast<std::uint32_t>(shape.switches(l));
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto ports = topology.graph.ports(NodeId(first + i));
        ASSERT_EQ(ports.size(), m[l - 1] * p[l - 1] + w[l] * p[l]);
        for (std::uint32_t up = 0; up < w[l] * p[l]; ++up) {
          const std::uint32_t parent = i / copies / m[l] * copies * w[l] + up % w[l] * copies + i % copies;
          const PortEnd& end = ports[m[l - 1] * p[l - 1] + up];
          ASSERT_EQ(end.peer, NodeId(first + count + parent));
          ASSERT_EQ(end.peer_port, i / copies % m[l] * p[l] + up / w[l]);
        }
      }
      first += count;
    }
  }
}

TEST(Xgft, GroupsAreTheHighestSubtrees) {
  const Topology topology = xgft({2, 3, 4}, {1, 2, 2}, {1, 1, 1});
  for (std::uint32_t host = 0; host < 24; ++host) EXPECT_EQ(topology.graph.node(NodeId(host)).group, host / 6);
  const auto& shape = *shape_of<TreeShape>(topology);
  const auto level1 = static_cast<std::uint32_t>(shape.switches(1));
  const auto level2 = static_cast<std::uint32_t>(shape.switches(2));
  for (std::uint32_t i = 0; i < level1; ++i) EXPECT_EQ(topology.graph.node(NodeId(24 + i)).group, i / 3);
  for (std::uint32_t i = 0; i < level2; ++i) EXPECT_EQ(topology.graph.node(NodeId(24 + level1 + i)).group, i / 2);
  EXPECT_EQ(topology.graph.node(NodeId(24 + level1 + level2)).group, no_group);
}

TEST(LeafSpine, Counts) {
  const Topology topology = machine(
      "{kind: leaf_spine, leaves: 6, hosts_per_leaf: 8, spines: 2, parallel: 2, link_rate: 400 Gb/s, link_delay: 1 us, "
      "host_link_rate: 100 Gb/s}");
  EXPECT_EQ(topology.graph.host_count(), 48U);
  EXPECT_EQ(topology.graph.switch_count(), 8U);
  EXPECT_EQ(test::links_of_class(topology, "host"), 48U);
  EXPECT_EQ(test::links_of_class(topology, "leaf-spine"), 24U);
  EXPECT_EQ(histogram_of(topology), (Histogram{{0, 48 * 7}, {2, 48 * 40}}));
  // 12 of 24 links of 400 Gb/s, or 24 of 48 host links of 100 Gb/s
  EXPECT_EQ(topology.bisection_bps, 24 * 100'000'000'000LL);
  EXPECT_EQ(topology.routing, "up_down");
}

TEST(Trees, ErrorsAtTheirLine) {
  const std::string links = "link_rate: 400 Gb/s\nlink_delay: 500 ns\n";
  expect_error("kind: xgft\nm: [4, 4]\nw: [1]\n" + links, 3, {"1 values", "list of 2"});
  expect_error("kind: xgft\nm: [4, 4]\nw: [2, 2]\n" + links, 3, {"found 2", "the first number is 1"});
  expect_error("kind: xgft\nm: [4, 4]\nw: [1, 2]\np: [2, 1]\n" + links, 4, {"found 2", "the first number is 1"});
  expect_error("kind: xgft\nm: [4, 0]\nw: [1, 2]\n" + links, 2, {"0"});
  expect_error("kind: xgft\nm: [30000, 2]\nw: [1, 40000]\n" + links, 2, {"ports"});
  expect_error("kind: xgft\nm: [6000, 6000]\nw: [1, 2]\n" + links, 2, {"36000000 nodes"});
  expect_error("kind: xgft\nm: [4, 4, 4]\nw: [1, 60000, 60000]\n" + links, 2, {"nodes"});
  expect_error("kind: leaf_spine\nleaves: 4\nhosts_per_leaf: 4\nspine: 2\n" + links, 4, {"'spines'"});
  expect_error("kind: leaf_spine\nleaves: 4\nhosts_per_leaf: 4\nspines: 0\n" + links, 4, {"0"});
}

}  // namespace
}  // namespace weft::tree_test
