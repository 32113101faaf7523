// SPDX-License-Identifier: GPL-2.0-only
// Rounds of the algorithms with a closed form, for 2 to 33 and for 48, 63, 64 and 100 ranks: messages on the longest
// chain of which each waits for the one before. R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005,
// doi:10.1177/1094342005051521, for most; De Sensi et al., "Swing", NSDI 2024, and NCCL's trees and PAT.
//
// No rank can have heard of all others, each message telling of whatever its sender had heard, in fewer than
// ceil(log2 P) rounds if nobody sends to two or receives from two in one of them; a binomial tree's root does send to
// several without waiting, and needs floor(log2 P).
#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "schedule/collective/collective.hpp"
#include "schedule/collective/collective_cost.hpp"

namespace weft::collective_rounds_test {
namespace {

struct Law {
  const char* name;  // for people
  std::function<std::uint64_t(std::uint32_t ranks)> rounds;
};

std::uint64_t floor_log2(std::uint32_t ranks) { return static_cast<std::uint64_t>(std::bit_width(ranks)) - 1; }
std::uint64_t ceil_log2(std::uint32_t ranks) { return static_cast<std::uint64_t>(std::bit_width(ranks - 1)); }

const Law one = {"1", [](std::uint32_t) { return 1; }};
const Law two = {"2", [](std::uint32_t) { return 2; }};
const Law others = {"P - 1", [](std::uint32_t ranks) { return ranks - 1; }};
const Law others_twice = {"2 (P - 1)", [](std::uint32_t ranks) { return 2 * (ranks - 1); }};
const Law levels = {"ceil(log2 P)", ceil_log2};
const Law levels_twice = {"2 ceil(log2 P)", [](std::uint32_t ranks) { return 2 * ceil_log2(ranks); }};
const Law tree = {"floor(log2 P)", floor_log2};
const Law tree_twice = {"2 floor(log2 P)", [](std::uint32_t ranks) { return 2 * floor_log2(ranks); }};

struct Case {
  const char* algorithm;
  CollectiveKind kind;
  const Law* law;
  bool powers_of_two_only = false;
};

const std::vector<Case> cases = {
    {"ring", CollectiveKind::all_reduce, &others_twice},
    {"ring", CollectiveKind::all_gather, &others},
    {"ring", CollectiveKind::reduce_scatter, &others},
    {"ring", CollectiveKind::broadcast, &others},
    {"ring", CollectiveKind::reduce, &others},
    {"bidirectional_ring", CollectiveKind::all_reduce, &others_twice},
    {"chain", CollectiveKind::broadcast, &others},
    {"chain", CollectiveKind::all_reduce, &others_twice},
    {"pairwise", CollectiveKind::all_to_all, &others},
    {"recursive_doubling", CollectiveKind::all_reduce, &levels, true},
    {"recursive_doubling", CollectiveKind::all_gather, &levels, true},
    {"halving_doubling", CollectiveKind::all_reduce, &levels_twice},
    {"halving_doubling", CollectiveKind::reduce_scatter, &levels, true},
    {"halving_doubling", CollectiveKind::all_gather, &levels, true},
    {"swing", CollectiveKind::all_reduce, &levels_twice},
    {"double_binary_tree", CollectiveKind::all_reduce, &levels_twice},
    {"bruck", CollectiveKind::all_gather, &levels},
    {"bruck", CollectiveKind::all_to_all, &levels},
    {"bruck", CollectiveKind::barrier, &levels},
    {"pat", CollectiveKind::all_gather, &levels},
    {"pat", CollectiveKind::reduce_scatter, &levels},
    {"binomial", CollectiveKind::broadcast, &tree},
    {"binomial", CollectiveKind::reduce, &tree},
    {"binomial", CollectiveKind::gather, &tree},
    {"binomial", CollectiveKind::scatter, &tree},
    {"binomial", CollectiveKind::all_reduce, &tree_twice},
    {"binomial", CollectiveKind::barrier, &tree_twice},
    {"linear", CollectiveKind::broadcast, &one},
    {"linear", CollectiveKind::all_to_all, &one},
    {"linear", CollectiveKind::all_reduce, &two},
    {"direct", CollectiveKind::all_gather, &one},
    {"direct", CollectiveKind::all_reduce, &two},
};

class Rounds : public testing::TestWithParam<Case> {};

TEST_P(Rounds, AreThoseOfTheLaw) {
  const Case& c = GetParam();
  std::vector<std::uint32_t> counts = {48, 63, 64, 100};
  for (std::uint32_t ranks = 2; ranks <= 33; ++ranks) counts.push_back(ranks);
  for (const std::uint32_t ranks : counts) {
    if (c.powers_of_two_only && !std::has_single_bit(ranks)) continue;
    const Communicator communicator(0, ranks);
    CollectiveCall call;
    call.kind = c.kind;
    call.algorithm = c.algorithm;
    call.communicator = &communicator;
    call.size = Bytes(std::int64_t{ranks} * 4096);
    call.tuning.chunk = Bytes::mib(1024);  // each exchange is one message
    call.tuning.slices = 1;
    const CollectiveCost cost =
        model_cost(*find_collective(c.algorithm), call, Time::from_us(1), Bandwidth::from_bps(100'000'000'000));
    ASSERT_TRUE(cost.finished) << ranks << " ranks";
    ASSERT_EQ(cost.rounds, c.law->rounds(ranks)) << ranks << " ranks: " << c.law->name;
  }
}

std::string case_name(const testing::TestParamInfo<Case>& tested) {
  return fmt::format("{}_{}", tested.param.algorithm, to_text(tested.param.kind));
}
INSTANTIATE_TEST_SUITE_P(Registered, Rounds, testing::ValuesIn(cases), case_name);

}  // namespace
}  // namespace weft::collective_rounds_test
