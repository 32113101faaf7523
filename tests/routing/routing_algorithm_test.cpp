// SPDX-License-Identifier: GPL-2.0-only
// The ECMP hash: even, independent between nodes, seeds and queue pairs.
#include "routing/algorithm/routing_algorithm.hpp"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

namespace weft::routing_algorithm_test {
namespace {

constexpr std::uint32_t choices = 4;

/// Sum of (count - mean)^2 / mean over the cells of a table filled by `cell` for all ordered pairs of 128 hosts. With
/// independent uniform draws its mean is the number of cells minus 1 and its variance twice that.
double chi_square(std::size_t cells, const std::function<std::size_t(RouteRequest)>& cell) {
  std::vector<double> count(cells, 0);
  double total = 0;
  for (std::uint32_t source = 0; source < 128; ++source) {
    for (std::uint32_t destination = 0; destination < 128; ++destination) {
      if (source == destination) continue;
      count.at(cell({NodeId(source), NodeId(destination), 0})) += 1;
      total += 1;
    }
  }
  const double mean = total / static_cast<double>(cells);
  double sum = 0;
  for (const double c : count) sum += (c - mean) * (c - mean) / mean;
  return sum;
}

/// Four standard deviations above the mean.
double limit(std::size_t cells) {
  const double degrees = static_cast<double>(cells - 1);
  return degrees + 4 * std::sqrt(2 * degrees);
}

std::size_t choose(const RouteRequest& flow, std::uint32_t node, std::uint64_t seed) {
  return ecmp_choice(ecmp_hash(flow, NodeId(node), seed), choices);
}

TEST(EcmpHash, EvenAtEveryNode) {
  for (const std::uint32_t node : {0U, 1U, 128U, 129U, 207U})
    for (const std::uint64_t seed : {0U, 1U, 2U})
      EXPECT_LT(chi_square(choices, [&](const RouteRequest& flow) { return choose(flow, node, seed); }),
                limit(choices));
}

TEST(EcmpHash, NodesSeedsAndQueuePairsChooseIndependently) {
  constexpr std::size_t cells = choices * choices;
  for (std::uint32_t other = 129; other < 209; ++other) {
    const auto pair = [&](const RouteRequest& flow) { return choose(flow, 128, 1) * choices + choose(flow, other, 1); };
    EXPECT_LT(chi_square(cells, pair), limit(cells)) << "node " << other;
  }
  for (std::uint64_t seed = 2; seed < 20; ++seed) {
    const auto pair = [&](const RouteRequest& flow) {
      return choose(flow, 128, 1) * choices + choose(flow, 128, seed);
    };
    EXPECT_LT(chi_square(cells, pair), limit(cells)) << "seed " << seed;
  }
  for (std::uint32_t queue_pair = 1; queue_pair < 20; ++queue_pair) {
    const auto pair = [&](const RouteRequest& flow) {
      const RouteRequest other{flow.source, flow.destination, queue_pair};
      return choose(flow, 128, 1) * choices + choose(other, 128, 1);
    };
    EXPECT_LT(chi_square(cells, pair), limit(cells)) << "queue pair " << queue_pair;
  }
}

TEST(EcmpHash, TheNextSeedIsNotTheNextNode) {
  const RouteRequest flow{NodeId(3), NodeId(5), 0};
  EXPECT_NE(ecmp_hash(flow, NodeId(20), 1), ecmp_hash(flow, NodeId(21), 0));
}

TEST(EcmpChoice, IsFloorOfTheScaledHash) {
  EXPECT_EQ(ecmp_choice(0xffffffffU, 1), 0U);
  for (const std::uint32_t n : {2U, 3U, 5U, 64U, 65535U}) {
    EXPECT_EQ(ecmp_choice(0, n), 0U);
    EXPECT_EQ(ecmp_choice(0xffffffffU, n), n - 1);
    for (std::uint64_t i = 0; i < 100; ++i) {
      const auto hash = static_cast<std::uint32_t>(random_bits(1, n, i));
      EXPECT_EQ(ecmp_choice(hash, n), static_cast<std::uint64_t>(hash) * n / (1ULL << 32));
    }
  }
}

}  // namespace
}  // namespace weft::routing_algorithm_test
