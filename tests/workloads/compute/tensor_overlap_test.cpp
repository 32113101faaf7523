// SPDX-License-Identifier: GPL-2.0-only
// GEMMs of a block beside calls of tensor ranks: pieces, their sizes and kernels.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/workloads/compute/block_under_test.hpp"

namespace weft::test::tensor_overlap_test {
namespace {

/// A block on four tensor ranks with sequence parallelism.
struct Overlapped : BlockOfGpt {
  explicit Overlapped(bool overlap, const std::string& precision = "bf16", const std::string& model = "llama-3.1-8b")
      : BlockOfGpt("megatron_core", 4, model) {
    const std::string device = precision == "bf16" ? "a100-sxm" : "b200-sxm";
    times = OperatorTimes(read_device(Spec::load(workloads_folder() + "/devices/" + device + ".yaml")));
    times.in_a_step();
    description.precision = precision;
    description.parallel.sequence = true;
    if (overlap) description.tensor_overlap = default_tensor_overlap();
  }
};

bool is_in_parts(const Segment& segment) {
  return segment.kind == Segment::Kind::gathering || segment.kind == Segment::Kind::summing ||
         segment.kind == Segment::Kind::scattering;
}

std::vector<std::string> in_parts(const std::vector<Segment>& pass) {
  std::vector<std::string> found;
  for (const Segment& segment : pass)
    if (is_in_parts(segment)) found.emplace_back(segment.what);
  return found;
}

double flops(const std::vector<Segment>& pass) {
  double sum = 0;
  for (const Segment& segment : pass) sum += segment.flops * static_cast<double>(segment.parts);
  return sum;
}

/// Bytes that calls and messages of tensor ranks have gathered or summed when they are done.
std::int64_t moved(const std::vector<Segment>& pass) {
  std::int64_t bytes = 0;
  for (const Segment& segment : pass) {
    const bool call = segment.kind == Segment::Kind::collective;
    if (call || is_in_parts(segment)) bytes += segment.size.count() * (call ? 1 : segment.parts);
  }
  return bytes;
}

constexpr std::int64_t whole = Llama::n * 2;  // bytes of all hidden vectors

using Names = std::vector<std::string>;

TEST(TensorOverlap, PiecesOfABlock) {
  const PartPasses plain = Overlapped(false).passes(), cut = Overlapped(true).passes();
  EXPECT_EQ(in_parts(plain.forward), Names{});
  EXPECT_EQ(in_parts(cut.forward), (Names{"attention QKV", "attention projection", "MLP up", "MLP down"}));
  EXPECT_EQ(in_parts(cut.backward), (Names{"MLP down gradient", "attention projection gradient"}));
  for (const auto pass : {&PartPasses::forward, &PartPasses::backward}) {
    EXPECT_DOUBLE_EQ(flops(cut.*pass), flops(plain.*pass));
    EXPECT_EQ(moved(cut.*pass), moved(plain.*pass));
    EXPECT_EQ(small_kernels(cut.*pass).bytes, small_kernels(plain.*pass).bytes);
  }
  EXPECT_EQ(moved(cut.forward), 4 * whole);
  for (const Segment& segment : cut.forward) {
    if (!is_in_parts(segment)) continue;
    EXPECT_EQ(segment.parts, 4) << segment.what;  // ranks, or num_splits
  }
  // Backward, four calls are beside whole GEMMs: two gathers of inputs again, two sums of their gradients.
  int bulk = 0;
  for (const Segment& segment : cut.backward)
    if (segment.kind == Segment::Kind::collective) {
      EXPECT_EQ(segment.group, GroupKind::tensor_overlap) << segment.what;
      EXPECT_TRUE(segment.beside) << segment.what;
      EXPECT_EQ(segment.size.count(), whole) << segment.what;
      ++bulk;
    }
  EXPECT_EQ(bulk, 4);
}

// A part's GEMM has a part of the rows, or of the columns; the sum of all is no shorter than the whole one.
TEST(TensorOverlap, GemmsOfParts) {
  const Overlapped block(true);
  for (const Segment& segment : block.passes().forward) {
    if (!is_in_parts(segment)) continue;
    ASSERT_EQ(segment.kernels.size(), 1U);
    const Kernel& kernel = segment.kernels.front().kernel;
    EXPECT_EQ(kernel.count, 4);
    EXPECT_EQ(launches_of(kernel), 4);
    Kernel alone;
    alone.m = segment.kind == Segment::Kind::gathering ? 4 * kernel.m : kernel.m;
    alone.n = segment.kind == Segment::Kind::gathering ? kernel.n : 4 * kernel.n;
    alone.k = kernel.k;
    EXPECT_EQ(alone.m, Llama::tokens);
    EXPECT_GE(4 * segment.duration + Time::from_ps(4), block.times.of(alone)) << segment.what;
    // Sums leave 16 of the A100's 108 multiprocessors alone.
    const double units = segment.kind == Segment::Kind::summing ? 108.0 / 92 : 1;
    EXPECT_LT(segment.duration.seconds() * 4, 1.2 * units * block.times.of(alone).seconds()) << segment.what;
  }
}

// Columns of gradients scaled in blocks are gathered besides, beside the GEMM that reads rows; scales of weights are
// put in order once, those of inputs part by part.
TEST(TensorOverlap, GradientsInMxfp8AreGatheredTwice) {
  const PartPasses plain = Overlapped(false, "mxfp8").passes(), cut = Overlapped(true, "mxfp8").passes();
  EXPECT_EQ(moved(cut.backward), moved(plain.backward));
  for (const auto pass : {&PartPasses::forward, &PartPasses::backward})
    EXPECT_EQ(small_kernels(cut.*pass).bytes, small_kernels(plain.*pass).bytes);
  for (std::size_t i = 1; i < cut.backward.size(); ++i)
    if (cut.backward[i].kind == Segment::Kind::gathering) {
      EXPECT_EQ(cut.backward[i - 1].collective, CollectiveKind::all_gather);
      EXPECT_TRUE(cut.backward[i - 1].beside);
      EXPECT_EQ(cut.backward[i - 1].size.count(), 4 * cut.backward[i].size.count());
    }
}

// Buffers have a byte for each element. Its scales, a byte for each 32, are gathered before by a call for which the
// GEMM waits: one for each gather of a pass, forward 2, backward 2 of gradients along rows and along columns, and 2 in
// bulk.
TEST(TensorOverlap, ScalesOfMxfp8AreGatheredBefore) {
  const PartPasses plain = Overlapped(false, "mxfp8").passes(), cut = Overlapped(true, "mxfp8").passes();
  const auto scales_of = [](const std::vector<Segment>& pass) {
    std::vector<std::int64_t> sizes;
    for (const Segment& segment : pass)
      if (segment.what == "scales gather") {
        EXPECT_EQ(segment.group, GroupKind::tensor);
        EXPECT_FALSE(segment.beside);
        sizes.push_back(segment.size.count());
      }
    return sizes;
  };
  EXPECT_EQ(scales_of(cut.forward), std::vector<std::int64_t>(2, Llama::n / 32));
  EXPECT_EQ(scales_of(cut.backward), std::vector<std::int64_t>(6, Llama::n / 32));
  EXPECT_EQ(moved(cut.forward), moved(plain.forward));
  for (const Segment& segment : cut.forward)
    if (segment.kind == Segment::Kind::gathering) {
      EXPECT_EQ(4 * segment.size.count(), Llama::n);
    }
  for (const Segment& segment : cut.backward)
    if (segment.what == "MLP gather again") {
      EXPECT_EQ(segment.size.count(), Llama::n);
    }
  EXPECT_TRUE(scales_of(Overlapped(true, "fp8").passes().forward).empty());
}

TEST(TensorOverlap, ExpertsHaveNoBuffers) {
  const PartPasses cut = Overlapped(true, "bf16", "mixtral-8x7b").passes();
  EXPECT_EQ(in_parts(cut.forward), (Names{"attention QKV", "attention projection"}));
  EXPECT_EQ(in_parts(cut.backward), Names{"attention projection gradient"});
}

}  // namespace
}  // namespace weft::test::tensor_overlap_test
