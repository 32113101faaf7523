// SPDX-License-Identifier: GPL-2.0-only
// Kernels of a mixture of experts: the router, permutations, padding, streams of GEMMs by hand.
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/workloads/compute/block_under_test.hpp"

namespace weft::test::expert_kernels_test {
namespace {

/// Of a block of Mixtral: elements of the copies of tokens and of the experts' inner width, choices, chosen experts,
/// and bytes of what a dense block does as well.
struct OfMixtral {
  std::int64_t copies = 2 * Llama::n, inner = 2 * Llama::tokens * Llama::f, choices = 8 * Llama::tokens,
               chosen = 2 * Llama::tokens;
  std::int64_t dense = 4 * Llama::queries_keys + 20 * Llama::n + 6 * inner;
  std::int64_t dense_back =
      24 * Llama::n + 4 * Llama::queries_keys + 4 * Llama::tokens * (Llama::h + 2 * Llama::kd) + 10 * inner;
};

const OfMixtral mixtral;

// Mixtral: 8 experts, of which each of T tokens has K = 2. `choices` are 8 T, `chosen` 2 T, `copies` 2 T h, N = T h.
// Router, forward, per choice: the best 4, probabilities zeros 4 and copy 8, their map 4 + 8 + 8 + 5, tokens of each
// expert 1; for the loss a softmax 8, the best 4, a map 25, tokens 1 and probabilities 4 of each expert: 84. Per chosen
// one: 12 + 24 + 8 + 16 + 12, and for the loss 12 + 24 + 12: 120. Rows of copies: per choice 1 + 5 + 8 + 4, per chosen
// one 8. Copies: written in order 2, by local experts 4, results back 4, their sum 2; tokens read 2 and written 2 of N;
// per chosen one two orders 4 each, and two reads of them 4 each.
// Backward, router, per choice: zeros 4, the loss 4, its softmax 12, the sum 12, and per chosen one 16 + 12 + 16; the
// casts to and from fp32 6 N each, and the sum with the gradient of the copies 6 N. Copies as forward; their gradients
// in place 4 per choice; gradients of probabilities 6 of the inner width. The rest is that of a dense block.
TEST(KernelCatalogue, ChoosingExpertsByHand) {
  BlockOfGpt one("megatron_core", 1, "mixtral-8x7b");
  const auto& [copies, inner, choices, chosen, dense, dense_back] = mixtral;
  EXPECT_EQ(small_kernels(one.passes().forward).bytes,
            dense + 12 * copies + 4 * Llama::n + (84 + 18) * choices + (120 + 24) * chosen);
  EXPECT_EQ(small_kernels(one.passes().backward).bytes,
            dense_back + 12 * copies + 6 * inner + (18 + 4) * Llama::n + (32 + 4) * choices + (44 + 12) * chosen);
  // Fused: logits read 4, probabilities, map and what is kept written 9, once more for the loss; backward 9 + 4.
  one.description.fused_router = true;
  EXPECT_EQ(small_kernels(one.passes().forward).bytes,
            dense + 12 * copies + 4 * Llama::n + (13 + 13 + 1 + 4 + 18) * choices + 24 * chosen);
  EXPECT_EQ(small_kernels(one.passes().backward).bytes,
            dense_back + 12 * copies + 6 * inner + 22 * Llama::n + (13 + 4 + 12 + 12 + 4) * choices + 12 * chosen);
}

// The same one operation at a time. Per chosen one, forward: a pass of the sort 32, and orders as before 16. Copies:
// written from rows that are read 4, by local experts 4 and back 4, times probabilities 4, their sum 2; a sum of zeros
// 2 N and written 2 N. Backward: gathered 4, times probabilities 4, times results 6 and summed 2, by local experts 4
// and back 4, their sum 2 and 2 N; per chosen one the probabilities' gradients 2 and two orders 4. The activations'
// gradients have no probabilities.
TEST(KernelCatalogue, PermutationOneOperationAtATimeByHand) {
  BlockOfGpt one("megatron_core", 1, "mixtral-8x7b");
  one.description.fused_permutation = false;
  const auto& [copies, inner, choices, chosen, dense, dense_back] = mixtral;
  EXPECT_EQ(small_kernels(one.passes().forward).bytes,
            dense + 18 * copies + 4 * Llama::n + 84 * choices + (120 + 48) * chosen);
  EXPECT_EQ(small_kernels(one.passes().backward).bytes,
            dense_back + 26 * copies + (18 + 2) * Llama::n + (32 + 4) * choices + (44 + 10) * chosen);
}

// With an expert on each of 8 ranks nothing is sorted by local expert: 8 B of each copy and two orders of 8 B less,
// forward and backward (backward the orders are only read). Two ranks that share each expert sort the copies of both, 8
// B of each copy more.
TEST(KernelCatalogue, CopiesAreSortedByLocalExpertIfThereAreSeveral) {
  const std::int64_t copies = 2 * Llama::n, chosen = 2 * Llama::tokens;
  BlockOfGpt one("megatron_core", 1, "mixtral-8x7b");
  const std::int64_t forward = small_kernels(one.passes().forward).bytes;
  const std::int64_t backward = small_kernels(one.passes().backward).bytes;
  one.description.parallel.expert = 8;
  EXPECT_EQ(small_kernels(one.passes().forward).bytes, forward - 8 * copies - 16 * chosen);
  EXPECT_EQ(small_kernels(one.passes().backward).bytes, backward - 8 * copies - 8 * chosen);
  one.description.parallel.expert = 1;
  one.description.parallel.expert_tensor = 2;
  EXPECT_EQ(small_kernels(one.passes().forward).bytes, forward + 8 * copies);
  EXPECT_EQ(small_kernels(one.passes().backward).bytes, backward + 8 * copies);
}

// Megatron-Core calls a library for each of 8 experts, in four streams, and Hugging Face's Mixtral one after the other;
// others group them in one kernel.
TEST(KernelCatalogue, ExpertsHaveTheStreamsOfTheFramework) {
  for (const auto& [name, streams] :
       {std::pair{"megatron_core", 4}, std::pair{"deepspeed", 1}, std::pair{"pytorch_compiled", 0}}) {
    int gemms = 0;
    for (const PartPasses& passes : {BlockOfGpt(name, 1, "mixtral-8x7b").passes()})
      for (const auto* pass : {&passes.forward, &passes.backward})
        for (const Segment& segment : *pass)
          for (const KernelUse& use : segment.kernels)
            if (use.kernel.grouped) {
              ++gemms;
              EXPECT_EQ(use.kernel.streams, streams) << name;
            } else {
              EXPECT_EQ(use.kernel.streams, 0) << name;
            }
    EXPECT_EQ(gemms, 6) << name;
  }
}

// The router's backward pass in tf32, T x 8 by 8 x h and 8 x T by T x h, with 4 B of each factor and result.
TEST(KernelCatalogue, RouterGradientsAreWide) {
  std::vector<std::int64_t> bytes;
  for (const Segment& segment : BlockOfGpt("megatron_core", 1, "mixtral-8x7b").passes().backward)
    for (const KernelUse& use : segment.kernels)
      if (use.kernel.precision == "tf32") bytes.push_back(use.kernel.bytes);
  const std::int64_t t = Llama::tokens, h = Llama::h;
  EXPECT_EQ(bytes, (std::vector{4 * (8 * (t + h) + t * h), 4 * (t * (h + 8) + 8 * h)}));
}

// Padding copies the experts' inputs and results, and backward the gradients of both, 4 B each of a copy, and
// probabilities and their gradients 8 B of a chosen one.
TEST(KernelCatalogue, PaddingForFp8CopiesTheCopies) {
  BlockOfGpt padded("megatron_core", 1, "mixtral-8x7b"), routed("megatron_core", 1, "mixtral-8x7b");
  routed.description.padded_copies = false;
  for (const auto pass : {&PartPasses::forward, &PartPasses::backward}) {
    for (BlockOfGpt* one : {&padded, &routed}) one->description.precision = "bf16";
    EXPECT_EQ(small_kernels(padded.passes().*pass).bytes, small_kernels(routed.passes().*pass).bytes);
    for (BlockOfGpt* one : {&padded, &routed}) {
      one->description.precision = "fp8";
      one->times = OperatorTimes(read_device(Spec::load(workloads_folder() + "/devices/h100-sxm.yaml")));
    }
    EXPECT_EQ(small_kernels(padded.passes().*pass).bytes - small_kernels(routed.passes().*pass).bytes,
              2 * 4 * 2 * Llama::n + 8 * 2 * Llama::tokens);
  }
}

}  // namespace
}  // namespace weft::test::expert_kernels_test
