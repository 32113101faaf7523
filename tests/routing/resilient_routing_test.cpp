// SPDX-License-Identifier: GPL-2.0-only
// Resilient hashing against plain ECMP, on a leaf-spine whose first leaf has lost its first spine.
#include "routing/composed/resilient_routing.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/routing/broken_leaf.hpp"

namespace weft::resilient_routing_test {
namespace {

using test::BrokenLeaf;
using test::shortest_paths;

constexpr std::uint32_t flows = test::broken_leaf_flows;

TEST(resilient_routing, only_flows_of_the_dead_port_move) {
  const BrokenLeaf machine(1);
  const auto resilient = resilient_routing(*machine.usual, shortest_paths(machine.topology, machine.dead));
  const auto before = BrokenLeaf::ports(*machine.usual, machine.leaf, 0, 2);
  const auto plain = BrokenLeaf::ports(*machine.plain, machine.leaf, 0, 2);
  const auto after = BrokenLeaf::ports(*resilient, machine.leaf, 0, 2);
  std::uint32_t moved_in_vain = 0;
  for (std::uint32_t i = 0; i < flows; ++i) {
    ASSERT_FALSE(machine.is_dead(after[i])) << i;
    EXPECT_EQ(after[i], machine.is_dead(before[i]) ? plain[i] : before[i]) << i;
    if (!machine.is_dead(before[i]) && plain[i] != before[i]) ++moved_in_vain;
  }
  // A hash h in [0, 1) chooses spine floor(4 h), and without the first one spine 1 + floor(3 h). Kept are h in
  // [1/4, 1/3), [1/2, 2/3) and [3/4, 1), a half; a quarter has to move, a quarter moves in vain.
  EXPECT_NEAR(moved_in_vain, flows / 4.0, 5 * std::sqrt(flows * 3.0 / 16));
}

// What comes back passes the dead spine's other leaf, which has lost no link itself.
TEST(resilient_routing, the_other_leaf_avoids_a_spine_that_leads_nowhere) {
  const BrokenLeaf machine(1);
  const auto resilient = resilient_routing(*machine.usual, shortest_paths(machine.topology, machine.dead));
  const auto before = BrokenLeaf::ports(*machine.usual, machine.other_leaf, 2, 0);
  const auto after = BrokenLeaf::ports(*resilient, machine.other_leaf, 2, 0);
  const auto left = machine.plain->candidates(machine.other_leaf, NodeId(0));
  ASSERT_EQ(left.size(), 3U);
  for (std::uint32_t i = 0; i < flows; ++i) {
    ASSERT_NE(std::find(left.begin(), left.end(), after[i]), left.end()) << i;
    const bool stays = std::find(left.begin(), left.end(), before[i]) != left.end();
    EXPECT_EQ(after[i] == before[i], stays) << i;
  }
}

TEST(resilient_routing, without_a_way_there_is_no_route) {
  const BrokenLeaf machine(4);
  const auto resilient = resilient_routing(*machine.usual, shortest_paths(machine.topology, machine.dead));
  for (const std::uint16_t port : BrokenLeaf::ports(*resilient, machine.leaf, 0, 2))
    ASSERT_EQ(port, RoutingAlgorithm::no_route);
}

}  // namespace
}  // namespace weft::resilient_routing_test
