// SPDX-License-Identifier: GPL-2.0-only
// Memory of a rank against the published formulas and constants.
#include "workloads/step/training_memory.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::training_memory_test {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

/// A GPT of Korthikanti et al., arXiv:2205.05198, table 3: s = 2048, V = 51200.
struct Gpt {
  std::int64_t hidden, layers, heads, pipeline, virtual_stages, micro_batch, micro_batches;
};
const Gpt gpt_22b{6144, 48, 64, 1, 1, 4, 1};
const Gpt gpt_175b{12288, 96, 96, 8, 3, 1, 64};
const Gpt gpt_530b{20480, 105, 128, 35, 3, 1, 280};
const Gpt gpt_1t{25600, 128, 160, 64, 1, 1, 512};

struct Case {
  TrainingDescription description;
  AttentionKernel attention = AttentionKernel::unfused;
  const KernelCatalogue* framework = nullptr;

  explicit Case(const Gpt& gpt, std::int64_t tensor = 8) {
    const TemporaryFile file("config.json",
                             R"({"model_type": "gpt2", "vocab_size": 51200, "n_positions": 2048, "n_embd": )" +
                                 std::to_string(gpt.hidden) + ", \"n_layer\": " + std::to_string(gpt.layers) +
                                 ", \"n_head\": " + std::to_string(gpt.heads) + "}");
    description.model = read_model(JsonConfig::load(file.path()));
    description.parallel.tensor = tensor;
    description.parallel.data = 1;
    description.parallel.pipeline = gpt.pipeline;
    description.parallel.virtual_stages = gpt.virtual_stages;
    if (gpt.virtual_stages > 1) description.parallel.schedule = "interleaved";
    description.micro_batch = gpt.micro_batch;
    description.micro_batches = gpt.micro_batches;
    description.sequence_length = 2048;
  }

  RankMemory memory(std::uint32_t rank = 0) {
    settle_description(description, 0, {});
    PassSetup setup;
    setup.description = &description;
    setup.attention = attention;
    setup.framework = framework;
    const ParallelPlan& plan = description.parallel;
    return memory_of_rank(setup, *PipelineScheduleRegistry::instance().find(plan.schedule)->make(),
                          {static_cast<std::uint32_t>(plan.pipeline), static_cast<std::uint32_t>(plan.virtual_stages),
                           static_cast<std::uint32_t>(description.micro_batches)},
                          rank);
  }
};

TEST(TrainingMemory, ActivationsAreThoseOfKorthikanti) {
  // Figure 1, first stage, in GiB as the profiles of Calculon (Isaev et al., SC'23) have them: with tensor parallelism
  // alone sbhL (10 + 24/t + 5as/(ht)); with sequence parallelism and selective recomputation 34 sbhL/t; interleaved
  // both (1 + (p-1)/(pv)) times.
  struct Constant {
    const Gpt& gpt;
    double tensor, selective;
  };
  for (const Constant& one : {Constant{gpt_22b, 59.25, 9.5625}, Constant{gpt_175b, 66.84, 12.352},
                              Constant{gpt_530b, 114.02, 23.076}, Constant{gpt_1t, 131.25, 26.5625}}) {
    const auto& g = one.gpt;
    const double t = 8, s = 2048, h = static_cast<double>(g.hidden), b = static_cast<double>(g.micro_batch),
                 a = static_cast<double>(g.heads), p = static_cast<double>(g.pipeline),
                 v = static_cast<double>(g.virtual_stages);
    const double models =
        s * b * h * static_cast<double>(g.layers) * (g.virtual_stages > 1 ? 1 + (p - 1) / (p * v) : 1);
    Case tensor(g);
    const double found = static_cast<double>(tensor.memory().activations);
    EXPECT_NEAR(found, models * (10 + 24 / t + 5 * a * s / (h * t)), 1);
    EXPECT_NEAR(found / gib, one.tensor, 0.005) << g.hidden;  // digits of the constants
    Case selective(g);
    selective.description.parallel.sequence = true;
    selective.description.recompute = Recompute::selective;
    const double less = static_cast<double>(selective.memory().activations);
    EXPECT_NEAR(less, models * 34 / t, 1);
    EXPECT_NEAR(less / gib, one.selective, 0.0005) << g.hidden;
  }
}

TEST(TrainingMemory, EachMethodIsItsLineOfTable2) {
  const double sbh = 2048.0 * 4 * 6144, scores = 5.0 * 64 * 2048 / 6144, t = 8, layers = 48;
  const auto found = [&](std::int64_t tensor, bool sequence, Recompute recompute) {
    Case one(gpt_22b, tensor);
    one.description.parallel.sequence = sequence;
    one.description.recompute = recompute;
    return static_cast<double>(one.memory().activations) / layers;
  };
  EXPECT_NEAR(found(1, false, Recompute::none), sbh * (34 + scores), 1);
  EXPECT_NEAR(found(8, false, Recompute::none), sbh * (10 + 24 / t + scores / t), 1);
  EXPECT_NEAR(found(8, true, Recompute::none), sbh / t * (34 + scores), 1);
  EXPECT_NEAR(found(8, false, Recompute::selective), sbh * (10 + 24 / t), 1);
  EXPECT_NEAR(found(8, true, Recompute::selective), sbh * 34 / t, 1);
  EXPECT_NEAR(found(8, false, Recompute::full), sbh * 2, 1);
  // A fused kernel keeps no scores either: Megatron-LM's theoretical_memory_usage.py has 18 + 4f/h, 34 for f = 4h.
  Case fused(gpt_22b, 8);
  fused.attention = AttentionKernel::flash;
  fused.description.parallel.sequence = true;
  EXPECT_NEAR(static_cast<double>(fused.memory().activations) / layers, sbh * 34 / t, 1);
  // Only so many blocks of the stage are computed again.
  Case some(gpt_22b, 8);
  some.description.recompute = Recompute::full;
  some.description.recompute_layers = 16;
  EXPECT_NEAR(static_cast<double>(some.memory().activations), sbh * (16 * 2 + 32 * (10 + 24 / t + scores / t)), 1);
}

TEST(TrainingMemory, EndsAreThoseOfKorthikanti) {
  // 4.3: sbhp/t for the dropout after the embedding; 4sbh/t (1 + V/h) more if the first stage is the last one.
  const double t = 8, s = 2048;
  Case one(gpt_22b);
  one.description.parallel.sequence = true;
  const double sbh = s * 4 * 6144;
  EXPECT_NEAR(static_cast<double>(one.memory().ends), sbh / t + 4 * sbh / t * (1 + 51200.0 / 6144), 1);
  Case deep(gpt_1t);
  deep.description.parallel.sequence = true;
  EXPECT_NEAR(static_cast<double>(deep.memory(0).ends), s * 25600 * 64 / t, 1);
  EXPECT_EQ(deep.memory(1).ends, 0);
  EXPECT_NEAR(static_cast<double>(deep.memory(63).ends), 4 * s * 25600 / t * (1 + 51200.0 / 25600), 1);
}

TEST(TrainingMemory, SchedulesHoldWhatTheyAnnounce) {
  const Gpt small{256, 48, 4, 4, 1, 1, 16};
  for (const std::string schedule : {"gpipe", "1f1b", "interleaved", "zb_h1", "zbv", "dualpipe"}) {
    for (const std::uint32_t rank : {0U, 1U, 2U, 3U}) {
      Case one(small, 1);
      ParallelPlan& plan = one.description.parallel;
      plan.schedule = schedule;
      plan.virtual_stages = schedule == "interleaved" || schedule == "zbv" ? 2 : 1;
      const RankMemory memory = one.memory(rank);
      const auto made = PipelineScheduleRegistry::instance().find(schedule)->make();
      const PipelineShape shape{4, static_cast<std::uint32_t>(plan.virtual_stages), 16};
      const double block = 2048 * 256 * (34 + 5.0 * 4 * 2048 / 256);
      const double blocks_of_chunk = 48.0 / made->stages(shape);
      EXPECT_NEAR(static_cast<double>(memory.activations),
                  made->peak_activations(shape, rank) * blocks_of_chunk * block, 1)
          << schedule << " " << rank;
    }
  }
}

TEST(TrainingMemory, BytesPerParameter) {
  // Without sharding 18 with sums of gradients in 32 bits, 16 with sums in 16 (Rajbhandari et al., 3.1: 2 + 2 + 12) and
  // in all 32 bits; sharded over D: 6 + 12/D (Megatron-LM, docs, dist_optimizer); ZeRO-1 4 + 12/D, ZeRO-2 2 + 14/D,
  // ZeRO-3 16/D (the same, figure 1); 32 bits 8 + 8/D.
  const std::int64_t ranks = 8;
  struct Line {
    const char *parameters, *gradients;
    Sharding sharding;
    std::int64_t kept, shared;
  };
  for (const Line& line :
       {Line{"bf16", "fp32", Sharding::none, 18, 0}, Line{"bf16", "bf16", Sharding::none, 16, 0},
        Line{"fp32", "fp32", Sharding::none, 16, 0}, Line{"bf16", "fp32", Sharding::optimizer, 6, 12},
        Line{"bf16", "bf16", Sharding::optimizer, 4, 12}, Line{"bf16", "bf16", Sharding::gradients, 2, 14},
        Line{"bf16", "bf16", Sharding::parameters, 0, 16}, Line{"fp32", "fp32", Sharding::optimizer, 8, 8}}) {
    Case one(gpt_22b, 1);
    one.description.parallel.data = ranks;
    one.description.parallel.sharding = line.sharding;
    one.description.precision = one.description.parameter_precision = line.parameters;
    one.description.gradient_precision = line.gradients;
    const RankMemory memory = one.memory();
    const std::int64_t psi = one.description.model.parameters();
    ASSERT_EQ(psi % ranks, 0);
    EXPECT_EQ(memory.parameters + memory.gradients + memory.optimizer, psi * line.kept + psi / ranks * line.shared)
        << line.parameters << " " << line.gradients << " " << static_cast<int>(line.sharding);
  }
}

// 20, or 4 + 16/D: gradients of 16 bits have copies in 32 bits (Megatron-LM, docs, dist_optimizer, fp16).
TEST(TrainingMemory, MegatronCopiesGradientsOfFp16) {
  const auto bytes = [](Sharding sharding) {
    Case one(gpt_22b, 1);
    one.description.parallel.data = 8;
    one.description.parallel.sharding = sharding;
    one.description.precision = one.description.parameter_precision = one.description.gradient_precision = "fp16";
    one.description.gradient_copies = true;
    const RankMemory memory = one.memory();
    return static_cast<double>(memory.parameters + memory.gradients + memory.optimizer) /
           static_cast<double>(one.description.model.parameters());
  };
  EXPECT_EQ(bytes(Sharding::none), 20);
  EXPECT_EQ(bytes(Sharding::optimizer), 4 + 16 / 8);
}

TEST(TrainingMemory, CopiesStayInTheirGroup) {
  // HSDP: one copy for each group of 4 of 8 ranks. Experts are shared out over the ranks that have the same ones.
  Case one(gpt_22b, 1);
  one.description.parallel.data = 8;
  one.description.parallel.sharding = Sharding::parameters;
  one.description.parallel.shard_group = 4;
  const std::int64_t psi = one.description.model.parameters();
  const RankMemory memory = one.memory();
  EXPECT_EQ(memory.parameters + memory.gradients + memory.optimizer, psi / 4 * 16);
}

TEST(TrainingMemory, GatheredKeysAndGradientsThatGoRoundAreCounted) {
  // PyTorch, torch/distributed/tensor/experimental/_attention.py: keys and values of all c ranks in 2 bytes, which
  // makes those of the whole sequence, and a rank's part of their gradients twice, to send and to receive. 8 heads of
  // keys and values on 64 of queries, over t = 8 ranks one each, of 96; repeated for the queries eight each.
  KernelCatalogue repeating = plain_kernels();
  repeating.context.repeats_keys = true;
  repeating.context.gradient_bytes = 4;
  const std::int64_t c = 4, b = gpt_22b.micro_batch, s = 2048, of_a_head = b * s * (96 + 96);
  const auto buffers = [&](ContextKind kind, const KernelCatalogue* framework, AttentionKernel attention) {
    Case one(gpt_22b);
    one.description.parallel.context = c;
    one.description.parallel.context_kind = kind;
    for (BlockShape& block : one.description.model.shapes) block.attention.kv_heads = 8;
    one.attention = attention;
    one.framework = framework;
    return one.memory().buffers;
  };
  const auto more = [&](const KernelCatalogue* framework, AttentionKernel attention) {
    return buffers(ContextKind::gathered_ring, framework, attention) - buffers(ContextKind::ring, framework, attention);
  };
  EXPECT_EQ(more(nullptr, AttentionKernel::flash), of_a_head * 2 + 2 * (of_a_head / c) * 2);
  EXPECT_EQ(more(&repeating, AttentionKernel::flash), 8 * (of_a_head * 2 + 2 * (of_a_head / c) * 4));
  // Transformer Engine: whole gradients beside whole keys and values, in either kind of attention.
  for (const AttentionKernel attention : {AttentionKernel::flash, AttentionKernel::unfused})
    EXPECT_EQ(buffers(ContextKind::all_gather, nullptr, attention) - buffers(ContextKind::ring, nullptr, attention),
              2 * of_a_head * 2);
  EXPECT_EQ(more(nullptr, AttentionKernel::unfused), 0);  // as a ring: there are no blocks
  // Transformer Engine's ring keeps all that arrive, too, and backward has two buffers of each.
  KernelCatalogue in_blocks = plain_kernels();
  in_blocks.context.ring_in_blocks = true;
  EXPECT_EQ(more(&in_blocks, AttentionKernel::flash), 0);
  EXPECT_EQ(buffers(ContextKind::ring, &in_blocks, AttentionKernel::flash) -
                buffers(ContextKind::ring, nullptr, AttentionKernel::flash),
            of_a_head * 2 + 2 * (of_a_head / c) * 2);
}

}  // namespace
}  // namespace weft::test::training_memory_test
