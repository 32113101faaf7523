// SPDX-License-Identifier: GPL-2.0-only
// ASTRA-sim's collectives by dimension: right on grids of all kinds, with its numbers of messages and bytes.
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "schedule/collective/collective.hpp"
#include "schedule/collective/collective_check.hpp"

namespace weft::by_dimension_test {
namespace {

using Algorithm = DimensionAlgorithms::Entry;
constexpr Algorithm ring{DimensionAlgorithm::ring, 0}, direct{DimensionAlgorithm::direct, 0},
    direct1{DimensionAlgorithm::direct, 1}, direct3{DimensionAlgorithm::direct, 3},
    halving{DimensionAlgorithm::halving_doubling, 0}, tree{DimensionAlgorithm::double_binary_tree, 0},
    one_halving{DimensionAlgorithm::one_halving_doubling, 0};

class ByDimensionTest : public testing::Test {
 protected:
  CollectiveCall& call(CollectiveKind kind, const std::vector<std::uint32_t>& dimensions,
                       const std::vector<Algorithm>& algorithms, std::int64_t size) {
    std::uint32_t ranks = 1;
    for (const std::uint32_t k : dimensions) ranks *= k;
    communicator_ = Communicator(0, ranks);
    call_ = CollectiveCall{};
    call_.kind = kind;
    call_.communicator = &communicator_;
    call_.size = Bytes(size);
    call_.algorithm = "by_dimension";
    call_.tuning.dimensions = dimensions;
    call_.tuning.dimension_algorithms.all = algorithms;
    return call_;
  }
  CollectiveReplay replayed() const {
    const auto algorithm = CollectiveRegistry::instance().find("by_dimension")->make();
    EXPECT_EQ(algorithm->refuses(call_), "");
    CollectiveReplay result = replay(*algorithm, call_);
    EXPECT_TRUE(result.violations.empty())
        << fmt::format("{} of {} B on {}, splits {}, channels {}\n{}", to_text(call_.kind), call_.size.count(),
                       fmt::join(call_.tuning.dimensions, "x"), call_.tuning.splits, call_.tuning.channels,
                       fmt::join(result.violations, "\n"));
    return result;
  }
  std::string refusal() const { return CollectiveRegistry::instance().find("by_dimension")->make()->refuses(call_); }

  Communicator communicator_{0, 1};
  CollectiveCall call_;
};

TEST_F(ByDimensionTest, is_right_on_grids_of_all_kinds) {
  struct Grid {
    std::vector<std::uint32_t> dimensions;
    std::vector<Algorithm> algorithms;
  };
  const std::vector<Grid> grids = {{{8}, {ring}},
                                   {{8}, {direct}},
                                   {{8}, {direct1}},
                                   {{5}, {direct3}},
                                   {{3, 4}, {direct3, direct1}},
                                   {{8}, {halving}},
                                   {{4, 3}, {halving, ring}},
                                   {{3, 4}, {direct, halving}},
                                   {{2, 3, 4}, {ring}},
                                   {{4, 1, 2}, {halving, ring, direct}},
                                   {{1, 5}, {direct}},
                                   {{2, 2, 2}, {halving}}};
  for (const auto& [dimensions, algorithms] : grids)
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                      CollectiveKind::all_gather, CollectiveKind::all_to_all})
      for (const std::int64_t size : {1, 24, 1000, 24 * 64, 24 * 1024 + 17})
        for (const std::uint32_t splits : {0U, 5U})
          for (const std::uint32_t channels : {1U, 2U}) {
            call(kind, dimensions, algorithms, size);
            call_.tuning.splits = splits;
            call_.tuning.channels = channels;
            if (kind == CollectiveKind::all_to_all && refusal() != "") continue;
            ASSERT_NO_FATAL_FAILURE(replayed());
            if (HasFailure()) return;
          }
}

TEST_F(ByDimensionTest, all_reduce_of_each_dimension_and_trees) {
  for (const auto& algorithms : {std::vector{ring}, {direct, ring}, {tree}, {tree, halving}, {halving, tree}})
    for (const std::uint32_t splits : {1U, 3U}) {
      call(CollectiveKind::all_reduce, {4, 8}, algorithms, 3000);
      call_.tuning.splits = splits;
      call_.tuning.each_dimension_whole = true;
      ASSERT_NO_FATAL_FAILURE(replayed());
    }
  call(CollectiveKind::all_reduce, {3, 4, 8}, {ring, halving, tree}, 9000);
  call_.tuning.splits = 4;
  replayed();
}

// Ring.cc: 2 (k - 1) messages of S/k in an all-reduce, k - 1 otherwise; a chunk after another.
TEST_F(ByDimensionTest, counts_of_a_ring) {
  constexpr std::int64_t n = 128, size = 128 * 4096;
  call(CollectiveKind::all_reduce, {n}, {ring}, size).tuning.splits = 4;
  const CollectiveReplay result = replayed();
  EXPECT_EQ(result.messages, n * 4 * 2 * (n - 1));
  for (const Bytes sent : result.sent) EXPECT_EQ(sent.count(), 2 * (n - 1) * size / n);
  call(CollectiveKind::all_gather, {n}, {ring}, size);
  EXPECT_EQ(replayed().messages, n * (n - 1));
}

// localBWAware on 8 x 4: reduce-scatter of S in 8, all-reduce of S/8 in 4, all-gather back.
TEST_F(ByDimensionTest, counts_of_two_dimensions) {
  constexpr std::int64_t size = 32 * 1024;
  call(CollectiveKind::all_reduce, {8, 4}, {ring, ring}, size).tuning.splits = 2;
  CollectiveReplay result = replayed();
  EXPECT_EQ(result.messages, 32 * 2 * (2 * 7 + 2 * 3));
  for (const Bytes sent : result.sent) EXPECT_EQ(sent.count(), 2 * 7 * size / 8 + 2 * 3 * size / 32);
  // baseline: everything in each dimension.
  call_.tuning.each_dimension_whole = true;
  result = replayed();
  for (const Bytes sent : result.sent) EXPECT_EQ(sent.count(), 2 * 7 * size / 8 + 2 * 3 * size / 4);
  // Each block is one message, for any order of the blocks of a dimension in the buffer.
  call(CollectiveKind::reduce_scatter, {8, 4}, {ring, halving}, size);
  result = replayed();
  EXPECT_EQ(result.messages, 32 * (7 + 2));
  for (const Bytes sent : result.sent) EXPECT_EQ(sent.count(), 7 * size / 8 + 3 * size / 32);
}

// Ring.cc: an all-to-all in a ring of k passes k (k - 1) / 2 messages of S/k from neighbour to neighbour; AllToAll.cc:
// k - 1 straight ones. Each dimension moves all bytes.
TEST_F(ByDimensionTest, counts_of_all_to_all) {
  constexpr std::int64_t size = 24 * 512;
  call(CollectiveKind::all_to_all, {6, 4}, {ring, direct}, size);
  const CollectiveReplay result = replayed();
  EXPECT_EQ(result.messages, 24 * (6 * 5 / 2 + 3));
  for (const Bytes sent : result.sent) EXPECT_EQ(sent.count(), 15 * size / 6 + 3 * size / 4);
}

// A window changes when messages go, not which.
TEST_F(ByDimensionTest, windows_send_the_same) {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
    call(kind, {6}, {direct}, 600);
    const CollectiveReplay all_at_once = replayed();
    call(kind, {6}, {direct1}, 600);
    EXPECT_EQ(replayed().messages, all_at_once.messages);
    EXPECT_EQ(replayed().total_sent(), all_at_once.total_sent());
  }
}

TEST(DimensionEntry, names_with_windows) {
  EXPECT_EQ(parse_dimension_entry("direct"), direct);
  EXPECT_EQ(parse_dimension_entry("direct3"), direct3);
  EXPECT_EQ(to_text(direct3), "direct3");
  for (const char* name : {"ring4", "direct0", "direct01", "direct12345678901", "4", "", "indirect1"})
    EXPECT_EQ(parse_dimension_entry(name), std::nullopt) << name;
}

// HalvingDoubling.cc: 2 log2 k messages. DoubleBinaryTreeAllReduce.cc: every rank but the root sends its chunk up and
// gets it back: 2 (k - 1) messages of a whole chunk.
TEST_F(ByDimensionTest, counts_of_halving_and_trees) {
  call(CollectiveKind::all_reduce, {16}, {halving}, 16 * 64);
  EXPECT_EQ(replayed().messages, 16 * 2 * 4);
  call(CollectiveKind::all_reduce, {16}, {tree}, 16 * 64).tuning.splits = 2;
  const CollectiveReplay result = replayed();
  EXPECT_EQ(result.messages, 2 * 2 * 15);
  EXPECT_EQ(result.total_sent().count(), 2 * 15 * 16 * 64);
}

// CommunicatorGroup.cc: a group that is not all ranks runs in a ring.
TEST_F(ByDimensionTest, another_communicator_is_a_ring) {
  call(CollectiveKind::all_reduce, {6}, {halving}, 600);
  call_.tuning.dimensions = {8, 4};
  EXPECT_EQ(replayed().messages, 6 * 10);
}

TEST_F(ByDimensionTest, kinds_may_differ_and_one_ring_is_of_all_ranks) {
  call(CollectiveKind::all_reduce, {4, 4}, {ring}, 16 * 64);
  call_.tuning.dimension_algorithms.of_kind[CollectiveKind::all_reduce] = {one_halving};
  EXPECT_EQ(replayed().messages, 16 * 8);
  call_.kind = CollectiveKind::all_gather;
  EXPECT_EQ(replayed().messages, 16 * 6);
}

TEST_F(ByDimensionTest, refuses_what_the_algorithms_cannot_do) {
  call(CollectiveKind::all_reduce, {6}, {halving}, 600);
  EXPECT_EQ(refusal(), "dimension 0 has 6 ranks, and halving_doubling needs a power of two");
  call(CollectiveKind::all_gather, {4}, {tree}, 600);
  EXPECT_NE(refusal().find("double_binary_tree"), std::string::npos);
  call(CollectiveKind::all_reduce, {4, 4}, {tree, ring}, 600);
  EXPECT_NE(refusal(), "");
  call(CollectiveKind::all_to_all, {4}, {halving}, 600);
  EXPECT_EQ(refusal(), "halving_doubling in dimension 0 has no all_to_all");
  call(CollectiveKind::all_reduce, {4}, {ring, ring}, 600);
  EXPECT_EQ(refusal(), "2 dimension_algorithms for 1 dimensions");
}

}  // namespace
}  // namespace weft::by_dimension_test
