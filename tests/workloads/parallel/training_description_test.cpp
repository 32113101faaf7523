// SPDX-License-Identifier: GPL-2.0-only
// Values derived from a training description, and errors for contradictions.
#include "workloads/parallel/training_description.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::training_description_test {
namespace {

using Change = std::function<void(TrainingDescription&)>;

/// 24 blocks, hidden size 48, 12 heads over 4 key-value heads, MLP 96, sequences of 64 tokens.
TrainingDescription small_job() {
  TrainingDescription job;
  BlockShape block;
  block.attention.heads = 12;
  block.attention.kv_heads = 4;
  block.attention.head_size = block.attention.value_size = 4;
  block.mlp.gated = true;
  block.mlp.inner = 96;
  job.model.hidden = 48;
  job.model.vocabulary = 100;
  job.model.positions = 128;
  job.model.repeat(block, 24);
  job.sequence_length = 64;
  return job;
}

TrainingDescription mixture_job() {
  TrainingDescription job = small_job();
  MlpShape& mlp = job.model.shapes[0].mlp;
  mlp.inner = 0;
  mlp.experts = 8;
  mlp.experts_per_token = 2;
  mlp.expert_inner = 32;
  return job;
}

TrainingDescription settled(TrainingDescription job, const Change& change, std::int64_t hosts = 0) {
  change(job);
  settle_description(job, hosts, {"x.yaml", 1});
  return job;
}

/// The fields of `said` are in lines 11, 12, ... of job.sh; the error names the first of them, or x.yaml:1.
void expect_contradiction(TrainingDescription job, const Change& change, const std::vector<std::string>& said,
                          const std::vector<std::string>& parts, std::int64_t hosts = 0) {
  int line = 11;
  for (const auto& field : said) job.where[field] = {"job.sh", line++};
  const std::string message = complaint([&] { settled(std::move(job), change, hosts); });
  const std::string place = said.empty() ? "x.yaml:1: " : "job.sh:11: ";
  EXPECT_TRUE(message.starts_with(place)) << message << "\nis not at " << place;
  for (const auto& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
}

TEST(TrainingDescription, DataIsWhatTheWorldLeaves) {
  const auto job = settled(small_job(), [](auto& d) {
    d.world = 48;
    d.parallel.tensor = 4;
    d.parallel.context = 2;
    d.parallel.pipeline = 3;
  });
  EXPECT_EQ(job.parallel.data, 48 / (4 * 2 * 3));
  EXPECT_EQ(job.parallel.expert_tensor, 4);
}

TEST(TrainingDescription, TheWorldDefaultsToTheMachine) {
  EXPECT_EQ(settled(
                small_job(), [](auto& d) { d.parallel.tensor = 4; }, 32)
                .parallel.data,
            8);
  EXPECT_EQ(settled(
                small_job(), [](auto& d) { d.parallel.tensor = 4; }, 32)
                .world,
            32);
  // The given number may be less than the machine.
  EXPECT_EQ(settled(
                small_job(), [](auto& d) { d.parallel.data = 2; }, 32)
                .world,
            2);
  EXPECT_EQ(settled(
                small_job(), [](auto& d) { d.world = 16; }, 32)
                .parallel.data,
            16);
}

TEST(TrainingDescription, WithoutWorldAndMachineDataIsTheLeastThatWorks) {
  EXPECT_EQ(settled(small_job(), [](auto& d) { d.parallel.tensor = 4; }).parallel.data, 1);
  // global_batch = micro_batch * data * micro_batches
  const auto by_batch = settled(small_job(), [](auto& d) {
    d.global_batch = 96;
    d.micro_batch = 2;
    d.micro_batches = 6;
  });
  EXPECT_EQ(by_batch.parallel.data, 96 / (2 * 6));
  // expert * expert_tensor divides tensor * context * data
  const auto by_experts = settled(mixture_job(), [](auto& d) {
    d.parallel.tensor = 4;
    d.parallel.sequence = true;
    d.parallel.expert = 8;
    d.parallel.expert_tensor = 1;
  });
  EXPECT_EQ(by_experts.parallel.data, 2);
}

TEST(TrainingDescription, BatchesFollowFromEachOther) {
  const auto from_global = settled(small_job(), [](auto& d) {
    d.parallel.data = 4;
    d.micro_batch = 2;
    d.global_batch = 64;
  });
  EXPECT_EQ(from_global.micro_batches, 64 / (4 * 2));
  const auto from_micro = settled(small_job(), [](auto& d) {
    d.parallel.data = 4;
    d.micro_batch = 2;
    d.micro_batches = 3;
  });
  EXPECT_EQ(from_micro.global_batch, 4 * 2 * 3);
  EXPECT_EQ(settled(small_job(), [](auto& d) { d.parallel.data = 4; }).micro_batches, 1);
}

TEST(TrainingDescription, PrecisionsFollow) {
  const auto job = settled(small_job(), [](auto& d) { d.precision = "fp8"; });
  EXPECT_EQ(job.gradient_precision, "bf16");
  EXPECT_EQ(job.dispatch_precision, "bf16");  // only GEMMs have fp8
  const auto said = settled(small_job(), [](auto& d) {
    d.parameter_precision = "fp16";
    d.gradient_precision = "fp32";
    d.dispatch_precision = "bf16";
  });
  EXPECT_EQ(said.gradient_precision, "fp32");
  EXPECT_EQ(said.dispatch_precision, "bf16");
  expect_contradiction(small_job(), [](auto& d) { d.precision = "bf61"; }, {"precision"}, {"'bf61'", "mean 'bf16'"});
}

TEST(TrainingDescription, ProductsThatAreNotTheWorld) {
  const Change change = [](auto& d) {
    d.world = 48;
    d.parallel.tensor = 4;
    d.parallel.data = 3;
    d.parallel.pipeline = 2;
  };
  expect_contradiction(small_job(), change, {"data", "world"},
                       {"tensor 4 x context 1 x data 3 x pipeline 2 = 24", "world is 48", "use data 6"});
  expect_contradiction(small_job(), change, {}, {"= 24 ranks, but the world is 48"});
  const Change odd = [](auto& d) {
    d.world = 50;
    d.parallel.tensor = 4;
    d.parallel.data = 3;
  };
  expect_contradiction(small_job(), odd, {"data"}, {"= 12", "world is 50", "use a world of 12"});
}

TEST(TrainingDescription, WorldsThatCannotBeSharedOut) {
  const Change change = [](auto& d) {
    d.world = 20;
    d.parallel.tensor = 4;
    d.parallel.pipeline = 2;
  };
  expect_contradiction(small_job(), change, {"world"},
                       {"tensor 4 x context 1 x pipeline 2 = 8 ranks", "world of 20", "use 16 or 24"});
  const Change machine = [](auto& d) { d.parallel.tensor = 4; };
  expect_contradiction(small_job(), machine, {"tensor"}, {"= 4 ranks", "machine's accelerators of 6", "4 or 8"}, 6);
  const Change large = [](auto& d) {
    d.parallel.tensor = 4;
    d.parallel.data = 4;
  };
  expect_contradiction(small_job(), large, {"data"}, {"= 16 ranks", "machine has 8", "use a machine of 16"}, 8);
}

TEST(TrainingDescription, BatchesThatDoNotDivide) {
  const Change change = [](auto& d) {
    d.parallel.data = 4;
    d.micro_batch = 2;
    d.global_batch = 60;
  };
  expect_contradiction(small_job(), change, {"global_batch"},
                       {"global_batch 60", "micro_batch 2 x data 4 = 8", "use 56 or 64"});
  const Change all_three = [](auto& d) {
    d.parallel.data = 4;
    d.micro_batch = 2;
    d.global_batch = 64;
    d.micro_batches = 4;
  };
  expect_contradiction(small_job(), all_three, {"global_batch"},
                       {"global_batch 64", "micro_batches 4 = 32", "use micro_batches 8"});
}

TEST(TrainingDescription, HeadsAndWidthsByTensorRanks) {
  const auto tensor = [](std::int64_t ranks) { return [ranks](auto& d) { d.parallel.tensor = ranks; }; };
  expect_contradiction(small_job(), tensor(8), {"tensor"}, {"tensor 8", "12 attention heads", "use 6 or 12"});
  // 4 key-value heads over 12 ranks: three ranks have the same one; 3 ranks cannot share 4.
  EXPECT_EQ(settled(small_job(), tensor(12)).world, 12);
  expect_contradiction(small_job(), tensor(3), {"tensor"}, {"tensor 3", "4 key-value heads", "use 2 or 4"});
  const Change narrow = [](auto& d) {
    d.parallel.tensor = 4;
    d.model.shapes[0].mlp.inner = 90;
  };
  expect_contradiction(small_job(), narrow, {"tensor"}, {"tensor 4", "90 inner width", "use 3 or 5"});
}

TEST(TrainingDescription, LayersByStages) {
  const Change change = [](auto& d) {
    d.parallel.pipeline = 7;
    d.micro_batches = 7;
  };
  expect_contradiction(small_job(), change, {"pipeline"},
                       {"24 layers", "7 stages", "use 21 or 28 layers", "6 or 8 stages"});
  const Change virtual_alone = [](auto& d) { d.parallel.virtual_stages = 2; };
  expect_contradiction(small_job(), virtual_alone, {"virtual_stages"}, {"virtual_stages 2", "pipeline is 1"});
}

TEST(TrainingDescription, StagesMayHaveDifferentNumbersOfBlocks) {
  const auto even = settled(small_job(), [](auto& d) { d.parallel.pipeline = 3; });
  EXPECT_EQ(even.parallel.stage_layers, (std::vector<std::int64_t>{8, 8, 8}));
  EXPECT_EQ(settled(small_job(), [](auto&) {}).parallel.stage_layers, std::vector<std::int64_t>{24});
  const auto stages = [](std::vector<std::int64_t> layers) {
    return [layers](auto& d) {
      d.parallel.pipeline = 3;
      d.parallel.stage_layers = layers;
    };
  };
  EXPECT_EQ(settled(small_job(), stages({7, 10, 7})).parallel.stage_layers[1], 10);
  expect_contradiction(small_job(), stages({12, 12}), {"stage_layers"}, {"2 stages", "is 3", "3 numbers"});
  expect_contradiction(small_job(), stages({8, 8, 9}), {"stage_layers"}, {"25 blocks", "has 24", "sum of 24"});
  const Change unknown = [](auto& d) {
    d.parallel.pipeline = 2;
    d.parallel.schedule = "1f2b";
  };
  expect_contradiction(small_job(), unknown, {"schedule"}, {"'1f2b'", "mean '1f1b'"});
}

TEST(TrainingDescription, BucketsByElements) {
  // Megatron-LM: max(40,000,000, 1,000,000 * data-parallel ranks) elements; fp32 gradients have 4 bytes.
  const auto buckets = [](std::int64_t data) {
    return settled(small_job(),
                   [data](auto& d) {
                     d.parallel.data = data;
                     d.gradient_precision = "fp32";
                     d.bucket_elements = 40'000'000;
                     d.bucket_elements_per_rank = 1'000'000;
                   })
        .buckets.further.count();
  };
  EXPECT_EQ(buckets(8), 4 * 40'000'000);
  EXPECT_EQ(buckets(64), 4 * 64'000'000);
}

TEST(TrainingDescription, ExpertsByExpertRanks) {
  const Change change = [](auto& d) {
    d.parallel.data = 6;
    d.parallel.expert = 3;
  };
  expect_contradiction(mixture_job(), change, {"expert"}, {"expert 3", "8 experts", "use 2 or 4"});
  const Change group = [](auto& d) {
    d.parallel.data = 6;
    d.parallel.expert = 4;
  };
  expect_contradiction(mixture_job(), group, {"expert"},
                       {"expert 4 x expert_tensor 1 = 4", "data 6 = 6", "use 3 or 6"});
  const Change inner = [](auto& d) {
    d.parallel.data = 3;
    d.parallel.expert_tensor = 3;
  };
  expect_contradiction(mixture_job(), inner, {"expert_tensor"}, {"expert_tensor 3", "32 inner width of an expert"});
  const Change dense = [](auto& d) {
    d.parallel.data = 2;
    d.parallel.expert = 2;
  };
  expect_contradiction(small_job(), dense, {"expert"}, {"expert 2", "no block", "use 1"});
  const Change whole = [](auto& d) { d.parallel.tensor = 2; };
  expect_contradiction(mixture_job(), whole, {"tensor"},
                       {"tensor 2 and experts", "same tokens", "use `sequence: true`"});
  // Two experts of each token, of which a server has one.
  const Change servers = [](auto& d) {
    d.parallel.data = 8;
    d.parallel.expert = 8;
    d.parallel.expert_server = 1;
    d.parallel.servers_per_token = 1;
  };
  expect_contradiction(mixture_job(), servers, {"servers_per_token"},
                       {"2 experts", "servers_per_token 1", "use at least 2"});
}

TEST(TrainingDescription, SequencesByContextRanks) {
  const Change ring = [](auto& d) { d.parallel.context = 3; };
  expect_contradiction(small_job(), ring, {"context"}, {"64", "2 x context 3 = 6", "use 60 or 66"});
  const Change gathered = [](auto& d) {
    d.parallel.context = 3;
    d.parallel.context_kind = ContextKind::all_gather;
  };
  expect_contradiction(small_job(), gathered, {"sequence_length"}, {"64", "multiple of context 3 = 3", "63 or 66"});
  const Change ulysses = [](auto& d) {
    d.parallel.context = 8;
    d.parallel.context_kind = ContextKind::ulysses;
  };
  expect_contradiction(small_job(), ulysses, {"context"}, {"12 heads", "tensor 1 x context 8 = 8", "use 6 or 12"});
  const Change cut = [](auto& d) {
    d.parallel.tensor = 12;
    d.parallel.sequence = true;
  };
  expect_contradiction(small_job(), cut, {"sequence"}, {"tensor 12", "64 tokens", "use 8 or 16"});
  const Change long_one = [](auto& d) { d.sequence_length = 256; };
  expect_contradiction(small_job(), long_one, {"sequence_length"}, {"256", "128 positions"});
  const Change none = [](auto& d) { d.sequence_length = 0; };
  expect_contradiction(small_job(), none, {}, {"sequence_length is not said", "up to 128"});
}

TEST(TrainingDescription, RecomputationWithoutBlocks) {
  const Change no_attention = [](auto& d) {
    d.recompute = Recompute::selective;
    d.model.shapes[0].attention = AttentionShape{};
  };
  expect_contradiction(small_job(), no_attention, {"recompute"}, {"selective", "none or full"});
  const Change no_blocks = [](auto& d) {
    d.recompute = Recompute::full;
    d.model.blocks.clear();
  };
  expect_contradiction(small_job(), no_blocks, {"recompute"}, {"0 blocks", "use none"});
  const Change too_many = [](auto& d) {
    d.recompute = Recompute::full;
    d.recompute_layers = 25;
  };
  expect_contradiction(small_job(), too_many, {"recompute_layers"}, {"recompute_layers 25", "up to 24"});
  const Change of_nothing = [](auto& d) { d.recompute_layers = 2; };
  expect_contradiction(small_job(), of_nothing, {"recompute_layers"}, {"recompute_layers 2", "use 0"});
}

TEST(TrainingDescription, ShardGroups) {
  const Change uneven = [](auto& d) {
    d.parallel.data = 6;
    d.parallel.sharding = Sharding::parameters;
    d.parallel.shard_group = 4;
  };
  expect_contradiction(small_job(), uneven, {"shard_group"}, {"shard_group 4", "6 data-parallel", "use 3 or 6"});
  const auto copies = settled(small_job(), [](auto& d) {
    d.parallel.data = 8;
    d.parallel.sharding = Sharding::optimizer;
    d.parallel.shard_copies = 2;
  });
  EXPECT_EQ(copies.parallel.shard_group, 8 / 2);
  const Change nothing = [](auto& d) {
    d.parallel.data = 4;
    d.parallel.shard_group = 2;
  };
  expect_contradiction(small_job(), nothing, {"shard_group"}, {"nothing is sharded"});
}

TEST(TrainingDescription, NumbersOutOfRange) {
  expect_contradiction(small_job(), [](auto& d) { d.parallel.tensor = 0; }, {"tensor"}, {"tensor is 0", "from 1"});
  expect_contradiction(small_job(), [](auto& d) { d.micro_batch = 65537; }, {"micro_batch"}, {"65537", "to 65536"});
  expect_contradiction(small_job(), [](auto& d) { d.capacity_factor = -1; }, {"capacity_factor"}, {"is -1"});
  expect_contradiction(small_job(), [](auto& d) { d.pad_to_capacity = true; }, {"pad_to_capacity"},
                       {"no capacity_factor"});
  const Change large = [](auto& d) { d.parallel.tensor = d.parallel.pipeline = 8192; };
  expect_contradiction(small_job(), large, {"pipeline"}, {"more than 16,777,216 ranks"});
}

}  // namespace
}  // namespace weft::test::training_description_test
