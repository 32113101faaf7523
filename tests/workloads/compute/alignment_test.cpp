// SPDX-License-Identifier: GPL-2.0-only
// GEMMs whose rows in memory are aligned to few bytes: how long they take, which ones they are, complaints.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "tests/workloads/compute/block_under_test.hpp"
#include "workloads/compute/kernel_time.hpp"

namespace weft::test::alignment_test {
namespace {

/// 100 TFLOP/s in bf16 and 50 in fp32, tiles of 100 x 100 at half of it, and a bandwidth that never counts; beginning
/// and end of a tile take as long as 1,000 along k.
std::string toy(const std::string& alignment) {
  return "name: toy\npeak: {bf16: 100 TFLOP/s, fp32: 50 TFLOP/s}\nmemory_bandwidth: 1000 TB/s\nmemory: 10 GB\n"
         "efficiency: 0.9\nsustained:\n  gemms: {units: 10, inner_overhead: 1000, alignment: " +
         alignment + ", tiles: [[100, 100, 0.5]]}\n";
}

Device device(const std::string& text) {
  Device result = read_device(Spec::parse(text, "toy.yaml"));
  result.in_a_step = true;
  return result;
}

Kernel gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  return kernel;
}

// 1000 = 8 x 125 elements of 2 B are aligned to 16 B.
TEST(Alignment, IsThatOfTheRowsInMemory) {
  EXPECT_EQ(row_alignment(gemm(7, 1000, 1024)), 16);
  EXPECT_EQ(row_alignment(gemm(7, 1024, 1024)), 2048);
  EXPECT_EQ(row_alignment(gemm(7, 1024, 108)), 8);
  EXPECT_EQ(row_alignment(gemm(7, 66, 1024)), 4);
  EXPECT_EQ(row_alignment(gemm(8, 1024, 65)), 2);
  Kernel turned = gemm(1000, 1024, 7);
  turned.along_m = true;
  EXPECT_EQ(row_alignment(turned), 16);
  Kernel wide = gemm(7, 1024, 66);
  wide.precision = "fp32";
  EXPECT_EQ(row_alignment(wide), 8);
}

// 100 tiles at 10 at once: 2 * 1000 * 1000 (k / rate + 1000) FLOP at 50 TFLOP/s, 40 ns for each along k.
TEST(Alignment, SlowsTheLoopAlongKDown) {
  const Device some = device(toy("[[2 B, 0.25], [8 B, 0.5]]"));
  EXPECT_EQ(kernel_time(some, gemm(1000, 1000, 10'000)), Time::from_ns(40 * (10'000 + 1000)));
  EXPECT_EQ(kernel_time(some, gemm(1000, 1000, 10'004)), Time::from_ns(40 * (20'008 + 1000)));  // 8 B
  EXPECT_EQ(kernel_time(some, gemm(1000, 1000, 10'002)), Time::from_ns(40 * (20'004 + 1000)));  // 4 B: as the next
  EXPECT_EQ(kernel_time(some, gemm(1000, 1000, 10'001)), Time::from_ns(40 * (40'004 + 1000)));  // 2 B
  EXPECT_EQ(kernel_time(some, gemm(1000, 999, 10'000)), Time::from_ns(40 * (40'000 + 1000)));
  EXPECT_EQ(kernel_time(some, gemm(999, 1000, 10'000)), Time::from_ns(40 * (10'000 + 1000)));  // m: no row's length
  Kernel turned = gemm(1000, 1000, 10'001);
  turned.along_m = true;
  EXPECT_EQ(kernel_time(some, turned), Time::from_ns(40 * (10'001 + 1000)));
  turned.m = 999;
  EXPECT_EQ(kernel_time(some, turned), Time::from_ns(40 * (40'004 + 1000)));
}

// The rates are those of elements of 16 bits. In fp32 the peak is half.
TEST(Alignment, IsOfElementsOfSixteenBits) {
  Kernel wide = gemm(1000, 1000, 10'001);
  wide.precision = "fp32";
  EXPECT_EQ(kernel_time(device(toy("[[8 B, 0.5]]")), wide), Time::from_ns(80 * (10'001 + 1000)));
}

/// GEMMs of a pass over a block of BLOOM's trials by the alignment of their rows, 16 B and more together.
std::map<std::int64_t, int> of_block(std::int64_t heads, bool backward) {
  const TemporaryFile file("config.json",
                           R"({"model_type": "gpt2", "n_embd": 13824, "n_layer": 1, "n_positions": 2048,
                               "vocab_size": 50304, "n_head": )" +
                               std::to_string(heads) + "}");
  BlockOfGpt block("megatron_deepspeed", 4);
  block.description.model = read_model(JsonConfig::load(file.path()));
  const PartPasses passes = block.passes();
  std::map<std::int64_t, int> count;
  for (const Segment& segment : backward ? passes.backward : passes.forward)
    for (const KernelUse& use : segment.kernels)
      if (use.kernel.kind == Kernel::Kind::gemm) ++count[std::min<std::int64_t>(row_alignment(use.kernel), 16)];
  return count;
}

// 13824 / 128 heads have 108 elements, 216 B = 27 x 8 B: GEMMs of queries and keys and of scores and values, and
// backward those for the gradients of all four. 96 heads have 144 elements, 288 B = 18 x 16 B. The other four GEMMs of
// a block have sides of thousands; each has two backward.
TEST(Alignment, HeadsOf108ElementsAreOff) {
  EXPECT_EQ(of_block(128, false), (std::map<std::int64_t, int>{{8, 2}, {16, 4}}));
  EXPECT_EQ(of_block(128, true), (std::map<std::int64_t, int>{{8, 4}, {16, 8}}));
  EXPECT_EQ(of_block(96, false), (std::map<std::int64_t, int>{{16, 6}}));
  EXPECT_EQ(of_block(96, true), (std::map<std::int64_t, int>{{16, 12}}));
}

TEST(Alignment, Complaints) {
  const auto about = [](const std::string& alignment) { return complaint([&] { device(toy(alignment)); }); };
  EXPECT_TRUE(about("[]").starts_with("toy.yaml:7:")) << about("[]");
  EXPECT_NE(about("[]").find("no alignment; give at least one"), std::string::npos) << about("[]");
  EXPECT_NE(about("[[3 B, 0.5]]").find("a power of two up to 1 KiB"), std::string::npos) << about("[[3 B, 0.5]]");
  EXPECT_NE(about("[[8 B, 0.5], [4 B, 0.5]]").find("from few bytes to many"), std::string::npos);
  EXPECT_NE(about("[[8 B]]").find("such as [8 B, 0.6]"), std::string::npos);
  EXPECT_NE(about("[[8 B, 1.5]]").find("1.5"), std::string::npos);
}

}  // namespace
}  // namespace weft::test::alignment_test
