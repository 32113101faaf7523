// SPDX-License-Identifier: GPL-2.0-only
// Transfers over the link to the host: bytes / bandwidth each, one after another in each direction.
#include <map>

#include <gtest/gtest.h>

#include "tests/runtime/job.hpp"
#include "workloads/model/model_config.hpp"
#include "workloads/parallel/gradient_buckets.hpp"

namespace weft::test::offload_test {
namespace {

const std::string device_text =
    "name: d\npeak: {bf16: 1 TFLOP/s}\nefficiency: 1\nmemory_bandwidth: 1 TB/s\nmemory: 80 GB\n";

struct Offload {
  TemporaryFile config{"config.json", R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2,
 "n_positions": 64, "vocab_size": 1000})"};
  TemporaryFile device{"d.yaml", device_text + "host_link: 1 GB/s\nhost_memory_bandwidth: 4 GB/s\n"};

  std::string text(const std::string& keys, const std::string& path = "") const {
    return "{kind: training, model: " + config.path() + ", device: " + (path.empty() ? device.path() : path) +
           ", sequence_length: 64, clip_gradients: false, " + keys + "}";
  }
  std::int64_t parameters() const { return read_model(JsonConfig::load(config.path())).parameters(); }
};

std::int64_t compute_ps(const Offload& offload, const std::string& keys) {
  return read_workload(offload.text(keys), context_of(1))->estimate().compute.ps();
}

/// Of the step's own optimizer, which moves 2 + 24 + 2 bytes of each parameter (adam.hpp).
std::int64_t adam_ps(std::int64_t parameters, std::int64_t ps_per_byte) { return 28 * parameters * ps_per_byte; }

// Nothing beside anything: the kernels, 2 P to the host, 28 P through its memory, 2 P back. 1 GB/s is 1000 ps per byte.
TEST(Offload, OptimizerWithoutOverlapAddsItsTransfers) {
  const Offload offload;
  const std::int64_t p = offload.parameters();
  const std::int64_t kernels = compute_ps(offload, "micro_batch: 8") - adam_ps(p, 1);
  Job job(1, offload.text("micro_batch: 8, offload_optimizer: true, overlap_offload: false"));
  job.complete();
  EXPECT_EQ(job.rank(0).finished, kernels + 2 * p * 1000 + adam_ps(p, 250) + 2 * p * 1000);
}

/// When the gradients of a part are there, on a rank that computes without a pause.
std::int64_t ready_ps(const std::vector<Operation>& operations, std::uint32_t part) {
  const std::string label =
      part == 0   ? "micro-batch 0 backward embedding"
      : part == 3 ? "micro-batch 0 backward final norm gradient"
                  : "micro-batch 0 backward block " + std::to_string(part - 1) + " attention norm gradient";
  Time now;
  for (const Operation& operation : operations) {
    now += operation.duration;
    if (operation.label == label) return now.ps();
  }
  ADD_FAILURE() << label;
  return 0;
}

// Each bucket is sent when it is ready and the one before has been sent; then the rest as above.
TEST(Offload, GradientsOverlapWithTheBackwardPass) {
  const Offload offload;
  const std::int64_t p = offload.parameters();
  const auto model = read_model(JsonConfig::load(offload.config.path()));
  for (const std::string efficiency : {"1", "0.01", "0.001"}) {
    const std::string keys = "micro_batch: 8, bucket_size: 50 kB, first_bucket_size: 50 kB, efficiency: " + efficiency;
    const auto operations = operations_of(*read_workload(offload.text(keys), context_of(1)), 0);
    std::int64_t sent = 0;
    for (const GradientBucket& bucket : gradient_buckets(model, 2, {Bytes(50'000), Bytes(50'000)}))
      sent = std::max(sent, ready_ps(operations, bucket.ready_after)) + bucket.size.count() * 1000;
    Job job(1, offload.text(keys + ", offload_optimizer: true"));
    job.complete();
    EXPECT_EQ(job.rank(0).finished, sent + adam_ps(p, 250) + 2 * p * 1000);
  }
}

// With ZeRO each rank moves its share: 2 P / 4 up, and as much down.
TEST(Offload, RanksMoveTheirShares) {
  const Offload offload;
  const std::int64_t p = offload.parameters();
  for (const std::string sharding : {"optimizer", "parameters"}) {
    const auto workload = read_workload(
        offload.text("parallelism: {data: 4, sharding: " + sharding + "}, offload_optimizer: true"), context_of(4));
    std::map<std::string, Time> times;
    for (const Operation& operation : operations_of(*workload, 1))
      times[std::string(operation.operator_name)] += operation.duration;
    const std::int64_t share = p / 4;
    EXPECT_NEAR(static_cast<double>(times["gradients to host"].ps()), static_cast<double>(2 * share * 1000), 64e3);
    EXPECT_EQ(times["parameters to device"].ps(), 2 * ((p + 3) / 4) * 1000);
    EXPECT_EQ(times["optimizer"].ps(), 0);
  }
}

// Parameters on the host arrive before each part's pass, forward and backward, and delay nothing when they are early.
TEST(Offload, ParametersComeForEachPass) {
  const Offload offload;
  const std::int64_t p = offload.parameters();
  const std::string both = "micro_batch: 8, offload_optimizer: true, offload_parameters: true";
  Job serial(1, offload.text(both + ", overlap_offload: false"));
  serial.complete();
  const std::int64_t kernels = compute_ps(offload, "micro_batch: 8") - adam_ps(p, 1);
  EXPECT_EQ(serial.rank(0).finished, kernels + 2 * 2 * p * 1000 + 2 * p * 1000 + adam_ps(p, 250));
  Job beside(1, offload.text(both));
  beside.complete();
  EXPECT_LT(beside.rank(0).finished, serial.rank(0).finished);
  EXPECT_GE(beside.rank(0).finished, 2 * 2 * p * 1000 + adam_ps(p, 250));  // the time of the link alone
}

// The next step begins when the host is done.
TEST(Offload, StepsFollowEachOther) {
  const Offload offload;
  for (const std::string more : {"", ", offload_parameters: true"}) {
    const std::string keys = "micro_batch: 2, overlap_offload: false, offload_optimizer: true" + more;
    Job one(1, offload.text(keys));
    one.complete();
    Job three(1, offload.text(keys + ", steps: 3"));
    three.complete();
    EXPECT_EQ(three.rank(0).finished, 3 * one.rank(0).finished);
  }
}

TEST(Offload, NeedsALink) {
  const Offload offload;
  const TemporaryFile bare("bare.yaml", device_text);
  const std::string text = offload.text("offload_optimizer: true", bare.path());
  expect_complaint(text, context_of(1), "x.yaml:1", {"'d' has no link to its host", "host_link"});
}

}  // namespace
}  // namespace weft::test::offload_test
