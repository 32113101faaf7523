// SPDX-License-Identifier: GPL-2.0-only
// Programs of all ranks together: whatever the plan of parallelism, sends meet their receives, members of a
// communicator call the same collectives in the same order, and nobody waits for ever.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/parallel/expert_routing.hpp"

namespace weft::test::training_programs_test {
namespace {

const std::string small_model =
    R"({"model_type": "llama", "max_position_embeddings": 4096, "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 16, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 256,
        "tie_word_embeddings": true})";
const std::string small_mixture =
    R"({"model_type": "mixtral", "max_position_embeddings": 4096, "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 256,
        "num_local_experts": 8, "num_experts_per_tok": 2})";

/// Executes programs strictly in order: an operation is done before the next one is looked at. Sends are never waited
/// for. This is as strict as an executor with the smallest read-ahead.
class InOrder {
 public:
  explicit InOrder(const Workload& workload) {
    for (std::uint32_t r = 0; r < workload.ranks(); ++r) {
      programs_.push_back(operations_of(workload, r));
      at_.push_back(0);
    }
  }

  /// True if all came to their ends.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t r = 0; r < programs_.size(); ++r)
        while (at_[r] < programs_[r].size() && step(r)) moved = true;
    }
    for (std::uint32_t r = 0; r < programs_.size(); ++r)
      if (at_[r] != programs_[r].size()) return false;
    return messages_.empty() && waiting_.empty();
  }

 private:
  using Lane = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // source, destination, tag

  bool step(std::uint32_t r) {
    const Operation& operation = programs_[r][at_[r]];
    if (operation.kind == Operation::Kind::send)
      messages_[{r, operation.peer.value(), operation.tag}].push_back(operation.bytes.count());
    if (operation.kind == Operation::Kind::recv) {
      const auto lane = messages_.find({operation.peer.value(), r, operation.tag});
      if (lane == messages_.end()) return false;
      EXPECT_EQ(lane->second.front(), operation.bytes.count());
      lane->second.erase(lane->second.begin());
      if (lane->second.empty()) messages_.erase(lane);
    }
    if (operation.kind == Operation::Kind::collective) return arrive(r, *operation.call);
    ++at_[r];
    return true;
  }

  /// All members go on when the last one has come; they must have come for the same call.
  bool arrive(std::uint32_t r, const CollectiveCall& call) {
    const Communicator& members = *call.communicator;
    EXPECT_LT(members.index_of(Rank(r)), members.size());
    auto& here = waiting_[members.id()];
    for (const auto& [rank, id] : here) EXPECT_EQ(id, call.id);
    if (!here.emplace(r, call.id).second || here.size() < members.size()) return false;
    for (const auto& [rank, id] : here) ++at_[rank];
    waiting_.erase(members.id());
    return true;
  }

  std::vector<std::vector<Operation>> programs_;
  std::vector<std::size_t> at_;
  std::map<Lane, std::vector<std::int64_t>> messages_;
  std::map<std::uint32_t, std::map<std::uint32_t, std::uint32_t>> waiting_;
};

std::unique_ptr<Workload> job(const std::string& model, const std::string& parallelism, const std::string& more,
                              std::uint32_t ranks) {
  const TemporaryFile file("config.json", model);
  return read_workload(
      "{kind: training, model: " + file.path() +
          ", device: h100-sxm, micro_batch: 1, sequence_length: 64, bucket_size: 64 KiB, parallelism: {" + parallelism +
          "}" + more + "}",
      context_of(ranks));
}

void expect_sound(const std::string& model, const std::string& parallelism, const std::string& more,
                  std::uint32_t ranks) {
  SCOPED_TRACE(parallelism + more);
  const auto workload = job(model, parallelism, more, ranks);
  ASSERT_EQ(workload->ranks(), ranks);
  EXPECT_TRUE(InOrder(*workload).run());
  // Ids of calls are dense, and each call belongs to its communicator.
  std::map<std::uint32_t, std::set<std::uint32_t>> members;
  for (std::uint32_t r = 0; r < ranks; ++r)
    for (const Operation& operation : operations_of(*workload, r))
      if (operation.call != nullptr) members[operation.call->id].insert(r);
  EXPECT_EQ(members.size(), workload->call_count());
  for (const auto& [id, ranks_of_call] : members) {
    const CollectiveCall call = workload->call(id);
    EXPECT_EQ(call.id, id);
    EXPECT_EQ(ranks_of_call.size(), call.communicator->size());
  }
}

TEST(TrainingPrograms, EverySchedule) {
  for (const std::string schedule : {"gpipe", "1f1b", "interleaved", "zb_h1", "zbv", "dualpipe"})
    for (const std::uint32_t p : {2U, 4U, 8U})
      for (const std::uint32_t m : {1U, 2U, 8U, 16U})
        for (const std::uint32_t v : {1U, 2U}) {
          const std::string parallelism = "schedule: " + schedule + ", pipeline: " + std::to_string(p) +
                                          ", virtual_stages: " + std::to_string(v) + ", data: 2";
          const std::string more = ", micro_batches: " + std::to_string(m) + ", steps: 2";
          std::string refused = complaint([&] { job(small_model, parallelism, more, 2 * p); });
          if (refused.empty()) expect_sound(small_model, parallelism, more, 2 * p);
        }
}

TEST(TrainingPrograms, ExpertsOfServersInParts) {
  for (const std::string schedule : {"1f1b", "zb_h1", "dualpipe"})
    expect_sound(small_mixture,
                 "schedule: " + schedule + ", pipeline: 2, expert: 4, expert_server: 2, expert_forwarding: parts",
                 ", micro_batches: 4, steps: 2, routing: {spread: 1}", 8);
}

TEST(TrainingPrograms, ForwardingNeedsServers) {
  const std::string text =
      "kind: training\nmodel: mixtral-8x7b\ndevice: h100-sxm\nparallelism:\n  expert: 8\n  expert_forwarding: parts\n";
  expect_complaint(text, context_of(8), "x.yaml:6", {"expert_server"});
}

// Layers of multi-token prediction on the stage with the logits, and on the one before.
TEST(TrainingPrograms, EveryScheduleWithLayersOfMultiTokenPrediction) {
  std::string untied = small_model;
  untied.replace(untied.find(": true"), 6, ": false");
  for (const std::string schedule : {"gpipe", "1f1b", "zb_h1", "interleaved, virtual_stages: 2", "zbv", "dualpipe"})
    for (const std::string stage : {"", ", prediction_stage: 2"})
      for (const std::string sharding : {"none", "optimizer", "parameters"}) {
        const std::string parallelism =
            "schedule: " + schedule + ", pipeline: 4, data: 2, sharding: " + sharding + stage;
        expect_sound(untied, parallelism, ", prediction_blocks: 2, micro_batches: 8, steps: 2", 8);
      }
}

TEST(TrainingPrograms, EveryParallelism) {
  const std::string batches = ", micro_batches: 4, steps: 2";
  for (const std::string sequence : {"false", "true"})
    for (const std::string context : {"ring", "all_gather", "ulysses"})
      for (const std::string sharding : {"none", "optimizer", "gradients", "parameters"})
        expect_sound(small_model,
                     "tensor: 2, context: 2, data: 2, pipeline: 2, sequence: " + sequence +
                         ", context_kind: " + context + ", sharding: " + sharding,
                     batches, 16);
  expect_sound(small_model, "data: 8, sharding: parameters, shard_group: 4, prefetch: 2", batches, 8);
  expect_sound(small_model, "data: 8, sharding: parameters, reshard_after_forward: false", batches, 8);
  expect_sound(small_model, "data: 8, sharding: gradients", ", micro_batches: 2, reduce_every_micro_batch: true", 8);
  expect_sound(small_model, "data: 4, pipeline: 2", ", micro_batches: 2, overlap_gradients: false", 8);
  for (const std::string recompute : {"selective", "full"})
    expect_sound(small_model, "tensor: 2, pipeline: 2, sequence: true, data: 1",
                 ", micro_batches: 4, recompute: " + recompute, 4);
}

/// Bytes of the calls that rank 0 makes in groups of this many ranks, by kind.
std::map<CollectiveKind, std::int64_t> bytes_of_rank(const Workload& workload, std::uint32_t ranks) {
  std::map<CollectiveKind, std::int64_t> bytes;
  for (const Operation& operation : operations_of(workload, 0))
    if (operation.call != nullptr && operation.call->communicator->size() == ranks)
      bytes[operation.call->kind] += operation.call->size.count();
  return bytes;
}

// Megatron-LM's --num-distributed-optimizer-instances 2 on 8 ranks: scattered and gathered among 4, and summed over 2
// ranks with the same quarter (megatron/core/distributed/param_and_grad_buffer.py,
// inter_distributed_optimizer_instance).
TEST(TrainingPrograms, OptimizerStateInGroups) {
  const std::string clip = ", clip_gradients: false";
  for (const std::string sharding : {"optimizer", "gradients"}) {
    const std::string plan = "data: 8, sharding: " + sharding;
    const auto whole = bytes_of_rank(*job(small_model, plan, clip, 8), 8);
    const std::int64_t parameters = whole.at(CollectiveKind::reduce_scatter);
    EXPECT_EQ(whole.at(CollectiveKind::all_gather), parameters);
    expect_sound(small_model, plan + ", shard_group: 4", ", micro_batches: 2, steps: 2", 8);
    const auto groups = job(small_model, plan + ", shard_group: 4", clip, 8);
    EXPECT_EQ(bytes_of_rank(*groups, 8), (std::map<CollectiveKind, std::int64_t>{}));
    const auto inside = bytes_of_rank(*groups, 4), between = bytes_of_rank(*groups, 2);
    EXPECT_EQ(inside.at(CollectiveKind::reduce_scatter), parameters);
    EXPECT_EQ(inside.at(CollectiveKind::all_gather), parameters);
    EXPECT_EQ(between.at(CollectiveKind::all_reduce), parameters / 4);
    const auto alone = bytes_of_rank(*job(small_model, plan + ", shard_group: 1", clip, 8), 8);
    EXPECT_EQ(alone, (std::map<CollectiveKind, std::int64_t>{{CollectiveKind::all_reduce, parameters}}));
  }
}

// Megatron-LM's --overlap-param-gather: the first forward pass of each part waits for the bucket that completes its
// parameters and not for later ones (megatron/core/distributed/distributed_data_parallel.py, _make_forward_pre_hook).
// So buckets are gathered in the order of the forward pass at the start of each step, and the first one of the next
// step waits for the optimizer. Without it they follow the optimizer, and all passes wait for the last one.
TEST(TrainingPrograms, ParametersAreGatheredBesideTheForwardPass) {
  const std::string more = ", steps: 2, clip_gradients: false";
  for (const bool beside : {true, false}) {
    const auto workload = job(small_model, "data: 2, sharding: optimizer",
                              more + ", overlap_parameters: " + (beside ? "true" : "false"), 2);
    const auto operations = operations_of(*workload, 0);
    const std::size_t step = operations.size() / 2;
    std::vector<std::uint64_t> gathers[2];
    std::uint64_t first_pass = 0, optimizer = 0;
    std::set<std::uint64_t> awaited;  // gathers that a pass of the second step waits for
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const Operation& operation = operations[i];
      const bool gather = operation.call != nullptr && operation.call->kind == CollectiveKind::all_gather;
      if (gather) gathers[i / step].push_back(operation.id);
      if (i < step && operation.label.text().find("optimizer") != std::string::npos && !gather)
        optimizer = operation.id;
      const bool pass = operation.kind == Operation::Kind::compute && i >= step;
      if (pass && first_pass == 0) first_pass = operation.id;
      if (!pass) continue;
      for (const std::uint64_t earlier : operation.after) awaited.insert(earlier);
    }
    ASSERT_GT(gathers[0].size(), 4U);
    // Passes are read beside all of them, however many there are.
    EXPECT_EQ(workload->program(Rank(0))->read_ahead(), 512 + (beside ? gathers[0].size() : 0));
    EXPECT_EQ(gathers[0].size(), gathers[1].size());
    const std::vector<std::uint64_t>& of_second_step = gathers[beside ? 1 : 0];
    EXPECT_LT(of_second_step.back(), first_pass);
    EXPECT_GT(of_second_step.front(), optimizer);
    std::size_t found = 0;
    for (const std::uint64_t gather : of_second_step) found += awaited.count(gather);
    EXPECT_EQ(awaited.count(of_second_step.back()), 1U);
    // Of buckets that share a part, its pass waits for the later one: at least one in two.
    if (beside)
      EXPECT_GE(2 * found, of_second_step.size());
    else
      EXPECT_EQ(found, 1U);
  }
}

// DualPipe keeps two copies of the model. Data-parallel ranks sum the gradients of a rank's stages; what ZeRO then
// leaves to the rank, all of them or 1/d, is summed with the rank that has the other copies.
TEST(TrainingPrograms, BothCopiesSumWhatIsLeftToARank) {
  const auto summed = [](const std::string& sharding, CollectiveKind kind, const std::string& label) {
    const auto workload = job(small_model, "schedule: dualpipe, pipeline: 2, data: 4, sharding: " + sharding,
                              ", micro_batches: 4, clip_gradients: false", 8);
    std::int64_t bytes = 0;
    for (const Operation& operation : operations_of(*workload, 0))
      if (operation.call != nullptr && operation.call->kind == kind &&
          operation.call->label.find(label) != std::string::npos)
        bytes += operation.call->size.count();
    return bytes;
  };
  const std::int64_t all = summed("none", CollectiveKind::all_reduce, "grad bucket");
  EXPECT_EQ(summed("none", CollectiveKind::all_reduce, "gradients of both copies"), all);
  EXPECT_EQ(summed("optimizer", CollectiveKind::reduce_scatter, "grad bucket"), all);
  EXPECT_EQ(summed("optimizer", CollectiveKind::all_reduce, "gradients of both copies"), all / 4);
}

// PyTorch, torch/distributed/fsdp/_fully_shard: gradients are scattered in the groups after every micro-batch, and
// summed between them then, too, unless set_requires_all_reduce(False) leaves that to the last one.
TEST(TrainingPrograms, HybridShardingSumsBetweenGroupsOnceOrInEveryMicroBatch) {
  const auto summed = [](const std::string& more) {
    const auto workload = job(small_model, "data: 8, sharding: parameters, shard_group: 4",
                              ", clip_gradients: false, micro_batches: 3" + more, 8);
    EXPECT_EQ(
        bytes_of_rank(*workload, 4).at(CollectiveKind::reduce_scatter),
        12 * bytes_of_rank(
                 *job(small_model, "data: 8, sharding: parameters, shard_group: 4", ", clip_gradients: false", 8), 2)
                 .at(CollectiveKind::all_reduce));
    return bytes_of_rank(*workload, 2).at(CollectiveKind::all_reduce);
  };
  EXPECT_EQ(summed(", reduce_every_micro_batch: true"), 3 * summed(""));
}

// Megatron-LM, megatron/core/distributed/distributed_data_parallel.py: only the first chunk of the first pipeline rank
// has several buckets. A block has 12 * 64 * 64 elements and more.
TEST(TrainingPrograms, MegatronHasBucketsInItsFirstChunk) {
  const TemporaryFile script("run.sh",
                             "pretrain_gpt.py --num-layers 16 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
                             "--max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 8 --bf16 "
                             "--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 "
                             "--overlap-grad-reduce --ddp-bucket-size 100000\n");
  const auto workload =
      read_workload("{kind: training, megatron: " + script.path() + ", device: h100-sxm}", context_of(4));
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    std::vector<std::int64_t> buckets;
    for (const Operation& operation : operations_of(*workload, rank))
      if (operation.label.text().find("grad bucket") != std::string::npos)
        buckets.push_back(operation.call->size.count());
    const bool first = workload->kind_of(Rank(rank)) == 0;
    EXPECT_EQ(buckets.size(), first ? 1U + 3 : 2U) << rank;
  }
}

/// All exchanges of tokens among so many ranks.
std::vector<CollectiveCall> exchanges(const Workload& workload, std::uint32_t ranks) {
  std::vector<CollectiveCall> found;
  for (const CollectiveCall& call : calls_of(workload))
    if (call.kind == CollectiveKind::all_to_all && call.communicator->size() == ranks) found.push_back(call);
  return found;
}

/// Bytes that 8 expert-parallel ranks exchange.
std::int64_t sent(const std::string& more) {
  std::int64_t bytes = 0;
  for (const CollectiveCall& call : exchanges(*job(small_mixture, "data: 8, expert: 8", more, 8), 8))
    bytes += call.blocks ? call.blocks->total() : call.size.count() * 8;
  return bytes;
}

// An expert takes half of the mean, also when all are equally popular: half of the tokens are dropped.
TEST(TrainingPrograms, CapacityBelowTheMeanDropsTokensOfEvenRouting) {
  EXPECT_EQ(sent(", capacity_factor: 1"), sent(""));
  EXPECT_EQ(2 * sent(", capacity_factor: 0.5"), sent(""));
}

// Experts with room for 5/4 or 3/4 of the mean get as much, with padding or without what is dropped; how popular they
// are has no effect.
TEST(TrainingPrograms, PaddingFillsTheCapacityOfExperts) {
  const std::string pad = ", pad_to_capacity: true, capacity_factor: ";
  EXPECT_EQ(sent(pad + "1"), sent(""));
  for (const std::string routing : {"", ", routing: {spread: 1}"}) {
    EXPECT_EQ(4 * sent(pad + "1.25" + routing), 5 * sent(""));
    EXPECT_EQ(4 * sent(pad + "0.75" + routing), 3 * sent(""));
  }
}

TEST(TrainingPrograms, EveryMixture) {
  for (const std::string routing : {"", ", routing: {spread: 1}", ", routing: {spread: 2}, capacity_factor: 1.25"})
    for (const std::string plan :
         {"data: 8, expert: 8", "data: 8, expert: 4", "tensor: 2, data: 4, expert: 4, expert_tensor: 2, sequence: true",
          "tensor: 2, data: 4, expert: 8, expert_tensor: 1, sequence: true",
          "data: 4, expert: 4, pipeline: 2, schedule: zb_h1", "data: 4, expert: 4, pipeline: 2, schedule: dualpipe",
          "data: 4, expert: 2, pipeline: 2, sharding: optimizer", "data: 8, expert: 8, expert_server: 4",
          "data: 8, expert: 8, expert_server: 2, servers_per_token: 1", "data: 8, expert: 4, expert_server: 2",
          "data: 4, expert: 4, expert_server: 2, pipeline: 2, schedule: dualpipe",
          "data: 8, expert: 8, schedule: combined_1f1b",
          "data: 4, expert: 4, pipeline: 2, virtual_stages: 2, schedule: combined_1f1b, sharding: parameters",
          "data: 2, expert: 2, pipeline: 4, virtual_stages: 2, schedule: combined_1f1b, sharding: optimizer",
          "tensor: 2, data: 4, expert: 4, expert_server: 2, expert_forwarding: parts, expert_tensor: 2, sequence: "
          "true, schedule: combined_1f1b"})
      expect_sound(small_mixture, plan, ", micro_batches: 4" + routing, 8);
}

// The same draw with and without servers. Two groups of 8 expert ranks, in 4 servers of 2 each. A token's two experts
// are on one server (servers_per_token 1), so that half as many tokens go to a server as copies, rounded. Inside
// servers, a rank sends what all senders in its place have for the others.
TEST(TrainingPrograms, LegsOfUnevenRoutingCarryWhatGoesStraight) {
  const std::string more = ", routing: {spread: 0.4, seed: 5}, dispatch_precision: fp8";
  const std::string plan = "data: 16, expert: 8";
  const auto straight = job(small_mixture, plan, more, 16);
  const auto over = job(small_mixture, plan + ", expert_server: 2, servers_per_token: 1", more, 16);
  const auto whole = exchanges(*straight, 8), rails = exchanges(*over, 4), inside = exchanges(*over, 2);
  // 8 blocks, 2 groups, dispatch and combine in both passes; 2 rails of each group, 4 servers.
  ASSERT_EQ(whole.size(), 8U * 2 * 4);
  ASSERT_EQ(rails.size(), whole.size() * 2);
  ASSERT_EQ(inside.size(), whole.size() * 4);
  const auto of_call = [](const std::vector<CollectiveCall>& calls, const CollectiveCall& like, Rank member) {
    for (const CollectiveCall& call : calls)
      if (call.label == like.label && call.communicator->index_of(member) < call.communicator->size()) return call;
    return CollectiveCall();
  };
  for (const CollectiveCall& call : whole) {
    const bool gradient = call.label.find("gradient") != std::string::npos;
    const bool back = (call.label.find("combine") != std::string::npos) != gradient;
    const auto straight_bytes = [&](std::uint32_t from, std::uint32_t to) {  // as tokens go out
      return back ? call.blocks->bytes(to, from) : call.blocks->bytes(from, to);
    };
    std::int64_t copy = 0;  // bytes: a rank sends 64 tokens to two experts each
    for (std::uint32_t to = 0; to < 8; ++to) copy += straight_bytes(0, to);
    copy /= 128;
    for (std::uint32_t s = 0; s < 4; ++s) {
      const CollectiveCall leg = of_call(inside, call, call.communicator->rank(2 * s));
      ASSERT_NE(leg.blocks, nullptr) << call.label;
      for (std::uint32_t l = 0; l < 2; ++l) {
        for (std::uint32_t to = 0; to < 2; ++to) {
          std::int64_t due = 0;
          for (std::uint32_t a = 0; a < 4; ++a) due += straight_bytes(2 * a + l, 2 * s + to);
          EXPECT_EQ(back ? leg.blocks->bytes(to, l) : leg.blocks->bytes(l, to), due) << call.label;
        }
        const CollectiveCall rail = of_call(rails, call, call.communicator->rank(l));
        ASSERT_NE(rail.blocks, nullptr) << call.label;
        for (std::uint32_t a = 0; a < 4; ++a) {
          const std::int64_t copies = straight_bytes(2 * a + l, 2 * s) + straight_bytes(2 * a + l, 2 * s + 1);
          const std::int64_t found = back ? rail.blocks->bytes(s, a) : rail.blocks->bytes(a, s);
          EXPECT_LE(std::abs(2 * found - copies), 2 * copy) << call.label;
        }
      }
    }
  }
}

// A device that works on one tile of 64 x 64 after another and whose memory takes no time to speak of. Of an expert
// with r rows, ceil(r / 64) pieces in four columns of tiles are 64 long, and in one column 128 long.
TEST(TrainingPrograms, ExpertsComputeTheTilesOfTheirRows) {
  const TemporaryFile device("toy.yaml",
                             "name: toy\npeak: {bf16: 100 TFLOP/s}\nmemory_bandwidth: 1000 TB/s\nmemory: 80 GB\n"
                             "efficiency: 1\nsustained: {gemms: {units: 1, tiles: [[64, 64, 1]]}}\n");
  const TemporaryFile model("config.json", small_mixture);
  const auto read = [&](std::uint32_t ranks, const std::string& more) {
    const std::string count = std::to_string(ranks);
    return read_workload("{kind: training, framework: megatron_core, model: " + model.path() + ", device: " +
                             device.path() + ", micro_batch: 4, sequence_length: 64, parallelism: {data: " + count +
                             ", expert: " + count + "}" + more + "}",
                         context_of(ranks));
  };
  for (const std::uint32_t ranks : {1U, 4U}) {
    const auto uneven = read(ranks, ", routing: {spread: 1, seed: 5}"), even = read(ranks, "");
    RoutingCase one;
    one.ranks = ranks;
    one.experts = 8;
    one.tokens = 256;
    one.experts_per_token = 2;
    const std::int64_t here = 8 / ranks;
    double furthest = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const auto found = operations_of(*uneven, rank), alike = operations_of(*even, rank);
      ASSERT_EQ(found.size(), alike.size());
      one.block = 0;
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (found[i].operator_name != "experts") continue;
        const RoutedRow row = routed_row({1, 5, 0}, one);
        double pieces = 0, rows = 0;
        for (std::int64_t j = rank * here; j < (rank + 1) * here; ++j) {
          rows += static_cast<double>(row.experts[static_cast<std::size_t>(j)] * ranks);
          pieces += std::ceil(static_cast<double>(row.experts[static_cast<std::size_t>(j)] * ranks) / 64);
        }
        const double seconds = pieces * 2 * 64 * 64 * (4 * 64 + 128) / 100e12;
        EXPECT_NEAR(found[i].duration.seconds() / seconds, 1, 0.01) << ranks << " " << rank << " " << one.block;
        const double load = rows / (2 * 256);  // copies that come if all ranks have as many
        furthest = std::max(furthest, found[i].duration.seconds() / (alike[i].duration.seconds() * load));
        EXPECT_NEAR(found[i].flops / alike[i].flops, load, 1e-9);
        ++one.block;
      }
      EXPECT_EQ(one.block, 8U);
    }
    EXPECT_GT(furthest, 1.1);  // than in proportion to all rows
  }
}

TEST(TrainingPrograms, AlgorithmsWithoutTablesAreRefused) {
  const std::string message = complaint([] {
    static_cast<void>(
        job(small_mixture, "data: 8, expert: 8", ", routing: {spread: 1}, collectives: {expert: {algorithm: bruck}}", 8)
            ->estimate());
  });
  EXPECT_NE(message.find("'bruck' cannot do this: it has no all_to_all of blocks that differ"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace weft::test::training_programs_test
