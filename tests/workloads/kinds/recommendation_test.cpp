// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `recommendation`: bytes from rank to rank, and errors.
#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::recommendation_test {
namespace {

const std::string start =
    "kind: recommendation\ndevice: a100-sxm\nranks: 4\nbatch: 100\ndimension: 16\ntables: [1000, 10, 10, 10, 10, 10]\n"
    "bottom_mlp: [13, 32, 16]\ntop_mlp: [37, 8, 1]\n";

TEST(Recommendation, ExchangesGoByTheTablesOfRanks) {
  const auto workload = read_workload(start + "pooling: 3\n", context_of(4));
  const std::int64_t tables[] = {2, 2, 1, 1};
  const CollectiveCall indices = workload->call(0), vectors = workload->call(1), gradients = workload->call(2);
  for (std::uint32_t from = 0; from < 4; ++from)
    for (std::uint32_t to = 0; to < 4; ++to) {
      // Indices of 8 bytes to where the table is; vectors of 16 numbers of 4 bytes back.
      EXPECT_EQ(indices.blocks->bytes(from, to), tables[to] * 100 * 3 * 8);
      EXPECT_EQ(vectors.blocks->bytes(from, to), tables[from] * 100 * 16 * 4);
      EXPECT_EQ(gradients.blocks->bytes(from, to), tables[to] * 100 * 16 * 4);
    }
  // Weights and biases: (37 + 1) 8 + (8 + 1) 1, and (13 + 1) 32 + (32 + 1) 16.
  EXPECT_EQ(workload->call(3).size.count(), 4 * (38 * 8 + 9));
  EXPECT_EQ(workload->call(4).size.count(), 4 * (14 * 32 + 33 * 16));
}

TEST(Recommendation, StepsFollowEachOtherAndRanksWithMoreTablesComputeLonger) {
  const auto workload = read_workload(start + "steps: 3\n", context_of(4));
  EXPECT_EQ(workload->call_count(), 15U);
  Time of_two, of_one;
  for (const Operation& operation : operations_of(*workload, 0)) of_two += operation.duration;
  for (const Operation& operation : operations_of(*workload, 3)) of_one += operation.duration;
  EXPECT_GT(of_two, of_one);
  EXPECT_EQ(workload->estimate().compute, of_two);
  const auto operations = operations_of(*workload, 1);
  ASSERT_EQ(operations.size() % 3, 0U);
  const std::size_t size = operations.size() / 3;
  for (std::size_t i = size; i < operations.size(); ++i) EXPECT_FALSE(operations[i].after.empty());
  EXPECT_EQ(operations[size].after, (std::vector<std::uint64_t>{size - 1}));
}

TEST(Recommendation, Complaints) {
  const auto context = context_of(4);
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = start;
    return text.replace(text.find(from), from.size(), to);
  };
  expect_complaint(with("ranks: 4", "ranks: 5"), context, "x.yaml:3", {"5 ranks"});
  expect_complaint(with("tables: [1000, 10, 10, 10, 10, 10]", "tables: []"), context, "x.yaml:6", {"empty"});
  expect_complaint(with("32, 16]", "32, 15]"), context, "x.yaml:7", {"15 outputs", "use 16"});
  expect_complaint(with("[37,", "[36,"), context, "x.yaml:8", {"36", "21 pairs", "37 inputs"});
  expect_complaint(start + "precision: fp8\n", context, "x.yaml:9", {"fp8"});
  expect_complaint(start + "poling: 2\n", context, "x.yaml:9", {"did you mean 'pooling'"});
}

}  // namespace
}  // namespace weft::test::recommendation_test
