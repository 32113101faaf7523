// SPDX-License-Identifier: GPL-2.0-only
// Kernels that fp8 adds to a block: casts and transpositions by hand.
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/workloads/compute/block_under_test.hpp"

namespace weft::test::fp8_casts_test {
namespace {

/// Bytes of small kernels that fp8 adds to a block in bf16.
struct MoreInFp8 {
  std::int64_t forward, backward;
};

MoreInFp8 more_in_fp8(const std::string& device, std::int64_t t, const std::string& model) {
  BlockOfGpt plain("megatron_core", t, model), cast("megatron_core", t, model);
  for (BlockOfGpt* one : {&plain, &cast}) {
    one->times = OperatorTimes(read_device(Spec::load(workloads_folder() + "/devices/" + device + ".yaml")));
    one->description.parallel.sequence = t > 1;
    one->description.padded_copies = false;
  }
  cast.description.precision = "fp8";
  const auto more = [&](const std::vector<Segment> PartPasses::*pass) {
    return small_kernels(cast.passes().*pass).bytes - small_kernels(plain.passes().*pass).bytes;
  };
  return {more(&PartPasses::forward), more(&PartPasses::backward)};
}

// fp8 of Megatron-Core: both norms write a byte less; context and activation are cast and transposed, 4 B. Backward the
// gradients of QKV 4 B, of both projections' results 4 B, of both halves of the up projection 8 B, with their
// transpositions; the inputs behind both norms are transposed, 2 B.
TEST(KernelCatalogue, CastsOfFp8ByHand) {
  const MoreInFp8 llama = more_in_fp8("h100-sxm", 1, "llama-3.1-8b");
  EXPECT_EQ(llama.forward, (4 - 2) * Llama::n + 4 * Llama::tokens * Llama::f);
  EXPECT_EQ(llama.backward,
            4 * Llama::tokens * (Llama::h + 2 * Llama::kd) + (2 * 4 + 2 * 2) * Llama::n + 8 * Llama::tokens * Llama::f);
  // Without gates the up projection gives one half, here of 4 h; QKV have 3 h.
  const std::int64_t n = BlockOfGpt::b * BlockOfGpt::s * 768;
  const MoreInFp8 gpt = more_in_fp8("h100-sxm", 1, "gpt2");
  EXPECT_EQ(gpt.forward, (4 - 2) * n + 4 * 4 * n);
  EXPECT_EQ(gpt.backward, 4 * 3 * n + (2 * 4 + 2 * 2) * n + 4 * 4 * n);
}

// Four tensor ranks with sequence parallelism gather in fp8 what the GEMMs behind norms and for both gradients of
// results read. A rank casts its share, but transposes all of it: 2 B of N four times in the backward pass. Context and
// activation are its own, and transposed in the backward pass. Where GEMMs read factors either way nothing is
// transposed.
TEST(KernelCatalogue, CastsOfFp8OnTensorRanksByHand) {
  const std::int64_t qkv = Llama::tokens * (Llama::h + 2 * Llama::kd), inner = Llama::tokens * Llama::f;
  const MoreInFp8 hopper = more_in_fp8("h100-sxm", 4, "llama-3.1-8b");
  EXPECT_EQ(hopper.forward, (3 - 2) * Llama::n / 4 + 3 * inner / 4);
  EXPECT_EQ(hopper.backward,
            4 * qkv / 4 + 2 * 3 * Llama::n / 4 + 4 * 2 * Llama::n + 2 * Llama::n / 4 + (2 + 8) * inner / 4);
  const MoreInFp8 blackwell = more_in_fp8("b200-sxm", 4, "llama-3.1-8b");
  EXPECT_EQ(blackwell.forward, hopper.forward);
  EXPECT_EQ(blackwell.backward, 3 * qkv / 4 + 2 * 3 * Llama::n / 4 + 6 * inner / 4);
}

// A mixture's norm writes 16 bits. Copies of tokens, two of each, and the experts' activation are cast and transposed,
// and so are the gradients of what the experts give and of both halves of the up projection. No GEMM of the block
// itself reads what the norm gives, or the gradient of the sum of results.
TEST(KernelCatalogue, CastsOfFp8OfExpertsByHand) {
  const std::int64_t inner = 2 * Llama::tokens * Llama::f;
  const MoreInFp8 experts = more_in_fp8("h100-sxm", 1, "mixtral-8x7b");
  EXPECT_EQ(experts.forward, (4 - 1) * Llama::n + 4 * 2 * Llama::n + 4 * inner);
  EXPECT_EQ(experts.backward,
            4 * Llama::tokens * (Llama::h + 2 * Llama::kd) + (4 + 2) * Llama::n + 4 * 2 * Llama::n + 8 * inner);
}

// Scaled in blocks each cast reads 2 B and writes a tensor and its transposition, each with a scale of 4 B for 128
// (DeepSeek-AI, arXiv:2412.19437, 3.3; NVIDIA, Transformer Engine, Float8BlockScaling). Forward: what comes of two
// norms, context, activation; backward: the gradients of QKV, of both projections' results, of both halves of the up
// projection.
TEST(KernelCatalogue, CastsOfFp8InBlocksByHand) {
  BlockOfGpt plain("megatron_core", 1, "llama-3.1-8b"), cast("megatron_core", 1, "llama-3.1-8b");
  cast.description.precision = "fp8_block";
  cast.times = OperatorTimes(read_device(Spec::load(workloads_folder() + "/devices/h100-sxm.yaml")));
  const auto more = [&](const std::vector<Segment> PartPasses::*pass) {
    return static_cast<double>(small_kernels(cast.passes().*pass).bytes - small_kernels(plain.passes().*pass).bytes);
  };
  const double each = 2 + 2 * (1 + 4.0 / 128);
  const auto n = static_cast<double>(Llama::n), tokens = static_cast<double>(Llama::tokens);
  EXPECT_DOUBLE_EQ(more(&PartPasses::forward), each * (3 * n + tokens * static_cast<double>(Llama::f)));
  EXPECT_DOUBLE_EQ(more(&PartPasses::backward),
                   each * (tokens * static_cast<double>(Llama::h + 2 * Llama::kd + 2 * Llama::f) + 2 * n));
  // Weights, once a step: a scale for 128 x 128 of each of the two.
  for (const SmallKernel& one : cast.kernels.optimizer) {
    if (!one.needs(KernelWhen::fp8_block)) continue;
    EXPECT_EQ(kernel_of(one, 128 * 128 * 10, "bf16").bytes, 10 * (128 * 128 * (2 + 2) + 2 * 4));
  }
}

// torchao, forward: inputs of both norms, context and activation are read for their largest and to be cast, 5 B.
// Backward: the same of gradients of QKV, of both results, of both halves of the up projection; and all gradients and
// inputs transposed, 2 B.
TEST(KernelCatalogue, CastsOfTorchaoByHand) {
  BlockOfGpt plain("pytorch_compiled", 1, "llama-3.1-8b"), cast("pytorch_compiled", 1, "llama-3.1-8b");
  cast.description.precision = "fp8";
  cast.times = OperatorTimes(read_device(Spec::load(workloads_folder() + "/devices/h100-sxm.yaml")));
  const auto more = [&](const std::vector<Segment> PartPasses::*pass) {
    return small_kernels(cast.passes().*pass).bytes - small_kernels(plain.passes().*pass).bytes;
  };
  EXPECT_EQ(more(&PartPasses::forward), 5 * (3 * Llama::n + Llama::tokens * Llama::f));
  EXPECT_EQ(more(&PartPasses::backward), (5 + 2) * Llama::tokens * (Llama::h + 2 * Llama::kd) +
                                             (2 * 5 + 5 * 2) * Llama::n + (10 + 4 + 2) * Llama::tokens * Llama::f);
}

}  // namespace
}  // namespace weft::test::fp8_casts_test
