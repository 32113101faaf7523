// SPDX-License-Identifier: GPL-2.0-only
// DeepSpeed's JSON and the Trainer's arguments: batches, ZeRO, FSDP, "auto", and complaints with file and line.
#include "workloads/configuration/deepspeed_config.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/configuration/trainer_arguments.hpp"

namespace weft::test::deepspeed_config_test {
namespace {

TrainingDescription gpt2_job() {
  TrainingDescription job;
  job.model = read_model(JsonConfig::load(workloads_folder() + "/models/gpt2.json"));
  job.sequence_length = 1024;
  return job;
}
TrainingDescription with_deepspeed(const std::string& text, TrainingDescription job = gpt2_job()) {
  apply_deepspeed(JsonConfig::parse(text, "ds.json"), job);
  return job;
}
TrainingDescription with_trainer(const std::string& text, const std::string& directory = ".") {
  TrainingDescription job = gpt2_job();
  apply_trainer_arguments(Spec::parse(text, "args.yaml"), directory, job);
  return job;
}
TrainingDescription settled(TrainingDescription job, std::int64_t world) {
  job.world = world;
  settle_description(job, 0, {"x.yaml", 1});
  return job;
}

TEST(DeepSpeed, ZeroThreeWithOffload) {
  const TrainingDescription job = with_deepspeed(R"({
  "train_batch_size": 64,
  "train_micro_batch_size_per_gpu": 2,
  "bf16": {"enabled": true},
  "gradient_clipping": 1.0,
  "zero_optimization": {
    "stage": 3,
    "reduce_bucket_size": 1e6,
    "stage3_prefetch_bucket_size": 2e7,
    "stage3_max_live_parameters": 1e9,
    "offload_optimizer": {"device": "cpu", "pin_memory": true},
    "offload_param": {"device": "none"},
    "zero_hpz_partition_size": 4
  },
  "optimizer": {"type": "AdamW"}
})");
  EXPECT_EQ(job.parallel.sharding, Sharding::parameters);
  EXPECT_EQ(job.parallel.shard_group, 4);
  EXPECT_TRUE(job.offload_optimizer);
  EXPECT_FALSE(job.offload_parameters);
  EXPECT_TRUE(job.overlap_gradients);
  EXPECT_EQ(job.precision, "bf16");
  EXPECT_EQ(job.gradient_precision, "bf16");
  EXPECT_EQ(job.parallel.prefetch, 20'000'000 / 7'087'872);  // parameters of a block of GPT-2: 12 h^2 + 13 h
  EXPECT_EQ(job.ignored, (std::vector<std::string>{"zero_optimization.stage3_max_live_parameters", "optimizer"}));
  EXPECT_EQ(job.where.at("sharding").text(), "ds.json:7");
  EXPECT_EQ(job.where.at("shard_group").text(), "ds.json:13");
  const TrainingDescription done = settled(job, 8);
  EXPECT_EQ(done.micro_batches, 64 / (2 * 8));
  EXPECT_EQ(done.buckets.further.count(), 2 * 1'000'000);
}

TEST(DeepSpeed, Stages) {
  const auto stage = [](const std::string& text) {
    return with_deepspeed("{\"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": " + text + "}");
  };
  EXPECT_EQ(stage("{\"stage\": 0}").parallel.sharding, Sharding::none);
  EXPECT_EQ(stage("{\"stage\": 1}").parallel.sharding, Sharding::optimizer);
  EXPECT_EQ(stage("{\"stage\": 2}").parallel.sharding, Sharding::gradients);
  EXPECT_TRUE(stage("{\"stage\": 2}").reduce_every_micro_batch);
  EXPECT_FALSE(stage("{\"stage\": 2}").overlap_gradients);
  EXPECT_TRUE(stage("{\"stage\": 2, \"overlap_comm\": true}").overlap_gradients);
  EXPECT_EQ(stage("true").parallel.sharding, Sharding::optimizer);
  EXPECT_EQ(stage("{}").bucket_elements, 500'000'000);
  EXPECT_EQ(stage("{\"stage\": 1}").precision, "fp32");
}

TEST(DeepSpeed, BatchSizesFollowFromEachOther) {
  const auto batches = [](const std::string& text) {
    const TrainingDescription job = settled(with_deepspeed("{" + text + "}"), 8);
    return std::vector<std::int64_t>{job.global_batch, job.micro_batch, job.micro_batches};
  };
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(batches(R"("train_batch_size": 64)"), (Sizes{64, 8, 1}));
  EXPECT_EQ(batches(R"("train_micro_batch_size_per_gpu": 4)"), (Sizes{32, 4, 1}));
  EXPECT_EQ(batches(R"("train_batch_size": 64, "gradient_accumulation_steps": 4)"), (Sizes{64, 2, 4}));
  EXPECT_EQ(batches(R"("train_batch_size": 64, "train_micro_batch_size_per_gpu": 4)"), (Sizes{64, 4, 2}));
  EXPECT_EQ(batches(R"("train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3)"), (Sizes{96, 4, 3}));
  EXPECT_EQ(batches(R"("train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4)"),
            (Sizes{64, 2, 4}));
  EXPECT_EQ(batches(R"("train_batch_size": "auto", "train_micro_batch_size_per_gpu": 2)"), (Sizes{16, 2, 1}));
}

TEST(DeepSpeed, ParallelRanks) {
  const TrainingDescription job = with_deepspeed(
      R"({"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 4, "tensor_parallel": {"autotp_size": 3}})");
  EXPECT_EQ(job.parallel.context, 4);
  EXPECT_EQ(job.parallel.context_kind, ContextKind::ulysses);
  EXPECT_EQ(job.parallel.tensor, 3);
}

void expect_bad(const std::function<void()>& action, const std::string& place, const std::vector<std::string>& parts) {
  const std::string message = complaint(action);
  EXPECT_TRUE(message.starts_with(place + ":")) << message;
  for (const auto& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
}

TEST(DeepSpeed, Complaints) {
  const auto bad = [](const std::string& text, const std::string& place, const std::vector<std::string>& parts) {
    expect_bad([&] { with_deepspeed(text); }, place, parts);
  };
  const std::string start = "{\"train_micro_batch_size_per_gpu\": 1,\n ";
  bad("{}", "ds.json", {"train_batch_size", "expected one of them"});
  bad("{\n\"train_micro_batch_size_per_gpu\": \"auto\"}", "ds.json:2",
      {"\"auto\", but nothing says", "write the value"});
  bad(start + "\"zero_optimization\": {\n\"stage\": 4}}", "ds.json:3", {"`zero_optimization.stage`", "0 to 3", "4"});
  bad(start + "\"bf16\": {\"enabled\": \"auto\"}}", "ds.json:2", {"`bf16.enabled`", "Trainer"});
  bad(start + "\"bf16\": {\"enabled\": true}, \"fp16\": {\"enabled\": true}}", "ds.json:2", {"leave one"});
  bad(start + "\"gradient_clipping\": \"auto\"}", "ds.json:2", {"max_grad_norm"});
  bad(start + "\"zero_optimization\": {\"stage\": 1,\n \"zero_hpz_partition_size\": 8}}", "ds.json:3", {"expected 3"});
  bad(start + "\"zero_optimization\": {\"stage\": 2,\n \"reduce_scatter\": false}}", "ds.json:3", {"only true"});
  bad(start + "\"zero_optimization\": {\"offload_param\": {\"device\": \"disk\"}}}", "ds.json:2", {"'disk'", "nvme"});
  bad(start + "\"communication_data_type\": \"int8\"}", "ds.json:2", {"'int8'", "bf16"});
  expect_bad(
      [&] {
        with_deepspeed(start + "\"zero_optimization\": {\"stage\": 3,\n \"reduce_bucket_size\": \"auto\"}}",
                       TrainingDescription());
      },
      "ds.json:3", {"hidden size", "no model"});
  // The identity of the batch sizes does not hold.
  expect_bad(
      [&] {
        settled(with_deepspeed("{\"train_micro_batch_size_per_gpu\": 1,\n \"train_batch_size\": 60,\n"
                               " \"gradient_accumulation_steps\": 4}"),
                8);
      },
      "ds.json:2", {"global_batch 60", "= 32", "a global_batch of 32"});
}

TEST(Trainer, PlainArguments) {
  const TrainingDescription job = with_trainer(
      "per_device_train_batch_size: 4\ngradient_accumulation_steps: 2\n"
      "bf16: true\ngradient_checkpointing: true\nlearning_rate: 1.0e-5\n");
  EXPECT_EQ(job.micro_batch, 4);
  EXPECT_EQ(job.micro_batches, 2);
  EXPECT_EQ(job.precision, "bf16");
  EXPECT_EQ(job.parameter_precision, "fp32");
  EXPECT_EQ(job.recompute, Recompute::full);
  EXPECT_EQ(job.where.at("micro_batch").text(), "args.yaml:1");
  EXPECT_EQ(job.ignored, std::vector<std::string>{"learning_rate"});
  EXPECT_EQ(settled(job, 8).global_batch, 4 * 2 * 8);
  EXPECT_EQ(with_trainer("output_dir: x\n").micro_batch, 8);  // the Trainer's default
  EXPECT_EQ(with_trainer("{\"per_device_train_batch_size\": 3, \"fp16\": true}").precision, "fp16");
}

TEST(Trainer, Fsdp) {
  const TrainingDescription full = with_trainer(
      "bf16: true\nfsdp: full_shard auto_wrap\nfsdp_config:\n"
      "  fsdp_backward_prefetch: no_prefetch\n"
      "  fsdp_transformer_layer_cls_to_wrap: GPT2Block\n");
  EXPECT_EQ(full.parallel.sharding, Sharding::parameters);
  EXPECT_TRUE(full.parallel.reshard_after_forward);
  EXPECT_EQ(full.parallel.prefetch, 0);
  EXPECT_EQ(full.parameter_precision, "bf16");
  EXPECT_EQ(full.ignored, std::vector<std::string>{"fsdp_config.fsdp_transformer_layer_cls_to_wrap"});
  EXPECT_FALSE(with_trainer("fsdp: [shard_grad_op, offload]\n").parallel.reshard_after_forward);
  EXPECT_TRUE(with_trainer("fsdp: [shard_grad_op, offload]\n").offload_parameters);
  EXPECT_EQ(with_trainer("fsdp: \"\"\n").parallel.sharding, Sharding::none);
}

TEST(Trainer, DeepSpeedTakesItsAutoValuesFromTheArguments) {
  const TemporaryFile file("ds.json", R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
 "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "bf16": {"enabled": "auto"},
 "fp16": {"enabled": "auto"},
 "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
 "stage3_param_persistence_threshold": "auto"}})");
  const std::string folder = std::filesystem::path(file.path()).parent_path();
  const TrainingDescription job = with_trainer(
      "per_device_train_batch_size: 2\ngradient_accumulation_steps: 4\nbf16: true\ndeepspeed: ds.json\n", folder);
  EXPECT_EQ(job.micro_batch, 2);
  EXPECT_EQ(job.micro_batches, 4);
  EXPECT_EQ(job.precision, "bf16");
  EXPECT_EQ(job.gradient_precision, "bf16");
  EXPECT_TRUE(job.clip_gradients);
  EXPECT_EQ(job.bucket_elements, 768 * 768);  // "auto" is the square of the hidden size
  EXPECT_EQ(settled(job, 8).global_batch, 2 * 4 * 8);
}

TEST(Trainer, Complaints) {
  const auto bad = [](const std::string& text, const std::string& place, const std::vector<std::string>& parts) {
    expect_bad([&] { with_trainer(text); }, place, parts);
  };
  bad("bf16: true\nfp16: true\n", "args.yaml:2", {"leave one"});
  bad("bf16: true\nfsdp: full_shards\n", "args.yaml:2", {"'full_shards'", "full_shard,"});
  bad("x: 1\nfsdp: hybrid_shard\n", "args.yaml:2", {"within a server"});
  bad("x: 1\ndeepspeed: nowhere.json\n", "args.yaml:2", {"nowhere.json"});
  bad("per_device_train_batch_size: 0\n", "args.yaml:1", {"from 1"});
  bad("- 1\n", "args.yaml:1", {"map"});
}

}  // namespace
}  // namespace weft::test::deepspeed_config_test
