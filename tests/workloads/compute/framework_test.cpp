// SPDX-License-Identifier: GPL-2.0-only
// Catalogues of small kernels: bytes of a block by hand, gradients over micro-batches, the optimizer, complaints.
#include "workloads/compute/framework.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/workloads/compute/block_under_test.hpp"
#include "workloads/step/stage_plan.hpp"

namespace weft::test::framework_test {
namespace {

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

// Megatron-DeepSpeed: the same blocks, and ALiBi's biases, written with the shape of the scores (2 S) and read by the
// GEMM (2 S).
TEST(KernelCatalogue, BlocksOfMegatronDeepSpeedHaveTheirBiasesOfALiBi) {
  for (const std::int64_t t : {1, 4}) {
    const std::int64_t scores = 12 * BlockOfGpt::s * BlockOfGpt::s * BlockOfGpt::b / t;
    const PartPasses old = BlockOfGpt("megatron_2021", t).passes(), with = BlockOfGpt("megatron_deepspeed", t).passes();
    EXPECT_EQ(small_kernels(with.forward).bytes, small_kernels(old.forward).bytes + 4 * scores);
    EXPECT_EQ(small_kernels(with.backward).bytes, small_kernels(old.backward).bytes);
  }
}

// Gradients that are summed in fp32 are added in fp32: main_grad += grad reads 2 + 4 B and writes 4 B instead of 4 and
// 2; DeepSpeed casts first, 2 + 4 B, then adds, 8 + 4 B. A catalogue that says nothing about fp32 adds as in 16 bits.
TEST(KernelCatalogue, GradientsSummedInFp32AreAddedInFp32) {
  const auto more = [](const std::string& framework) {
    BlockOfGpt one(framework);
    const std::int64_t narrow = small_kernels(one.passes().backward).bytes;
    one.description.gradient_precision = "fp32";
    return small_kernels(one.passes().backward).bytes - narrow;
  };
  const BlockOfGpt one("megatron_2021");
  const std::int64_t held =
      held_parameters(one.description.model.layer_shape(0).tensors, one.description.parallel).sum();
  EXPECT_EQ(more("megatron_2021"), (10 - 6) * held);
  EXPECT_EQ(more("megatron_deepspeed"), (18 - 6) * held);
  EXPECT_EQ(more("megatron_2022"), 0);
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
  one.description.gradient_precision = "fp32";
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

// PyTorch's loss, per logit: cast 6, log softmax of rows that are read three times 16; backward zeros 4, its gradient
// from two tensors that are read twice 20, cast 6. The final norm 36 N and 92 N.
TEST(KernelCatalogue, LossOfPyTorchByHand) {
  BlockOfGpt one("pytorch_eager", 1, "llama-3.1-8b");
  const PartPasses head = head_passes(one.setup());
  const std::int64_t logits = Llama::tokens * 128'256;
  EXPECT_EQ(small_kernels(head.forward).bytes, 22 * logits + 36 * Llama::n);
  EXPECT_EQ(small_kernels(head.backward).bytes, 30 * logits + 92 * Llama::n);
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

/// All that the host does for the job on an A100 whose file has `line` besides.
Time launches_with(const std::string& line) {
  std::ifstream ready_made(workloads_folder() + "/devices/a100-sxm.yaml");
  std::ostringstream content;
  content << ready_made.rdbuf() << line;
  const TemporaryFile device("d.yaml", content.str());
  std::string job = job_of_gpt;
  job.replace(job.find("a100-sxm"), 8, device.path());
  TrainingWorkload workload(read_training_job(Spec::parse(job, "x.yaml"), context_of(1)), [](CollectiveCall&) {});
  const auto program = workload.program(Rank(0));
  Time host;
  for (Operation operation; program->next(operation); operation = Operation())
    if (operation.worker == Worker::host) host += operation.duration;
  return host;
}

TEST(KernelCatalogue, AnotherHostTakesLongerForEachLaunch) {
  const Time usual = launches_with("");
  EXPECT_GT(usual, Time());
  EXPECT_EQ(launches_with("host_slowdown: 2.5\n").ps() * 2, usual.ps() * 5);
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
  const auto each = [&](const std::string& word) {
    return message(head + "  mlp_norm: {forward: [{kernel: n, per: tensors, reads: 2, each: " + word + "}]}\n" + step);
  };
  EXPECT_EQ(each("tensor"), "");
  EXPECT_NE(each("expert").find("f.yaml:4"), std::string::npos) << each("expert");
  const std::string all =
      message(head + "  mlp_norm: {}\nstep: {optimizer: [{kernel: a, per: parameters, reads: 4, each: tensor}]}\n");
  EXPECT_NE(all.find("f.yaml:5"), std::string::npos) << all;
  EXPECT_NE(all.find("all tensors together"), std::string::npos) << all;
  const std::string swizzles = message("swizzles_scales: 1\n" + head + "  mlp_norm: {}\n" + step);
  EXPECT_NE(swizzles.find("f.yaml:1"), std::string::npos) << swizzles;
  const std::string messages =
      message("blocking_messages: true\nmessages_in_turn: true\n" + head + "  mlp_norm: {}\n" + step);
  EXPECT_NE(messages.find("f.yaml:2"), std::string::npos) << messages;
  EXPECT_NE(messages.find("give one of them"), std::string::npos) << messages;
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
  const std::string nothing = message(head + "  mlp_norm: {}\nstep: {accumulation_fp32: {}, optimizer: []}\n");
  EXPECT_NE(nothing.find("f.yaml:5"), std::string::npos) << nothing;
  EXPECT_NE(nothing.find("either 'reads' and 'writes'"), std::string::npos) << nothing;
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
