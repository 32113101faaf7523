// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `training`: the program of a step, volumes, complaints.
#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/compute/kernel_time.hpp"
#include "workloads/model/model_config.hpp"
#include "workloads/parallel/gradient_buckets.hpp"

namespace weft::test::training_test {
namespace {

const std::string start =
    "kind: training\nmodel: gpt2\ndevice: h100-sxm\nmicro_batch: 8\nsequence_length: 1024\nparallelism: {data: 16}\n";

ModelConfig gpt2() { return read_model(JsonConfig::load(workloads_folder() + "/models/gpt2.json")); }

TEST(Training, StepIsForwardBackwardReductionsOptimizer) {
  const auto workload = read_workload(start, context_of(16));
  const auto operations = operations_of(*workload, 5);
  const auto buckets = gradient_buckets(gpt2(), 2, {});
  EXPECT_EQ(operations.front().label, "micro-batch 0 forward embedding");
  EXPECT_EQ(operations.back().label, "optimizer");
  // Each bucket follows the last operation of the backward pass of the part that completes it.
  std::set<std::uint64_t> reductions;
  std::size_t bucket = 0;
  for (const Operation& operation : operations) {
    if (operation.kind == Operation::Kind::compute) {
      EXPECT_EQ(operation.stream, Stream::compute);
    }
    if (operation.kind != Operation::Kind::collective) continue;
    EXPECT_EQ(operation.stream, Stream::communication);
    EXPECT_EQ(operation.call->size, buckets[bucket].size);
    ASSERT_EQ(operation.after.size(), 1U);
    const std::uint32_t part = buckets[bucket].ready_after;
    EXPECT_EQ(operations[operation.after[0]].label,
              part == 0    ? "micro-batch 0 backward embedding"
              : part == 13 ? "micro-batch 0 backward final norm gradient"
                           : "micro-batch 0 backward block " + std::to_string(part - 1) + " attention norm gradient");
    reductions.insert(operation.id);
    ++bucket;
  }
  EXPECT_EQ(bucket, buckets.size());
  EXPECT_EQ(std::set<std::uint64_t>(operations.back().after.begin(), operations.back().after.end()), reductions);
}

TEST(Training, ComputeIsTheSumOfTheOperations) {
  const auto workload = read_workload(start, context_of(16));
  Time sum;
  for (const Operation& operation : operations_of(*workload, 0)) sum += operation.duration;
  EXPECT_EQ(workload->estimate().compute, sum);
  // The optimizer moves 2 + 12 + 12 + 2 bytes per parameter (adam_traffic), at the device's memory bandwidth.
  const Device device = read_device(Spec::load(workloads_folder() + "/devices/h100-sxm.yaml"));
  Kernel kernel;
  kernel.kind = Kernel::Kind::memory;
  kernel.bytes = 124'439'808LL * (2 + 12 + 12 + 2);
  EXPECT_EQ(operations_of(*workload, 0).back().duration, kernel_time(device, kernel));
}

TEST(Training, AllRanksHaveTheSameProgram) {
  const auto workload = read_workload(start, context_of(16));
  const auto first = operations_of(*workload, 0);
  const auto last = operations_of(*workload, 15);
  ASSERT_EQ(first.size(), last.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].duration, last[i].duration);
    ASSERT_EQ(first[i].call == nullptr, last[i].call == nullptr);
    if (first[i].call != nullptr) {
      EXPECT_EQ(first[i].call->id, last[i].call->id);
    }
  }
}

TEST(Training, StepsFollowEachOther) {
  const auto one = read_workload(start, context_of(16));
  const auto three = read_workload(start + "steps: 3\n", context_of(16));
  const auto operations = operations_of(*three, 0);
  const std::size_t size = operations_of(*one, 0).size();
  ASSERT_EQ(operations.size(), 3 * size);
  EXPECT_EQ(three->call_count(), 3 * one->call_count());
  EXPECT_EQ(three->estimate().bytes, one->estimate().bytes * 3);
  std::set<std::uint32_t> calls;
  for (const Operation& operation : operations) {
    if (operation.call != nullptr) calls.insert(operation.call->id);
    for (const auto earlier : operation.after) EXPECT_EQ(earlier / size, operation.id / size);
  }
  EXPECT_EQ(calls.size(), three->call_count());
}

TEST(Training, EveryGradientByteIsReducedOnce) {
  const std::int64_t parameters = 124'439'808;
  for (const auto& [precision, bytes] : {std::pair<std::string, std::int64_t>{"bf16", 2}, {"fp32", 4}}) {
    const auto workload = read_workload(start + "gradient_precision: " + precision + "\n", context_of(16));
    std::int64_t sum = 0;
    for (const CollectiveCall& call : calls_of(*workload)) sum += call.size.count();
    EXPECT_EQ(sum, parameters * bytes);
    EXPECT_EQ(workload->estimate().bytes.count(), 2 * (16 - 1) * parameters * bytes);
  }
}

TEST(Training, BucketSizesAreTaken) {
  const auto workload = read_workload(start + "bucket_size: 1 GiB\nfirst_bucket_size: 1 GiB\n", context_of(16));
  EXPECT_EQ(workload->call_count(), 1U);
  EXPECT_EQ(workload->call(0).size.count(), 2 * 124'439'808);
}

TEST(Training, LlamaOnOneGpuEightGpusAndManyIsRead) {
  for (const std::uint32_t ranks : {1U, 8U, 128U}) {
    const auto workload = read_workload(
        "{kind: training, model: llama-3.1-8b, device: a100-sxm, micro_batch: 1, "
        "sequence_length: 8192, parallelism: {data: " +
            std::to_string(ranks) + "}}",
        context_of(128));
    EXPECT_EQ(workload->ranks(), ranks);
    EXPECT_EQ(workload->estimate().bytes.count(), 2 * std::int64_t{ranks - 1} * 2 * 8'030'261'248);
    const auto lines = workload->description();
    EXPECT_NE(std::find(lines.begin(), lines.end(), std::pair<std::string, std::string>("parameters", "8,030,261,248")),
              lines.end());
    operations_of(*workload, ranks - 1);
  }
}

TEST(Training, Complaints) {
  const auto context = context_of(16);
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = start;
    return text.replace(text.find(from), from.size(), to);
  };
  expect_complaint(with("gpt2", "gpt3"), context, "x.yaml:2", {"gpt3", "did you mean 'gpt2'", "llama-3.1-8b"});
  expect_complaint(with("h100-sxm", "h100"), context, "x.yaml:3",
                   {"h100", "a100-sxm, b200-sxm, gb200, gh200, h100-sxm"});
  expect_complaint(with("micro_batch: 8", "micro_batch: 0"), context, "x.yaml:4", {"0"});
  expect_complaint(with("1024", "1025"), context, "x.yaml:5", {"1025 tokens", "1024 positions"});
  expect_complaint(with("data: 16", "data: 17"), context, "x.yaml:6", {"17 ranks", "16 accelerators"});
  expect_complaint(with("data: 16", "data: 2, tensor: 8"), context, "x.yaml:6", {"tensor 8", "12 attention heads"});
  expect_complaint(with("data: 16", "data: 2, tensr: 8"), context, "x.yaml:6", {"did you mean 'tensor'"});
  EXPECT_EQ(complaint_about(with("data: 16", "data: 16, tensor: 1, pipeline: 1"), context), "");
  expect_complaint(start + "precision: bf61\n", context, "x.yaml:7", {"did you mean 'bf16'"});
  expect_complaint(with("h100", "a100") + "precision: fp8\n", context, "x.yaml:7", {"no peak for 'fp8'", "bf16, fp16"});
  for (const std::string format : {"fp4", "nvfp4", "mxfp4"})
    expect_complaint(start + "precision: " + format + "\n", context, "x.yaml:7",
                     {"'" + format + "': no device file has measured GEMMs", "use fp8"});
  expect_complaint(start + "gradient_precision: fp8\n", context, "x.yaml:7", {"fp8"});
  expect_complaint(start + "bucket_size: 0 B\n", context, "x.yaml:7", {"0 B"});
  expect_complaint(start + "bucket_size: 25\n", context, "x.yaml:7", {"unit"});
  expect_complaint(start + "bucket_sizes: 25 MiB\n", context, "x.yaml:7", {"did you mean 'bucket_size'"});
  expect_complaint(start + "efficiency: 2\n", context, "x.yaml:7", {"2"});
  expect_complaint(start + "algorithm: rong\n", context, "x.yaml:7", {"did you mean 'ring'"});

  const TemporaryFile broken("config.json", "{\n \"model_type\": \"gpt2\",\n \"n_layer\": 12,\n}\n");
  expect_complaint(with("gpt2", broken.path()), context, broken.path() + ":4", {"not valid JSON"});
  const TemporaryFile lacking("config.json", "{\n \"model_type\": \"gpt2\",\n \"n_layer\": 12\n}\n");
  expect_complaint(with("gpt2", lacking.path()), context, lacking.path(), {"n_embd", "missing"});
  const TemporaryFile device("device.yaml", "name: x\npeak: {bf16: 3}\n");
  expect_complaint(with("h100-sxm", device.path()), context, device.path() + ":2", {"TFLOP/s"});
}

TEST(Training, ReadyMadeExperimentsAreRead) {
  for (const std::string name :
       {"quickstart", "llama31_8b_data_parallel", "ring_all_reduce", "permutation", "incast", "ddp_step"}) {
    const Spec spec = Spec::load(workloads_folder() + "/" + name + ".yaml");
    const Spec map = spec.at("workload");
    const auto workload = WorkloadRegistry::instance().find(map.at("kind").text())->make()->read(map, context_of(128));
    EXPECT_GE(workload->ranks(), 4U) << name;
    EXPECT_GT(workload->estimate().messages, 0U) << name;
    EXPECT_FALSE(workload->description().empty());
  }
}

}  // namespace
}  // namespace weft::test::training_test
