// SPDX-License-Identifier: GPL-2.0-only
// GEMMs of fp8 that add up in two levels: how long they take, which ones do it, complaints.
#include <vector>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/compute/framework.hpp"
#include "workloads/compute/kernel_time.hpp"
#include "workloads/pass/block_passes.hpp"

namespace weft::test::split_accumulation_test {
namespace {

/// 100 and 200 TFLOP/s and 1 TB/s; tiles of 100 x 100 at half of the peak; two levels at 0.8 of the rate.
const std::string toy =
    "name: toy\npeak: {bf16: 100 TFLOP/s, fp8: 200 TFLOP/s, fp8_block: 200 TFLOP/s}\nmemory_bandwidth: 1 TB/s\n"
    "memory: 10 GB\nefficiency: 0.9\n"
    "sustained:\n  split_accumulation: 0.8\n  gemms: {units: 10, tiles: [[100, 100, 0.5]]}\n"
    "  fp8_block_gemms: {units: 10, tiles: [[100, 100, 0.5]]}\n";

Device device(const std::string& text) {
  Device result = read_device(Spec::parse(text, "toy.yaml"));
  result.in_a_step = true;
  return result;
}

Time time_of(std::int64_t k, const std::string& precision, bool split) {
  Kernel kernel;
  kernel.m = kernel.n = 1000;
  kernel.k = k;
  kernel.precision = precision;
  kernel.split_accumulation = split;
  return kernel_time(device(toy), kernel);
}

// 2 * 1000 * 1000 * 10,000 FLOP at half of 200 TFLOP/s are 200 us, and at 0.8 of this 250 us. In bf16, at half of 100
// TFLOP/s, 400 us either way; GEMMs in blocks were measured with two levels.
TEST(SplitAccumulation, SlowsTheArithmeticOfFp8Down) {
  EXPECT_EQ(time_of(10'000, "fp8", false), Time::from_us(200));
  EXPECT_EQ(time_of(10'000, "fp8", true), Time::from_us(250));
  EXPECT_EQ(time_of(10'000, "bf16", true), Time::from_us(400));
  EXPECT_EQ(time_of(10'000, "fp8_block", true), Time::from_us(200));
}

// 2 * 1000 * 1000 * 50 FLOP take 1.25 us, but 1000 * 50 * 2 B and 1000 * 1000 B at 1 TB/s less: 1.1 us. With 20 along k
// traffic counts, 1000 * 20 * 2 B + 1e6 B: 1.04 us; arithmetic takes 0.5 us.
TEST(SplitAccumulation, DoesNotSlowTrafficDown) {
  EXPECT_EQ(time_of(50, "fp8", true), Time::from_ns(1250));
  EXPECT_EQ(time_of(20, "fp8", true), Time::from_ns(1040));
}

struct Count {
  int split = 0, other = 0;
};

/// GEMMs of a pass over one block of Llama 3.1 8B.
Count gemms(const std::vector<Segment>& pass) {
  Count count;
  for (const Segment& segment : pass)
    for (const KernelUse& use : segment.kernels)
      if (use.kernel.kind == Kernel::Kind::gemm) ++(use.kernel.split_accumulation ? count.split : count.other);
  return count;
}

PartPasses block(const std::string& framework) {
  TrainingDescription description;
  description.model = read_model(JsonConfig::load(workloads_folder() + "/models/llama-3.1-8b.json"));
  description.micro_batch = 1;
  description.sequence_length = 4096;
  description.parallel.data = 1;
  description.parallel.expert_tensor = 1;
  description.precision = "fp8";
  const OperatorTimes times{read_device(Spec::load(workloads_folder() + "/devices/h100-sxm.yaml"))};
  const KernelCatalogue kernels =
      read_kernel_catalogue(Spec::load(workloads_folder() + "/frameworks/" + framework + ".yaml"));
  return block_passes({&description, &times, kernels.attention, &kernels}, description.model.layer_shape(0));
}

// Queries, keys and values, the GEMM behind attention, and two of the MLP: four forward, and for each one for the
// gradient of its input and one for that of its weights. Transformer Engine (pytorch/module/base.py, _2X_ACC_DGRAD,
// _2X_ACC_WGRAD) and torchao (float8/config.py) add up the gradients in two levels. A framework that does not say so
// does not.
TEST(SplitAccumulation, IsForGradients) {
  for (const std::string framework : {"megatron_core", "pytorch_compiled"}) {
    const PartPasses passes = block(framework);
    const Count forward = gemms(passes.forward), backward = gemms(passes.backward);
    EXPECT_EQ(forward.split, 0) << framework;
    EXPECT_GE(forward.other, 4) << framework;
    EXPECT_EQ(backward.split, 2 * forward.other) << framework;
    EXPECT_EQ(backward.other, 0) << framework;
  }
  EXPECT_EQ(gemms(block("llm_foundry").backward).split, 0);
}

TEST(SplitAccumulation, Complaints) {
  const auto of_device = [](const std::string& value) {
    std::string text = toy;
    text.replace(text.find("0.8\n"), 3, value);
    return complaint([&] { device(text); });
  };
  EXPECT_EQ(of_device("0.945"), "");
  for (const std::string value : {"0", "1.2", "fast"})
    EXPECT_TRUE(of_device(value).starts_with("toy.yaml:7:")) << value << ": " << of_device(value);
  const std::string kernels =
      "name: x\nattention: flash\nsplit_accumulation: 0.9\nkernels: {}\n"
      "step: {optimizer: [{kernel: a, per: parameters, reads: 4}]}\n";
  const std::string about = complaint([&] { read_kernel_catalogue(Spec::parse(kernels, "f.yaml")); });
  EXPECT_TRUE(about.starts_with("f.yaml:3:")) << about;
}

}  // namespace
}  // namespace weft::test::split_accumulation_test
