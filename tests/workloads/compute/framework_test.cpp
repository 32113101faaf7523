// SPDX-License-Identifier: GPL-2.0-only
// Catalogues of small kernels: bytes of a block by hand, gradients over micro-batches, the optimizer, complaints.
#include "workloads/compute/framework.hpp"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/pass/block_passes.hpp"
#include "workloads/pass/pass_work.hpp"
#include "workloads/step/stage_plan.hpp"
#include "workloads/training/training_reading.hpp"

namespace weft::test::framework_test {
namespace {

KernelCatalogue catalogue(const std::string& name) {
  return read_kernel_catalogue(Spec::load(workloads_folder() + "/frameworks/" + name + ".yaml"));
}

/// GPT-2 with b = 4, s = 1024 on t tensor ranks.
struct BlockOfGpt {
  explicit BlockOfGpt(const std::string& framework, std::int64_t t = 1, const std::string& model = "gpt2")
      : kernels(catalogue(framework)) {
    description.model = read_model(JsonConfig::load(workloads_folder() + "/models/" + model + ".json"));
    description.micro_batch = b;
    description.sequence_length = s;
    description.parallel.data = 1;
    description.parallel.tensor = t;
    description.parallel.expert_tensor = 1;
    description.precision = "bf16";
  }
  PartPasses passes() const { return block_passes(setup(), description.model.layer_shape(0)); }
  PassSetup setup() const { return {&description, &times, kernels.attention, &kernels}; }

  static constexpr std::int64_t b = 4, s = 1024;
  TrainingDescription description;
  KernelCatalogue kernels;
  OperatorTimes times{read_device(Spec::load(workloads_folder() + "/devices/a100-sxm.yaml"))};
};

/// Bytes and FLOPs of all kernels but GEMMs and fused attention.
struct SmallSum {
  std::int64_t bytes = 0;
  double flops = 0;
};
SmallSum small_kernels(const std::vector<Segment>& pass) {
  SmallSum sum;
  for (const Segment& segment : pass)
    for (const KernelUse& use : segment.kernels)
      if (use.kernel.kind == Kernel::Kind::memory && use.kernel.flops == 0) {
        sum.bytes += use.kernel.bytes;
        sum.flops += use.flops;
      }
  return sum;
}

// Kernels of one block of Megatron-LM, N = s b h elements, S = a s^2 b / t scores, bytes at 16 bits. Forward: two norms
// 4 N each, QKV bias 12 N/t, softmax 3 S, dropout 5 S, context copy 4 N/t, bias and GELU 16 N/t, two of bias, dropout
// and residual 7 N each. Backward: two times dropout 5 N and bias 2 N, GELU 24 N/t and its bias 8 N/t, dropout 5 S,
// softmax 4 S, factors 8 N/t, concatenation 12 N/t, QKV bias 6 N/t, two norms 10 N each (6 N in 2022), two sums 6 N
// each.
TEST(KernelCatalogue, BlocksOfMegatronByHand) {
  for (const std::int64_t t : {1, 4}) {
    const std::int64_t n = BlockOfGpt::b * BlockOfGpt::s * 768;
    const std::int64_t scores = 12 * BlockOfGpt::s * BlockOfGpt::s * BlockOfGpt::b / t;
    BlockOfGpt old("megatron_2021", t);
    const PartPasses passes = old.passes();
    EXPECT_EQ(small_kernels(passes.forward).bytes, 22 * n + 32 * n / t + 8 * scores);
    // Gradients are added up besides: 4 B read and 2 B written for each parameter of the rank.
    const std::int64_t held =
        held_parameters(old.description.model.layer_shape(0).tensors, old.description.parallel).sum();
    EXPECT_EQ(small_kernels(passes.backward).bytes, 46 * n + 58 * n / t + 9 * scores + 6 * held);
    EXPECT_EQ(small_kernels(BlockOfGpt("megatron_2022", t).passes().backward).bytes,
              38 * n + 58 * n / t + 9 * scores + 6 * held);
  }
}

// Per element forward: norms 9 each, bias-dropout-residual 3 each of N; QKV bias 1 of 3 N; GELU 9 of 4 N; softmax 5 and
// dropout 1 of S.
TEST(KernelCatalogue, FlopsAreForPeopleAndTakeNoPartInTheModels) {
  BlockOfGpt one("megatron_2021");
  const double n = 4.0 * 1024 * 768, scores = 12.0 * 1024 * 1024 * 4;
  EXPECT_DOUBLE_EQ(small_kernels(one.passes().forward).flops, (2 * 9 + 2 * 3 + 3 + 4 * 9) * n + 6 * scores);
  double flops = 0;
  for (const Segment& segment : one.passes().forward) flops += segment.flops;
  EXPECT_DOUBLE_EQ(flops, 24 * n * 768 + 4 * n * 1024);  // 24 b s h^2 + 4 b s^2 h (Narayanan et al., appendix)
}

// Backward through scores Q K^T and context P V: dP = dO V^T is s x s; dV = P^T dO, dQ = dS K and dK = dS^T Q are s x
// d.
TEST(KernelCatalogue, GradientsOfAttentionHaveTheirShapes) {
  std::vector<std::pair<std::int64_t, std::int64_t>> columns_and_inner;
  for (const Segment& segment : BlockOfGpt("megatron_2021").passes().backward)
    for (const KernelUse& use : segment.kernels)
      if (use.kernel.kind == Kernel::Kind::gemm && use.kernel.count == BlockOfGpt::b * 12) {
        EXPECT_EQ(use.kernel.m, BlockOfGpt::s);
        columns_and_inner.emplace_back(use.kernel.n, use.kernel.k);
      }
  const std::pair<std::int64_t, std::int64_t> of_scores{BlockOfGpt::s, 64}, other{64, BlockOfGpt::s};
  EXPECT_EQ(columns_and_inner, (std::vector{of_scores, other, other, other}));
}

TEST(KernelCatalogue, SequenceParallelismCutsWhatIsBetweenGemms) {
  BlockOfGpt cut("megatron_2022", 4);
  cut.description.parallel.sequence = true;
  const std::int64_t n = BlockOfGpt::b * BlockOfGpt::s * 768, scores = 12 * BlockOfGpt::s * BlockOfGpt::s;
  EXPECT_EQ(small_kernels(cut.passes().forward).bytes, 22 * n / 4 + 32 * n / 4 + 8 * scores);
  // Selective recomputation repeats softmax and dropout, and the copy of their result, 4 N/t.
  const std::int64_t without = small_kernels(cut.passes().backward).bytes;
  cut.description.recompute = Recompute::selective;
  EXPECT_EQ(small_kernels(cut.passes().backward).bytes, without + 8 * scores + 4 * n / 4);
}

// Megatron-Core, Llama type: forward norms 4 N each, rotary 4 T (h + k d), residuals 6 N each, SwiGLU 6 T f: 20 N +
// ...; backward norms 6 N and sums 6 N each, rotary the same, concatenation 4 T (h + 2 k d), SwiGLU 10 T f. Gradients
// are added up by the GEMMs: 6 B for each element of their results besides.
TEST(KernelCatalogue, BlockOfMegatronCoreByHand) {
  BlockOfGpt one("megatron_core", 1, "llama-3.1-8b");
  const std::int64_t tokens = BlockOfGpt::b * BlockOfGpt::s, h = 4096, kd = 1024, f = 14336, n = tokens * h;
  const PartPasses passes = one.passes();
  EXPECT_EQ(small_kernels(passes.forward).bytes, 20 * n + 4 * tokens * (h + kd) + 6 * tokens * f);
  EXPECT_EQ(small_kernels(passes.backward).bytes,
            24 * n + 4 * tokens * (h + kd) + 4 * tokens * (h + 2 * kd) + 10 * tokens * f);
  double gemms = 0, weights = 0;
  for (const Segment& segment : passes.weight_gradient)
    for (const KernelUse& use : segment.kernels) {
      const auto m = static_cast<double>(use.kernel.m), k = static_cast<double>(use.kernel.k),
                 columns = static_cast<double>(use.kernel.n);
      gemms += traffic_of(use.kernel) - 2 * (m * k + k * columns + m * columns);
      weights += m * columns;
    }
  EXPECT_DOUBLE_EQ(gemms, 6 * weights);
  EXPECT_DOUBLE_EQ(weights, static_cast<double>(h * (h + 2 * kd) + h * h + 3 * h * f));
}

/// Llama-3.1-8B: N = T h elements, queries and keys T (h + k d), T f of the MLP.
struct Llama {
  static constexpr std::int64_t tokens = BlockOfGpt::b * BlockOfGpt::s, h = 4096, kd = 1024, f = 14336, n = tokens * h,
                                queries_keys = tokens * (h + kd);
};

// PyTorch eager, forward: two RMSNorms of to fp32 6, squares 8, mean 4, times factor 8, to bf16 6, times weight 4: 36 N
// each; rotation 6 + 8 + 6 and copies of keys and values 4 of T (h + k d); residuals 6 N each; SiLU 4 and gate 6 of T
// f. Backward: norms 4 + 6 + 2 + 6 + 8 + 12 + 4 + 4 + 8 + 8 + 12 + 12 + 6 = 92 N each, skips 6 N each, sums of the
// gradients of three and two GEMMs 12 + 6 N; rotation and copies the same; 12 + 6 of T f.
TEST(KernelCatalogue, BlockOfPyTorchEagerByHand) {
  const PartPasses passes = BlockOfGpt("pytorch_eager", 1, "llama-3.1-8b").passes();
  EXPECT_EQ(small_kernels(passes.forward).bytes,
            (2 * 36 + 2 * 6) * Llama::n + 24 * Llama::queries_keys + 10 * Llama::tokens * Llama::f);
  EXPECT_EQ(small_kernels(passes.backward).bytes,
            (2 * 92 + 2 * 6 + 18) * Llama::n + 24 * Llama::queries_keys + 18 * Llama::tokens * Llama::f);
}

// Compiled, forward: norm 4 N, residual and norm 8 N, residual 6 N, rotation and copies as they are, SwiGLU 6 of T f.
// Backward: norm with the sums of four gradients 12 N, of three 10 N, SwiGLU 10.
TEST(KernelCatalogue, BlockOfPyTorchCompiledByHand) {
  const PartPasses passes = BlockOfGpt("pytorch_compiled", 1, "llama-3.1-8b").passes();
  EXPECT_EQ(small_kernels(passes.forward).bytes,
            18 * Llama::n + 24 * Llama::queries_keys + 6 * Llama::tokens * Llama::f);
  EXPECT_EQ(small_kernels(passes.backward).bytes,
            22 * Llama::n + 24 * Llama::queries_keys + 10 * Llama::tokens * Llama::f);
}

// DeepSpeed with a Hugging Face model: norms and MLP as PyTorch eager, rotation 4 + 2 + 4 + 4 + 6 of T (h + k d), no
// copies of keys and values; each gradient is put into a bucket and divided, 8 B.
TEST(KernelCatalogue, BlockOfDeepSpeedByHand) {
  BlockOfGpt one("deepspeed", 1, "llama-3.1-8b");
  const PartPasses passes = one.passes();
  const std::int64_t held =
      held_parameters(one.description.model.layer_shape(0).tensors, one.description.parallel).sum();
  EXPECT_EQ(small_kernels(passes.forward).bytes,
            84 * Llama::n + 20 * Llama::queries_keys + 10 * Llama::tokens * Llama::f);
  EXPECT_EQ(small_kernels(passes.backward).bytes,
            214 * Llama::n + 20 * Llama::queries_keys + 18 * Llama::tokens * Llama::f + 8 * held);
}

// MPT of llm-foundry, f = 4 h, forward: norms 4 N each, context copy 4 N, residuals 6 N each, GELU 4 of 4 N. Backward:
// norms 6 + 4 N each, skips 6 N each, GELU 6 of 4 N; gradients added up 6 B.
TEST(KernelCatalogue, BlockOfLlmFoundryByHand) {
  BlockOfGpt one("llm_foundry");
  const PartPasses passes = one.passes();
  const std::int64_t n = BlockOfGpt::b * BlockOfGpt::s * 768;
  const std::int64_t held =
      held_parameters(one.description.model.layer_shape(0).tensors, one.description.parallel).sum();
  EXPECT_EQ(small_kernels(passes.forward).bytes, 40 * n);
  EXPECT_EQ(small_kernels(passes.backward).bytes, 56 * n + 6 * held);
}

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

// Parameters that eight ranks share out: a cast and a copy of the share, 10 B, and a copy of all, 4 B, in each pass;
// gradients in order of ranks, 6 B.
TEST(KernelCatalogue, CopiesOfSharedParametersByHand) {
  BlockOfGpt alone("pytorch_eager", 1, "llama-3.1-8b"), shared("pytorch_eager", 1, "llama-3.1-8b");
  shared.description.parallel.data = 8;
  shared.description.parallel.sharding = Sharding::parameters;
  const std::int64_t held = 218'112'000;  // 4096 (2 * 4096 + 2 * 1024 + 3 * 14336 + 2)
  const auto more = [&](const std::vector<Segment> PartPasses::*pass) {
    return small_kernels(shared.passes().*pass).bytes - small_kernels(alone.passes().*pass).bytes;
  };
  EXPECT_EQ(more(&PartPasses::forward), 10 * held / 8 + 4 * held);
  EXPECT_EQ(more(&PartPasses::backward), 10 * held / 8 + 4 * held + 6 * held);
}

// torchtitan's selective checkpointing: GEMMs for keys, behind attention and for gates, and all small kernels but
// the last residual's, 6 N.
TEST(KernelCatalogue, OperatorsComputedAgainByHand) {
  BlockOfGpt one("pytorch_eager", 1, "llama-3.1-8b");
  one.description.recompute = Recompute::operators;
  const PartPasses passes = one.passes();
  EXPECT_EQ(small_kernels(passes.recompute).bytes, small_kernels(passes.forward).bytes - 6 * Llama::n);
  double flops = 0;
  for (const Segment& segment : passes.recompute) flops += segment.flops;
  EXPECT_DOUBLE_EQ(flops, 2.0 * Llama::tokens * Llama::h * (Llama::kd + Llama::h + Llama::f));
}

std::int64_t calls(const std::vector<Segment>& pass, CollectiveKind kind) {
  return std::count_if(pass.begin(), pass.end(), [&](const Segment& segment) {
    return segment.kind == Segment::Kind::collective && segment.collective == kind;
  });
}

double flops_of(const std::vector<Segment>& pass) {
  double flops = 0;
  for (const Segment& segment : pass) flops += segment.flops;
  return flops;
}

// Sequences that four tensor ranks cut are copied behind two gathers and before two sums, 4 N each, forward as
// backward; what was gathered forward is kept. Megatron-LM copies nothing, since its sequences are outermost, and
// gathers twice more.
// Backward the copies before the sums read three partial gradients of queries, keys and values' input, and two of the
// up projection's: 2 B for each but the first, 6 N more; norms read one gradient instead, 4 and 2 B less of a part.
TEST(KernelCatalogue, SequencesThatPyTorchCutsAreCopied) {
  BlockOfGpt cut("pytorch_compiled", 4, "llama-3.1-8b");
  cut.description.parallel.sequence = true;
  const PartPasses passes = cut.passes();
  EXPECT_EQ(small_kernels(passes.forward).bytes,
            (18 * Llama::n + 24 * Llama::queries_keys + 6 * Llama::tokens * Llama::f) / 4 + 16 * Llama::n);
  EXPECT_EQ(small_kernels(passes.backward).bytes,
            (16 * Llama::n + 24 * Llama::queries_keys + 10 * Llama::tokens * Llama::f) / 4 + (16 + 6) * Llama::n);
  EXPECT_EQ(calls(passes.backward, CollectiveKind::all_gather), 2);
  EXPECT_EQ(calls(passes.backward, CollectiveKind::reduce_scatter), 2);
  BlockOfGpt megatron("megatron_core", 4, "llama-3.1-8b");
  megatron.description.parallel.sequence = true;
  EXPECT_EQ(calls(megatron.passes().backward, CollectiveKind::all_gather), 4);
}

// Of a whole block PyTorch computes again what its backward pass needs: all but the GEMM 2 T f h that ends the MLP,
// the sum over tensor ranks behind it, and the residual, 6 N. Megatron-LM computes all of it.
TEST(KernelCatalogue, RecomputationEndsWithWhatIsNeeded) {
  BlockOfGpt one("pytorch_eager", 1, "llama-3.1-8b");
  one.description.recompute = Recompute::full;
  const PartPasses passes = one.passes();
  EXPECT_DOUBLE_EQ(flops_of(passes.recompute), flops_of(passes.forward) - 2.0 * Llama::tokens * Llama::f * Llama::h);
  EXPECT_EQ(small_kernels(passes.recompute).bytes, small_kernels(passes.forward).bytes - 6 * Llama::n);
  BlockOfGpt cut("pytorch_eager", 4, "llama-3.1-8b");
  cut.description.recompute = Recompute::full;
  EXPECT_EQ(calls(cut.passes().recompute, CollectiveKind::all_reduce), 1);
  BlockOfGpt all("megatron_core", 1, "llama-3.1-8b");
  all.description.recompute = Recompute::full;
  EXPECT_DOUBLE_EQ(flops_of(all.passes().recompute), flops_of(all.passes().forward));
}

// Where tensor ranks scatter their sums, these are kept, and the GEMM behind attention is not needed again; both
// inputs are gathered again.
TEST(KernelCatalogue, OperatorsComputedAgainOnTensorRanks) {
  BlockOfGpt cut("pytorch_compiled", 4, "llama-3.1-8b");
  cut.description.parallel.sequence = true;
  cut.description.recompute = Recompute::operators;
  const PartPasses passes = cut.passes();
  EXPECT_EQ(calls(passes.recompute, CollectiveKind::all_gather), 2);
  EXPECT_EQ(calls(passes.recompute, CollectiveKind::reduce_scatter), 0);
  EXPECT_DOUBLE_EQ(flops_of(passes.recompute), 2.0 * Llama::tokens * Llama::h * (Llama::kd + Llama::f) / 4);
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

// PyTorch's loss, per logit: cast 6, log softmax of rows that are read three times 16; backward zeros 4, its gradient
// from two tensors that are read twice 20, cast 6. The final norm 36 N and 92 N.
TEST(KernelCatalogue, LossOfPyTorchByHand) {
  BlockOfGpt one("pytorch_eager", 1, "llama-3.1-8b");
  const PartPasses head = head_passes(one.setup());
  const std::int64_t logits = Llama::tokens * 128'256;
  EXPECT_EQ(small_kernels(head.forward).bytes, 22 * logits + 36 * Llama::n);
  EXPECT_EQ(small_kernels(head.backward).bytes, 30 * logits + 92 * Llama::n);
}

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

// 62 B of the fp16 path (megatron/optimizer/optimizer.py): to fp32 6, unscale 8, norm 4, clip 8, Adam 28, back 6, and 2
// of setting the buffer to zero; dividing by the number of ranks 4 more.
TEST(KernelCatalogue, OptimizerBytesPerParameter) {
  const KernelCatalogue kernels = catalogue("megatron_2022");
  std::int64_t bytes = 0;
  for (const auto* list : {&kernels.gradient_norm, &kernels.optimizer})
    for (const SmallKernel& one : *list) bytes += one.bytes;
  EXPECT_EQ(bytes, 62 + 4);
}

const std::string job_of_gpt =
    "model: gpt2\ndevice: a100-sxm\nframework: megatron_2021\nmicro_batches: 3\nsequence_length: 128\n"
    "parallelism: {data: 1}\n";

std::vector<std::string> labels(const std::string& text, std::uint32_t hosts = 1) {
  const Spec spec = Spec::parse(text, "x.yaml");
  TrainingWorkload workload(read_training_job(spec, context_of(hosts)), [](CollectiveCall&) {});
  const auto program = workload.program(Rank(0));
  std::vector<std::string> result;
  for (Operation operation; program->next(operation);) result.emplace_back(operation.operator_name);
  return result;
}

TEST(KernelCatalogue, FirstMicroBatchHasNothingToAddTo) {
  const auto count = [](const std::vector<std::string>& names) {
    return std::count(names.begin(), names.end(), "gradient accumulation");
  };
  // 12 blocks, the embedding and the head (its norm), of three micro-batches: the first is taken as it is.
  EXPECT_EQ(count(labels(job_of_gpt)), 2 * 14);
  std::string later = job_of_gpt;
  later.replace(later.find("2021"), 4, "2022");
  EXPECT_EQ(count(labels(later)), 3 * 14);
  later.replace(later.find("framework: megatron_2022\n"), 25, "");
  EXPECT_EQ(count(labels(later)), 0);
}

// The host launches each kernel of a job, one after another, and a computation starts when it is launched.
TEST(KernelCatalogue, HostLaunchesWhatTheDeviceDoes) {
  const Spec spec = Spec::parse(job_of_gpt, "x.yaml");
  TrainingWorkload workload(read_training_job(spec, context_of(1)), [](CollectiveCall&) {});
  const auto program = workload.program(Rank(0));
  Time host;
  std::uint64_t launches = UINT64_MAX, waits = 0;
  for (Operation operation; program->next(operation); operation = Operation()) {
    if (operation.worker == Worker::host) {
      EXPECT_EQ(operation.operator_name, "launches");
      host += operation.duration;
      // After the one before, and, where a chunk's pass begins, after the device has done the last one.
      const bool chained = std::count(operation.after.begin(), operation.after.end(), launches) == 1;
      EXPECT_TRUE(chained || launches == UINT64_MAX);
      waits += operation.after.size() > 1 ? 1 : 0;
      launches = operation.id;
    } else if (operation.phase != "optimizer") {
      EXPECT_EQ(std::count(operation.after.begin(), operation.after.end(), launches), 1) << operation.label;
    }
  }
  EXPECT_EQ(waits, 3U * 2 - 1);         // three micro-batches, forward and backward; nothing is before the first
  EXPECT_EQ(host.ps() % 7'000'000, 0);  // 7 us a kernel
}

TEST(KernelCatalogue, AllReadyMadeOnesAreRead) {
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(workloads_folder() + "/frameworks")) {
    EXPECT_TRUE(read_kernel_catalogue(Spec::load(file.path().string())).counts_optimizer()) << file.path();
    ++files;
  }
  EXPECT_GE(files, 7);
}

TEST(KernelCatalogue, Complaints) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      read_kernel_catalogue(Spec::parse(text, "f.yaml"));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const std::string head = "name: x\nattention: flash\nkernels:\n";
  const std::string step = "step: {optimizer: [{kernel: a, per: parameters, reads: 4}]}\n";
  EXPECT_EQ(message(head + "  mlp_norm: {}\n" + step), "");
  const auto when = [&](const std::string& words) {
    return message(head + "  mlp_norm: {forward: [{kernel: n, per: residual, reads: 2, when: " + words + "}]}\n" +
                   step);
  };
  EXPECT_EQ(when("fp8") + when("[fp8, sequence, no_experts]"), "");
  EXPECT_NE(when("[fp8, expert]").find("f.yaml:4"), std::string::npos) << when("[fp8, expert]");
  EXPECT_NE(when("[fp8, expert]").find("'experts'"), std::string::npos) << when("[fp8, expert]");
  const std::string streams = message("expert_streams: 0\n" + head + "  mlp_norm: {}\n" + step);
  EXPECT_NE(streams.find("f.yaml:1"), std::string::npos) << streams;
  const std::string unit = message(head + "  mlp_norm: {forward: [{kernel: n, per: logits, reads: 2}]}\n" + step);
  EXPECT_NE(unit.find("f.yaml:4"), std::string::npos) << unit;
  EXPECT_NE(unit.find("residual"), std::string::npos) << unit;
  const std::string bytes = message(head + "  mlp_norm: {forward: [{kernel: n, per: residual}]}\n" + step);
  EXPECT_NE(bytes.find("neither 'reads' nor 'writes'"), std::string::npos) << bytes;
  const std::string place = message(head + "  mlp_nrm: {}\n" + step);
  EXPECT_NE(place.find("did you mean 'mlp_norm'"), std::string::npos) << place;
  const std::string both =
      message(head + "  mlp_norm: {}\nstep: {accumulation: {reads: 4, in_gemms: 6}, optimizer: []}\n");
  EXPECT_NE(both.find("either 'reads' and 'writes'"), std::string::npos) << both;
  const std::string older = message(head + "  mlp_norm: {}\nstep: {accumulation: {in_products: 6}, optimizer: []}\n");
  EXPECT_NE(older.find("f.yaml:5"), std::string::npos) << older;
  EXPECT_NE(older.find("unknown key 'in_products'"), std::string::npos) << older;
  EXPECT_NE(older.find("did you mean 'in_gemms'"), std::string::npos) << older;
}

TEST(KernelCatalogue, WantsActivationsOfSixteenBits) {
  const Spec spec = Spec::parse(job_of_gpt + "precision: fp32\n", "x.yaml");
  try {
    read_training_job(spec, context_of(1));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("16 bits"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace weft::test::framework_test
