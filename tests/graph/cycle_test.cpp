// SPDX-License-Identifier: GPL-2.0-only
// Shortest cycles of small directed graphs, for any order of the edges.
#include "graph/machine/cycle.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace weft::cycle_test {
namespace {

using Edges = std::vector<std::pair<std::size_t, std::size_t>>;
using Cycle = std::vector<std::size_t>;

TEST(cycle, none_without_a_way_back) {
  EXPECT_EQ(shortest_cycle(0, {}), Cycle());
  EXPECT_EQ(shortest_cycle(4, {{0, 1}, {1, 2}, {0, 2}, {2, 3}}), Cycle());
}

TEST(cycle, one_vertex_that_leads_to_itself) { EXPECT_EQ(shortest_cycle(3, {{0, 1}, {2, 2}}), Cycle({2})); }

TEST(cycle, the_shortest_of_several_in_any_order_of_edges) {
  // 0 -> 1 -> 2 -> 3 -> 0 has four vertices, 2 -> 4 -> 5 -> 2 has three; 6 only leads there.
  Edges edges = {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {2, 4}, {4, 5}, {5, 2}, {6, 0}};
  std::sort(edges.begin(), edges.end());
  do {
    ASSERT_EQ(shortest_cycle(7, edges), Cycle({2, 4, 5}));
  } while (std::next_permutation(edges.begin(), edges.end()));
}

TEST(cycle, begins_with_the_smallest_of_equally_short_ones) {
  EXPECT_EQ(shortest_cycle(5, {{3, 4}, {4, 3}, {1, 2}, {2, 1}}), Cycle({1, 2}));
}

}  // namespace
}  // namespace weft::cycle_test
