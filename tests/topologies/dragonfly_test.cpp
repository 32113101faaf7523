// SPDX-License-Identifier: GPL-2.0-only
// Dragonfly and dragonfly+ against their closed forms, and the four wirings of their groups.
#include <fmt/format.h>

#include "graph/shapes/dragonfly_shape.hpp"
#include "tests/topologies/properties.hpp"

namespace weft::dragonfly_test {
namespace {

using test::expect_error;
using test::Histogram;
using test::histogram_of;
using test::machine;

const std::vector<std::string>& arrangements = GroupWiring::names();

struct Parameters {
  std::uint32_t p, a, h;
};
const std::vector<Parameters> canonical = {{1, 2, 1}, {2, 4, 2}, {3, 6, 3}, {2, 4, 1}, {1, 4, 2}, {2, 6, 3}, {4, 8, 4}};

Topology dragonfly(std::uint32_t p, std::uint32_t a, std::uint32_t h, const std::string& more = "") {
  return machine(
      fmt::format("{{kind: dragonfly, p: {}, a: {}, h: {}, link_rate: 100 Gb/s, link_delay: 1 us{}}}", p, a, h, more));
}

TEST(GroupWiring, IsAnInvolutionWithTheSameLinksBetweenAllPairs) {
  for (std::size_t i = 0; i < arrangements.size(); ++i) {
    for (std::uint32_t groups = 2; groups <= 20; ++groups) {
      if (arrangements[i] == "circulant" && groups % 2 == 0) continue;
      for (std::uint32_t links = 1; links <= 3; ++links) {
        SCOPED_TRACE(fmt::format("{} {} {}", arrangements[i], groups, links));
        const GroupWiring wiring(groups, links, static_cast<GroupWiring::Arrangement>(i));
        ASSERT_EQ(wiring.used_ports(), links * (groups - 1));
        for (std::uint32_t group = 0; group < groups; ++group) {
          std::vector<std::uint32_t> count(groups, 0);
          for (std::uint32_t port = 0; port < wiring.used_ports(); ++port) {
            const auto peer = wiring.peer({group, port});
            ASSERT_LT(peer.group, groups);
            ASSERT_LT(peer.port, wiring.used_ports());
            const auto back = wiring.peer(peer);
            ASSERT_EQ(back.group, group);
            ASSERT_EQ(back.port, port);
            ++count[peer.group];
            ASSERT_EQ(port % (groups - 1), wiring.first_port(group, peer.group));
          }
          for (std::uint32_t other = 0; other < groups; ++other) ASSERT_EQ(count[other], other == group ? 0 : links);
        }
      }
    }
  }
}

TEST(GroupWiring, FollowsTheDefinitions) {
  // Group 2 of 5: where its ports 0, 1, 2, 3 lead.
  const std::vector<std::vector<std::uint32_t>> targets = {{0, 1, 3, 4}, {1, 0, 4, 3}, {3, 4, 0, 1}, {3, 1, 4, 0}};
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const GroupWiring wiring(5, 1, static_cast<GroupWiring::Arrangement>(i));
    for (std::uint32_t port = 0; port < 4; ++port) EXPECT_EQ(wiring.peer({2, port}).group, targets[i][port]);
  }
}

TEST(Dragonfly, CountsOfCanonicalMachines) {
  for (const auto& [p, a, h] : canonical) {
    for (const std::string& arrangement : arrangements) {
      SCOPED_TRACE(fmt::format("{} {} {} {}", p, a, h, arrangement));
      const Topology topology = dragonfly(p, a, h, ", arrangement: " + arrangement);
      const std::uint32_t g = a * h + 1;
      EXPECT_EQ(topology.graph.host_count(), p * a * g);
      EXPECT_EQ(topology.graph.switch_count(), a * g);
      EXPECT_EQ(test::links_of_class(topology, "host"), p * a * g);
      EXPECT_EQ(test::links_of_class(topology, "local"), g * a * (a - 1) / 2);
      EXPECT_EQ(test::links_of_class(topology, "global"), g * (g - 1) / 2);
      for (std::uint32_t i = p * a * g; i < topology.graph.node_count(); ++i)
        ASSERT_EQ(topology.graph.ports(NodeId(i)).size(), p + a - 1 + h);
      test::expect_consistent_ports(topology.graph);
    }
  }
}

TEST(Dragonfly, OneGlobalLinkBetweenAnyTwoGroups) {
  for (const std::string& arrangement : arrangements) {
    const Topology topology = dragonfly(2, 4, 2, ", g: 9, arrangement: " + arrangement);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> count;
    for (std::uint32_t i = 0; i < topology.graph.link_count(); ++i) {
      const auto& ends = topology.graph.link(LinkId(i)).ends;
      const auto pair = std::minmax(topology.graph.node(ends[0]).group, topology.graph.node(ends[1]).group);
      EXPECT_EQ(pair.first != pair.second, topology.link_classes[topology.link_class[i]] == "global");
      if (pair.first != pair.second) ++count[pair];
    }
    EXPECT_EQ(count.size(), 9U * 8 / 2);
    for (const auto& [pair, links] : count) EXPECT_EQ(links, 1U);
  }
}

TEST(Dragonfly, DistancesOnTheGraph) {
  // Links between routers, ordered pairs of hosts, by brute force over the published wirings. Shortest paths may use
  // two global links, so that these depend on the wiring; the first two are closed forms: g a p (p-1), and p^2 (g a
  // (a-1) + g (g-1)).
  const std::map<std::string, Histogram> of_2_4_2 = {{"consecutive", {{0, 72}, {1, 720}, {2, 1824}, {3, 2496}}},
                                                     {"palmtree", {{0, 72}, {1, 720}, {2, 1872}, {3, 2448}}},
                                                     {"circulant", {{0, 72}, {1, 720}, {2, 1944}, {3, 2376}}}};
  for (const auto& [arrangement, expected] : of_2_4_2)
    EXPECT_EQ(histogram_of(dragonfly(2, 4, 2, ", arrangement: " + arrangement)), expected) << arrangement;
  EXPECT_EQ(histogram_of(dragonfly(3, 6, 3, ", arrangement: palmtree")),
            (Histogram{{0, 684}, {1, 8208}, {2, 33516}, {3, 74214}}));
  EXPECT_EQ(histogram_of(dragonfly(3, 6, 3, ", arrangement: circulant")),
            (Histogram{{0, 684}, {1, 8208}, {2, 35568}, {3, 72162}}));
  EXPECT_EQ(histogram_of(dragonfly(2, 4, 1, ", arrangement: palmtree")),
            (Histogram{{0, 40}, {1, 320}, {2, 480}, {3, 720}}));
  EXPECT_EQ(histogram_of(dragonfly(1, 4, 2, ", arrangement: circulant")), (Histogram{{1, 180}, {2, 486}, {3, 594}}));
}

TEST(Dragonfly, ParallelGlobalLinks) {
  // 8 global ports per group, 4 other groups: two rounds. With 3 others two rounds fit, and two ports stay unused.
  const Topology five = dragonfly(1, 4, 2, ", g: 5");
  EXPECT_EQ(test::links_of_class(five, "global"), 2 * 5 * 4 / 2U);
  const Topology four = dragonfly(1, 4, 2, ", g: 4");
  EXPECT_EQ(test::links_of_class(four, "global"), 2 * 4 * 3 / 2U);
  EXPECT_EQ(four.graph.ports(NodeId(4 * 4 + 3)).size(), 1U + 3);  // the last router of a group has none
  EXPECT_EQ(four.bisection_bps, 2 * 2 * 2 * 100'000'000'000);
  const Topology sparse = dragonfly(1, 4, 2, ", g: 5, links_between_groups: 1");
  EXPECT_EQ(test::links_of_class(sparse, "global"), 5 * 4 / 2U);
  const Topology single = dragonfly(2, 4, 2, ", g: 1");
  EXPECT_EQ(single.graph.link_count(), 8U + 6);
}

TEST(Dragonfly, LinksMayDiffer) {
  const Topology topology = dragonfly(2, 4, 2,
                                      ", host_link_delay: 10 ns, local_link_rate: 50 Gb/s, global_link_rate: "
                                      "25 Gb/s, global_link_delay: 7 us");
  for (std::uint32_t i = 0; i < topology.graph.link_count(); ++i) {
    const LinkProperties& link = topology.graph.link(LinkId(i));
    const std::string& name = topology.link_classes[topology.link_class[i]];
    EXPECT_EQ(link.rate, Bandwidth::from_gbps(name == "host" ? 100 : name == "local" ? 50 : 25));
    EXPECT_EQ(link.delay, name == "host" ? Time::from_ns(10) : name == "local" ? Time::from_us(1) : Time::from_us(7));
  }
}

TEST(Dragonfly, ErrorsAtTheirLine) {
  const std::string links = "link_rate: 400 Gb/s\nlink_delay: 500 ns\n";
  const std::string balanced = "kind: dragonfly\np: 2\na: 4\nh: 2\n";
  expect_error(balanced + "g: 10\n" + links, 5, {"found 10 groups", "a h + 1 = 9"});
  expect_error(balanced + "g: 8\narrangement: circulant\n" + links, 6, {"must be odd", "found 8", "7 or 9"});
  expect_error(balanced + "arrangement: palmtre\n" + links, 5, {"palmtre", "did you mean 'palmtree'?"});
  expect_error(balanced + "g: 5\nlinks_between_groups: 3\n" + links, 6, {"3", "2"});
  expect_error("kind: dragonfly\np: 0\na: 4\nh: 2\n" + links, 2, {"0"});
  expect_error("kind: dragonfly\np: 2\na: 4\n" + links, 1, {"'h'"});
  expect_error("kind: dragonfly\np: 40000\na: 40000\nh: 2\n" + links, 2, {"ports", "65535"});
  expect_error("kind: dragonfly\np: 64\na: 128\nh: 64\n" + links, 4, {"nodes", "16777216"});
  expect_error(balanced + "global_link_delay: 0 ns\n" + links, 5, {"zero delay links"});
}

Topology megafly(std::uint32_t p, std::uint32_t leaves, std::uint32_t spines, std::uint32_t h,
                 const std::string& more = "") {
  return machine(fmt::format(
      "{{kind: dragonfly_plus, p: {}, leaves: {}, spines: {}, h: {}, link_rate: 100 Gb/s, link_delay: 1 us{}}}", p,
      leaves, spines, h, more));
}

TEST(DragonflyPlus, CountsAndDistances) {
  // A. Shpiner et al. 2017: leaf, spine, spine, leaf is the longest way between hosts.
  for (const auto& [p, leaves, spines, h] :
       std::vector<std::array<std::uint32_t, 4>>{{4, 4, 4, 4}, {2, 2, 2, 2}, {1, 3, 2, 1}, {2, 4, 2, 3}}) {
    for (const std::string& arrangement : arrangements) {
      const std::uint32_t g = spines * h + 1;
      if (arrangement == "circulant" && g % 2 == 0) continue;
      SCOPED_TRACE(fmt::format("{} {} {} {} {}", p, leaves, spines, h, arrangement));
      const Topology topology = megafly(p, leaves, spines, h, ", arrangement: " + arrangement);
      const std::uint64_t n = std::uint64_t{g} * leaves * p;
      EXPECT_EQ(topology.graph.host_count(), n);
      EXPECT_EQ(topology.graph.switch_count(), g * (leaves + spines));
      EXPECT_EQ(test::links_of_class(topology, "local"), g * leaves * spines);
      EXPECT_EQ(test::links_of_class(topology, "global"), g * (g - 1) / 2);
      Histogram expected = {{0, n * (p - 1)}, {2, n * p * (leaves - 1)}, {3, n * (n - leaves * p)}};
      if (p == 1) expected.erase(0);
      EXPECT_EQ(histogram_of(topology), expected);
    }
  }
}

TEST(DragonflyPlus, ErrorsAtTheirLine) {
  const std::string links = "link_rate: 400 Gb/s\nlink_delay: 500 ns\n";
  expect_error("kind: dragonfly_plus\np: 2\nleaves: 2\nspines: 2\nh: 2\ng: 6\n" + links, 6, {"spines h + 1 = 5"});
  expect_error("kind: dragonfly_plus\np: 2\nleaves: 2\nspines: 0\nh: 2\n" + links, 4, {"0"});
}

}  // namespace
}  // namespace weft::dragonfly_test
