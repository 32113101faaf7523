// SPDX-License-Identifier: GPL-2.0-only
// fp8 with scales of the tensors themselves, and scaled in blocks of 32 (MXFP8): kernels, GEMMs and gathers by hand.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/workloads/compute/block_under_test.hpp"
#include "workloads/pass/magnitude_passes.hpp"
#include "workloads/step/training_memory.hpp"

namespace weft::test::fp8_recipes_test {
namespace {

/// A block with the kernels of Megatron-Core.
struct Recipe : BlockOfGpt {
  Recipe(const std::string& device, const std::string& precision, Fp8Scaling scaling = Fp8Scaling::current,
         std::int64_t t = 1, const std::string& model = "llama-3.1-8b")
      : BlockOfGpt("megatron_core", t, model) {
    times = OperatorTimes(read_device(Spec::load(workloads_folder() + "/devices/" + device + ".yaml")));
    description.precision = precision;
    description.fp8_scaling = scaling;
    description.parallel.sequence = t > 1;
    description.padded_copies = false;
  }
};

using Pass = std::vector<Segment> PartPasses::*;

/// Bytes of small kernels beyond those of the same block in bf16.
std::int64_t more_than_bf16(const Recipe& recipe, Pass pass) {
  Recipe plain = recipe;
  plain.description.precision = "bf16";
  return small_kernels(recipe.passes().*pass).bytes - small_kernels(plain.passes().*pass).bytes;
}

double flops(const std::vector<Segment>& pass) {
  double sum = 0;
  for (const Segment& segment : pass) sum += segment.flops;
  return sum;
}

std::vector<KernelUse> kernels_of(const std::vector<Segment>& pass, const std::string& name) {
  std::vector<KernelUse> found;
  for (const Segment& segment : pass)
    for (const KernelUse& use : segment.kernels)
      if (use.name == name) found.push_back(use);
  return found;
}

std::vector<std::int64_t> collectives(const std::vector<Segment>& pass, const std::string& what) {
  std::vector<std::int64_t> sizes;
  for (const Segment& segment : pass)
    if (segment.kind == Segment::Kind::collective && segment.what == what) sizes.push_back(segment.size.count());
  return sizes;
}

constexpr std::int64_t tokens = Llama::tokens, n = Llama::n, qkv = Llama::tokens * (Llama::h + 2 * Llama::kd),
                       inner = Llama::tokens * Llama::f;
/// Of each tensor: its largest magnitude is set to zero, 4 B; 4 B of it are read, and 8 B of its scale and the inverse
/// are written.
constexpr std::int64_t single = 4 + 4 + 8;

// Transformer Engine, pytorch/csrc/quantizer.cpp, Float8CurrentScalingQuantizer. Forward: results of both norms, which
// find the largest magnitude themselves, are cast and transposed, 4 B; context and activation are read for it before, 2
// B. Backward the same of the gradients of QKV, of both results and of both halves of the up projection; nothing is
// transposed by itself.
TEST(CurrentScaling, BytesOfABlockByHand) {
  const Recipe hopper("h100-sxm", "fp8");
  EXPECT_EQ(more_than_bf16(hopper, &PartPasses::forward), 2 * 4 * n + (2 + 4) * (n + inner) + 4 * single);
  EXPECT_EQ(more_than_bf16(hopper, &PartPasses::backward), (2 + 4) * (qkv + 2 * n + 2 * inner) + 4 * single);
  // Where GEMMs read factors either way a cast writes 1 B.
  const Recipe blackwell("b200-sxm", "fp8");
  EXPECT_EQ(more_than_bf16(blackwell, &PartPasses::forward), 2 * 3 * n + (2 + 3) * (n + inner) + 4 * single);
  EXPECT_EQ(more_than_bf16(blackwell, &PartPasses::backward), (2 + 3) * (qkv + 2 * n + 2 * inner) + 4 * single);
  const Recipe bf16("h100-sxm", "bf16");
  EXPECT_EQ(flops(hopper.passes().forward), flops(bf16.passes().forward));
  EXPECT_EQ(flops(hopper.passes().backward), flops(bf16.passes().backward));
}

// Four tensor ranks: each casts its share, and transposes all of what is gathered, inputs and gradients of results, 2 B
// of N four times; context and activation are its own.
TEST(CurrentScaling, BytesOnTensorRanksByHand) {
  const Recipe hopper("h100-sxm", "fp8", Fp8Scaling::current, 4);
  EXPECT_EQ(more_than_bf16(hopper, &PartPasses::forward), 2 * 3 * n / 4 + (2 + 3) * (n / 4 + inner / 4) + 4 * single);
  EXPECT_EQ(more_than_bf16(hopper, &PartPasses::backward), (2 + 4) * (qkv / 4 + 2 * inner / 4) + 2 * (2 + 3) * n / 4 +
                                                               4 * 2 * n + 2 * (n / 4 + inner / 4) + 4 * single);
}

// Ranks that gather a tensor in fp8 agree on its largest magnitude: the inputs of QKV and of the MLP forward, the
// gradients of both results backward. What is gathered again has its scale already.
TEST(CurrentScaling, TensorRanksReduceMagnitudesOfWhatTheyGather) {
  const std::string what = "largest magnitude";
  const std::vector<std::int64_t> two{4, 4};
  const PartPasses four = Recipe("h100-sxm", "fp8", Fp8Scaling::current, 4).passes();
  EXPECT_EQ(collectives(four.forward, what), two);
  EXPECT_EQ(collectives(four.backward, what), two);
  EXPECT_EQ(collectives(four.input_gradient, what), two);
  EXPECT_TRUE(collectives(four.weight_gradient, what).empty());
  for (const Segment& segment : four.forward)
    if (segment.what == what) {
      EXPECT_EQ(segment.collective, CollectiveKind::all_reduce);
      EXPECT_EQ(segment.group, GroupKind::tensor);
    }
  for (const Recipe& other :
       {Recipe("h100-sxm", "fp8"), Recipe("h100-sxm", "fp8", Fp8Scaling::delayed, 4),
        Recipe("h100-sxm", "bf16", Fp8Scaling::current, 4), Recipe("b200-sxm", "mxfp8", Fp8Scaling::current, 4)})
    EXPECT_TRUE(collectives(other.passes().forward, what).empty());
  Recipe whole("h100-sxm", "fp8", Fp8Scaling::current, 4);
  whole.description.parallel.sequence = false;
  EXPECT_TRUE(collectives(whole.passes().forward, what).empty());
}

// No history: nothing is reduced behind a pass of a chunk.
TEST(CurrentScaling, HasNoMagnitudesOfEarlierTensors) {
  EXPECT_TRUE(magnitude_passes(Recipe("h100-sxm", "fp8").setup(), 4).forward.empty());
  EXPECT_FALSE(magnitude_passes(Recipe("h100-sxm", "fp8", Fp8Scaling::delayed).setup(), 4).forward.empty());
}

// pytorch/csrc/extensions/cast.cpp, multi_tensor_quantize_impl: one kernel for the casts of all experts with delayed
// scaling only. Mixtral has eight, and two copies of each token.
TEST(CurrentScaling, ExpertsHaveTheirOwnKernels) {
  for (const auto& [precision, name] : {std::pair{"fp8", "largest magnitude of the activation"},
                                        std::pair{"mxfp8", "fp8 activation and its transposition"}}) {
    const Recipe all("b200-sxm", precision, Fp8Scaling::current, 1, "mixtral-8x7b");
    const auto found = kernels_of(all.passes().forward, name);
    ASSERT_EQ(found.size(), 8U) << precision;
    const std::int64_t each = 2 * inner / 8;
    EXPECT_EQ(found.front().kernel.bytes, std::string(precision) == "fp8" ? 2 * each : 4 * each + 2 * each / 32);
  }
  const Recipe delayed("b200-sxm", "fp8", Fp8Scaling::delayed, 1, "mixtral-8x7b");
  EXPECT_EQ(kernels_of(delayed.passes().forward, "fp8 activation").size(), 1U);
}

/// Scales of both factors of m x k by k x n, a byte for 32, read and written.
constexpr std::int64_t swizzled(std::int64_t rows, std::int64_t columns, std::int64_t k) {
  return 2 * (rows * k / 32 + columns * k / 32);
}

// MXFP8BlockScaling (pytorch/tensor/mxfp8_tensor.py): a cast reads 2 B and writes the numbers twice, along rows and
// along columns, each with 1 B for 32. Forward: results of two norms, context, activation; backward: gradients of QKV,
// of both results, of both halves of the up projection. Before each GEMM the scales of both factors are put in order.
TEST(Mxfp8, BytesOfABlockByHand) {
  const Recipe mx("b200-sxm", "mxfp8");
  const auto cast = [](std::int64_t elements) { return 2 * elements + 2 * (elements + elements / 32); };
  const std::int64_t h = Llama::h, width = h + 2 * Llama::kd, f = Llama::f;
  std::int64_t scales_forward = 0, scales_backward = 0;
  for (const auto& [columns, k] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{width, h}, {h, h}, {2 * f, h}, {h, f}}) {
    scales_forward += swizzled(tokens, columns, k);
    scales_backward += swizzled(tokens, k, columns) + swizzled(k, columns, tokens);
  }
  EXPECT_EQ(more_than_bf16(mx, &PartPasses::forward), cast(3 * n + inner) + scales_forward);
  EXPECT_EQ(more_than_bf16(mx, &PartPasses::backward), cast(qkv + 2 * n + 2 * inner) + scales_backward);
  EXPECT_EQ(kernels_of(mx.passes().forward, "scales for matrix units").size(), 4U * 2);
  EXPECT_EQ(flops(mx.passes().backward), flops(Recipe("b200-sxm", "bf16").passes().backward));
  // Weights once a step, scaled along rows and along columns, too.
  const auto& optimizer = mx.kernels.optimizer;
  const auto weights = std::find_if(optimizer.begin(), optimizer.end(),
                                    [](const SmallKernel& one) { return one.needs(KernelWhen::mxfp8); });
  ASSERT_NE(weights, optimizer.end());
  EXPECT_EQ(kernel_of(*weights, 1280, "bf16").bytes, cast(1280));
}

// Inputs are gathered along rows forward and along columns for the gradients of weights; gradients along both, for one
// GEMM each (pytorch/module/linear.py). Sums have 16 bits.
TEST(Mxfp8, GathersNumbersWithTheirScales) {
  const PartPasses passes = Recipe("b200-sxm", "mxfp8", Fp8Scaling::delayed, 4).passes();
  const std::int64_t once = n + n / 32;
  for (const char* what : {"attention gather", "MLP gather"})
    EXPECT_EQ(collectives(passes.forward, what), std::vector<std::int64_t>{once}) << what;
  for (const char* what : {"attention gather again", "MLP gather again"})
    EXPECT_EQ(collectives(passes.backward, what), std::vector<std::int64_t>{once}) << what;
  for (const char* what : {"attention gradient gather", "MLP gradient gather"})
    EXPECT_EQ(collectives(passes.backward, what), std::vector<std::int64_t>{2 * once}) << what;
  EXPECT_EQ(collectives(passes.forward, "MLP sum"), std::vector<std::int64_t>{2 * n});
}

// 2 * 1000 * 1000 * 10,000 FLOP at half of 200 TFLOP/s are 200 us in fp8, and at 0.8 of this 250 us. Two levels of sums
// are fp8's alone.
TEST(Mxfp8, GemmsHaveARateRelativeToThoseOfFp8) {
  Device toy = read_device(Spec::parse(
      "name: toy\npeak: {bf16: 100 TFLOP/s, fp8: 200 TFLOP/s, mxfp8: 200 TFLOP/s}\nmemory_bandwidth: 1 TB/s\n"
      "memory: 10 GB\nefficiency: 0.9\nsustained:\n  mxfp8: 0.8\n  split_accumulation: 0.5\n"
      "  gemms: {units: 10, tiles: [[100, 100, 0.9]]}\n  fp8_gemms: {units: 10, tiles: [[100, 100, 0.5]]}\n",
      "toy.yaml"));
  toy.in_a_step = true;
  Kernel kernel;
  kernel.m = kernel.n = 1000;
  kernel.k = 10'000;
  kernel.precision = "fp8";
  EXPECT_EQ(kernel_time(toy, kernel), Time::from_us(200));
  kernel.precision = "mxfp8";
  EXPECT_EQ(kernel_time(toy, kernel), Time::from_us(250));
  kernel.split_accumulation = true;
  EXPECT_EQ(kernel_time(toy, kernel), Time::from_us(250));
}

TEST(Mxfp8, ComplaintsAboutTheRate) {
  for (const std::string value : {"0", "1.2", "fast"}) {
    const std::string text =
        "name: toy\npeak: {mxfp8: 200 TFLOP/s}\nmemory_bandwidth: 1 TB/s\nmemory: 10 GB\n"
        "sustained:\n  mxfp8: " +
        value + "\n  gemms: {units: 10, tiles: [[100, 100, 0.9]]}\n";
    const std::string about = complaint([&] { read_device(Spec::parse(text, "toy.yaml")); });
    EXPECT_TRUE(about.starts_with("toy.yaml:6:")) << value << ": " << about;
  }
}

// The twelve GEMMs of a model of 5B on a B300, NVIDIA/TransformerEngine, docs/examples/gemm_profiling: 7.161 ms, of
// which 24 kernels put scales in order, and 6.812 ms in fp8 (b200-sxm.yaml).
TEST(Mxfp8, RateOfBlackwell) {
  for (const std::string name : {"b200-sxm", "gb200"}) {
    Device device = read_device(Spec::load(workloads_folder() + "/devices/" + name + ".yaml"));
    device.in_a_step = true;
    constexpr std::int64_t m = 15872, h = 4096;
    double scales = 0;
    for (const auto& [columns, k] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{3 * h, h}, {h, h}, {4 * h, h}, {h, 4 * h}})
      for (const std::int64_t elements : {m * k, columns * k, m * columns, columns * k, k * m, m * columns}) {
        Kernel kernel;
        kernel.kind = Kernel::Kind::memory;
        kernel.precision = "bf16";
        kernel.bytes = 2 * elements / 32;
        scales += kernel_time(device, kernel).seconds();
      }
    EXPECT_NEAR(device.sustained->mxfp8, 6.812e-3 / (7.161e-3 - scales), 0.0005) << name;
  }
}

TEST(Mxfp8, MemoryHasBothCopiesWithTheirScales) {
  const Recipe mx("b200-sxm", "mxfp8");
  const auto& model = mx.description.model;
  std::int64_t in_blocks = 0;
  for (std::int64_t layer = 0; layer < model.layers(); ++layer)
    in_blocks += elements_of(model.layer_shape(layer).tensors);
  Recipe whole = mx;
  whole.description.parallel.stage_layers = {model.layers()};
  whole.description.micro_batches = 1;
  whole.description.gradient_precision = "fp32";
  const auto memory =
      memory_of_rank(whole.setup(), *PipelineScheduleRegistry::instance().find("1f1b")->make(), {1, 1, 1}, 0);
  EXPECT_EQ(memory.buffers, 2 * (in_blocks + (in_blocks + 31) / 32));
}

// Transformer Engine, pytorch/triton/cross_entropy.py: logits are read for the sums, then read and replaced by their
// gradient, which the gradient of the loss multiplies.
TEST(FusedLoss, BytesByHand) {
  Recipe fused("h100-sxm", "bf16");
  fused.description.fused_loss = true;
  const std::int64_t logits = tokens * 128256;
  const auto loss = [](const BlockOfGpt& one, Pass pass, const std::string& name) {
    return kernels_of(head_passes(one.setup()).*pass, name);
  };
  const auto sums = loss(fused, &PartPasses::forward, "largest logit and sum of exponentials");
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums.front().kernel.bytes, 2 * logits);
  const Recipe plain("h100-sxm", "bf16");
  const auto fewer = [&](Pass pass) {
    return small_kernels(head_passes(plain.setup()).*pass).bytes -
           small_kernels(head_passes(fused.setup()).*pass).bytes;
  };
  EXPECT_EQ(fewer(&PartPasses::forward), (6 + 4 + 8 + 8 + 4 + 8) * logits - (2 + 4) * logits);
  EXPECT_EQ(fewer(&PartPasses::backward), (8 + 6) * logits - 4 * logits);
}

TEST(Fp8Recipes, ReadTheirKeys) {
  const auto job = [](const std::string& device, const std::string& more) {
    return "{kind: training, model: llama-3.1-8b, device: " + device + ", " + more + "}";
  };
  EXPECT_EQ(
      complaint_about(job("h100-sxm", "framework: megatron_core, precision: fp8, fp8_scaling: current"), context_of(1)),
      "");
  EXPECT_EQ(complaint_about(job("b200-sxm", "framework: megatron_core, precision: mxfp8"), context_of(1)), "");
  expect_complaint(job("h100-sxm", "precision: fp8, fp8_scaling: current"), context_of(1), "x.yaml:1",
                   {"'current' needs the kernels of a framework", "does not name", "megatron_core"});
  expect_complaint(job("h100-sxm", "precision: fp8, fp8_scaling: current, framework: pytorch_compiled"), context_of(1),
                   "x.yaml:1", {"'current'", "does not have"});
  expect_complaint(job("h100-sxm", "fp8_scaling: now"), context_of(1), "x.yaml:1", {"'now'", "delayed", "current"});
  expect_complaint(job("b200-sxm", "precision: mxfp8"), context_of(1), "x.yaml:1",
                   {"'mxfp8' needs the casts", "megatron_core"});
  expect_complaint(job("h100-sxm", "precision: mxfp8, framework: megatron_core"), context_of(1), "x.yaml:1",
                   {"no peak for 'mxfp8'"});
}

// Megatron-LM's --fp8-recipe, where the framework has the kernels and the device the GEMMs.
TEST(Fp8Recipes, OfMegatronsArguments) {
  const auto job = [](const std::string& recipe, const std::string& device, const std::string& more) {
    const TemporaryFile arguments(
        "run.sh",
        "pretrain_gpt.py --num-layers 2 --hidden-size 1024 --num-attention-heads 8 --seq-length "
        "1024 --vocab-size 32000 --micro-batch-size 1 --bf16 --fp8-format e4m3 --fp8-recipe " +
            recipe + " --cross-entropy-loss-fusion --cross-entropy-fusion-impl te\n");
    const std::string text = "{device: " + device + ", megatron: " + arguments.path() + more + "}";
    return read_training_job(Spec::parse(text, "x.yaml"), context_of(1)).description;
  };
  const std::string core = ", framework: megatron_core";
  EXPECT_EQ(job("mxfp8", "b200-sxm", core).precision, "mxfp8");
  EXPECT_EQ(job("mxfp8", "h100-sxm", core).precision, "fp8");
  EXPECT_EQ(job("mxfp8", "b200-sxm", "").precision, "fp8");
  EXPECT_EQ(job("tensorwise", "h100-sxm", core).fp8_scaling, Fp8Scaling::current);
  EXPECT_EQ(job("tensorwise", "h100-sxm", core + ", fp8_scaling: delayed").fp8_scaling, Fp8Scaling::delayed);
  EXPECT_EQ(job("tensorwise", "h100-sxm", "").fp8_scaling, Fp8Scaling::delayed);
  EXPECT_EQ(job("delayed", "h100-sxm", core).fp8_scaling, Fp8Scaling::delayed);
  EXPECT_TRUE(job("delayed", "h100-sxm", core).fused_loss);
}

}  // namespace
}  // namespace weft::test::fp8_recipes_test
