// SPDX-License-Identifier: GPL-2.0-only
// Cycles of links that wait for each other: Dally and Seitz, IEEE ToC C-36(5), 1987.
#include "fabric/probes/deadlock.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/topology/topology_builder.hpp"
#include "support/basics/random.hpp"
#include "support/documents/spec.hpp"

namespace weft::deadlock_test {
namespace {

using Cycle = std::vector<LinkLane>;

std::vector<WaitEdge> edges_of(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs) {
  std::vector<WaitEdge> edges;
  for (const auto& [from, to] : pairs) edges.push_back({{from, 0}, {to, 0}});
  return edges;
}
Cycle cycle_of(const std::vector<std::uint32_t>& links) {
  Cycle cycle;
  for (const std::uint32_t link : links) cycle.push_back({link, 0});
  return cycle;
}

TEST(deadlock, no_edges_and_trees_have_no_cycle) {
  EXPECT_TRUE(find_waiting_cycle({}).empty());
  EXPECT_TRUE(find_waiting_cycle(edges_of({{1, 2}})).empty());
  EXPECT_TRUE(find_waiting_cycle(edges_of({{1, 2}, {1, 3}, {2, 4}, {3, 4}, {4, 5}})).empty());
}

TEST(deadlock, a_cycle_begins_with_its_smallest_link) {
  EXPECT_EQ(find_waiting_cycle(edges_of({{7, 3}, {3, 9}, {9, 7}})), cycle_of({3, 9, 7}));
  EXPECT_EQ(find_waiting_cycle(edges_of({{4, 4}})), cycle_of({4}));
  EXPECT_EQ(find_waiting_cycle(edges_of({{2, 1}, {1, 2}})), cycle_of({1, 2}));
}

TEST(deadlock, what_leads_to_a_cycle_or_away_from_it_is_not_part_of_it) {
  EXPECT_EQ(find_waiting_cycle(edges_of({{0, 1}, {1, 5}, {5, 6}, {6, 7}, {7, 5}, {7, 8}, {8, 9}})),
            cycle_of({5, 6, 7}));
}

TEST(deadlock, the_shortest_of_several) {
  EXPECT_EQ(find_waiting_cycle(edges_of({{1, 2}, {2, 3}, {3, 4}, {4, 1}, {3, 5}, {5, 3}})), cycle_of({3, 5}));
  EXPECT_EQ(find_waiting_cycle(edges_of({{1, 2}, {2, 3}, {3, 1}, {11, 12}, {12, 11}})), cycle_of({11, 12}));
}

TEST(deadlock, lanes_of_one_link_are_different_buffers) {
  // A dateline: the ring continues in lane 1 and does not close.
  EXPECT_TRUE(find_waiting_cycle({{{1, 0}, {2, 0}}, {{2, 0}, {3, 0}}, {{3, 0}, {1, 1}}, {{1, 1}, {2, 1}}}).empty());
  const Cycle closed = find_waiting_cycle({{{1, 0}, {2, 0}}, {{2, 0}, {1, 1}}, {{1, 1}, {1, 0}}});
  EXPECT_EQ(closed, (Cycle{{1, 0}, {2, 0}, {1, 1}}));
}

TEST(deadlock, the_order_and_repetition_of_edges_do_not_matter) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<WaitEdge> edges;
    for (std::uint64_t i = 0; i < 40; ++i) {
      const std::uint64_t word = mix64(mix64(seed) + i);
      edges.push_back({{static_cast<std::uint32_t>(word % 25), static_cast<std::uint32_t>(word >> 20 & 1U)},
                       {static_cast<std::uint32_t>((word >> 32) % 25), static_cast<std::uint32_t>(word >> 50 & 1U)}});
    }
    const Cycle cycle = find_waiting_cycle(edges);
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const WaitEdge edge{cycle[i], cycle[(i + 1) % cycle.size()]};
      EXPECT_NE(std::find(edges.begin(), edges.end(), edge), edges.end()) << "seed " << seed;
    }
    if (!cycle.empty()) {
      EXPECT_EQ(cycle.front(), *std::min_element(cycle.begin(), cycle.end()));
    }
    std::vector<WaitEdge> other(edges.rbegin(), edges.rend());
    other.insert(other.end(), edges.begin(), edges.begin() + 10);
    EXPECT_EQ(find_waiting_cycle(other), cycle);
  }
}

TEST(deadlock, a_cycle_is_told_by_its_ports) {
  const Topology topology =
      build_topology(Spec::parse("{kind: star, hosts: 2, link_rate: 100 Gb/s, link_delay: 1 us}", "machine.yaml"));
  // Link 0 joins host 0 (its direction 0 leaves there) and the switch.
  EXPECT_EQ(describe_cycle({{0, 0}, {1, 0}}, topology.graph), "host0:0 -> switch0:0 -> host0");
  EXPECT_EQ(describe_cycle({}, topology.graph), "");
}

}  // namespace
}  // namespace weft::deadlock_test
