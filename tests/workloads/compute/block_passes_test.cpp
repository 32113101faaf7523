// SPDX-License-Identifier: GPL-2.0-only
// FLOPs and bytes of the passes of a block against the published formulas.
#include "workloads/pass/block_passes.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/step/training_memory.hpp"

namespace weft::test::block_passes_test {
namespace {

ModelConfig ready_made(const std::string& name) {
  return read_model(JsonConfig::load(workloads_folder() + "/models/" + name + ".json"));
}

struct Case {
  TrainingDescription description;
  OperatorTimes times{read_device(Spec::load(workloads_folder() + "/devices/h100-sxm.yaml"))};
  AttentionKernel attention = AttentionKernel::unfused;
  PassSetup setup() const { return {&description, &times, attention}; }
};

Case case_of(const std::string& model, std::int64_t b, std::int64_t s) {
  Case one;
  one.description.model = ready_made(model);
  one.description.micro_batch = b;
  one.description.sequence_length = s;
  one.description.parallel.data = 1;
  one.description.parallel.expert_tensor = 1;
  return one;
}

double flops(const std::vector<Segment>& segments) {
  double sum = 0;
  for (const Segment& segment : segments) sum += segment.flops;
  return sum;
}

/// Bytes of the calls of a kind of group and collective.
std::int64_t bytes(const std::vector<Segment>& segments, GroupKind group, CollectiveKind kind) {
  std::int64_t sum = 0;
  for (const Segment& segment : segments)
    if (segment.kind == Segment::Kind::collective && segment.group == group && segment.collective == kind)
      sum += segment.size.count();
  return sum;
}

TEST(BlockPasses, DenseGptIs24bshhPlus4bssh) {
  Case one = case_of("gpt2", 8, 1024);
  const double b = 8, s = 1024, h = 768, v = 50257;
  const PartPasses passes = block_passes(one.setup(), one.description.model.layer_shape(0));
  EXPECT_DOUBLE_EQ(flops(passes.forward), 24 * b * s * h * h + 4 * b * s * s * h);
  EXPECT_DOUBLE_EQ(flops(head_passes(one.setup()).forward), 2 * b * s * h * v);
  EXPECT_EQ(flops(embedding_passes(one.setup()).forward), 0);
  // Backward: twice the GEMMs (Narayanan et al., appendix).
  EXPECT_DOUBLE_EQ(flops(passes.backward), 2 * flops(passes.forward));
  // A fused kernel skips the half that the causal mask hides; backward 5 GEMMs for 2 (Dao et al., algorithm 4).
  one.attention = AttentionKernel::flash;
  const PartPasses fused = block_passes(one.setup(), one.description.model.layer_shape(0));
  EXPECT_DOUBLE_EQ(flops(fused.forward), 24 * b * s * h * h + 2 * b * s * s * h);
  EXPECT_DOUBLE_EQ(flops(fused.backward), 2 * 24 * b * s * h * h + 2.5 * 2 * b * s * s * h);
}

TEST(BlockPasses, WholeGptModelIsTheFormulaOfNarayanan) {
  // SC'21: without recomputation 72 B L s h^2 (1 + s/(6h) + V/(12 L h)), with it 96 B L s h^2 (1 + s/(6h) + V/(16 L
  // h)).
  for (const bool again : {false, true}) {
    Case one = case_of("gpt2", 8, 1024);
    if (again) one.description.recompute = Recompute::full;
    const double b = 8, s = 1024, h = 768, v = 50257, l = 12;
    const PartPasses block = block_passes(one.setup(), one.description.model.layer_shape(0));
    const PartPasses head = head_passes(one.setup());
    const double sum = l * (flops(block.forward) + flops(block.recompute) + flops(block.backward)) +
                       flops(head.forward) + flops(head.backward);
    const double expected = again ? 96 * b * l * s * h * h * (1 + s / (6 * h) + v / (16 * l * h))
                                  : 72 * b * l * s * h * h * (1 + s / (6 * h) + v / (12 * l * h));
    EXPECT_NEAR(sum / expected, 1, 1e-12);
  }
}

TEST(BlockPasses, LlamaCountsGroupedQueriesAndTheGate) {
  const Case one = case_of("llama-3.1-8b", 2, 512);
  const double b = 2, s = 512, h = 4096, a = 32, k = 8, d = 128, f = 14336;
  EXPECT_DOUBLE_EQ(flops(block_passes(one.setup(), one.description.model.layer_shape(0)).forward),
                   2 * b * s * h * (a + 2 * k) * d + 4 * b * s * s * a * d + 2 * b * s * a * d * h + 6 * b * s * h * f);
}

TEST(BlockPasses, HalvesOfTheBackwardPassAreTheWhole) {
  for (const std::string model : {"gpt2", "llama-3.1-8b", "mixtral-8x7b", "deepseek-v3"})
    for (const std::int64_t t : {1, 2}) {
      Case one = case_of(model, 1, 512);
      one.description.parallel.tensor = t;
      for (const BlockShape& shape : one.description.model.shapes) {
        const PartPasses passes = block_passes(one.setup(), shape);
        EXPECT_NEAR(flops(passes.input_gradient) + flops(passes.weight_gradient), flops(passes.backward),
                    1e-9 * flops(passes.backward));
      }
    }
}

TEST(BlockPasses, TensorRanksShareTheGemms) {
  const Case one = case_of("llama-3.1-8b", 1, 1024);
  Case shared = case_of("llama-3.1-8b", 1, 1024);
  shared.description.parallel.tensor = 4;
  const BlockShape& shape = one.description.model.layer_shape(0);
  EXPECT_DOUBLE_EQ(4 * flops(block_passes(shared.setup(), shape).forward),
                   flops(block_passes(one.setup(), shape).forward));
}

TEST(BlockPasses, TensorParallelismReducesBshTwiceEachWay) {
  Case one = case_of("gpt2", 4, 1024);
  one.description.parallel.tensor = 4;
  const std::int64_t bsh = 4 * 1024 * 768 * 2;
  const PartPasses passes = block_passes(one.setup(), one.description.model.layer_shape(0));
  EXPECT_EQ(bytes(passes.forward, GroupKind::tensor, CollectiveKind::all_reduce), 2 * bsh);
  EXPECT_EQ(bytes(passes.backward, GroupKind::tensor, CollectiveKind::all_reduce), 2 * bsh);
  EXPECT_EQ(bytes(passes.input_gradient, GroupKind::tensor, CollectiveKind::all_reduce), 2 * bsh);
  EXPECT_EQ(bytes(passes.weight_gradient, GroupKind::tensor, CollectiveKind::all_reduce), 0);
  // With sequence parallelism 2 gathers and 2 reduce-scatters each way, and 2 more gathers backward.
  one.description.parallel.sequence = true;
  const PartPasses cut = block_passes(one.setup(), one.description.model.layer_shape(0));
  EXPECT_EQ(bytes(cut.forward, GroupKind::tensor, CollectiveKind::all_gather), 2 * bsh);
  EXPECT_EQ(bytes(cut.forward, GroupKind::tensor, CollectiveKind::reduce_scatter), 2 * bsh);
  EXPECT_EQ(bytes(cut.backward, GroupKind::tensor, CollectiveKind::all_gather), 4 * bsh);
  EXPECT_EQ(bytes(cut.backward, GroupKind::tensor, CollectiveKind::reduce_scatter), 2 * bsh);
}

// Megatron-LM, megatron/core/transformer/multi_latent_attention.py: each rank compresses its part of the sequence (or
// all of it, without sequence parallelism). Of DeepSeek-V3 1,536 + 512 + 64 numbers of a token are gathered and their
// gradients scattered, 1,536 + 512 gathered again, and 7,168 of the gradient that comes in, as of what goes out.
TEST(BlockPasses, LatentAttentionGathersCompressedVectors) {
  Case one = case_of("deepseek-v3", 1, 4096);
  one.attention = AttentionKernel::flash;
  const BlockShape& shape = one.description.model.layer_shape(0);
  ASSERT_FALSE(shape.mlp.mixture());
  const PartPasses alone = block_passes(one.setup(), shape);
  one.description.parallel.tensor = 4;
  const double compression = 2.0 * 4096 * 7168 * (1536 + 512 + 64);
  const std::int64_t bs = std::int64_t{4096} * 2;
  const PartPasses whole = block_passes(one.setup(), shape);
  EXPECT_DOUBLE_EQ(4 * flops(whole.forward), flops(alone.forward) + 3 * compression);
  EXPECT_EQ(bytes(whole.forward, GroupKind::tensor, CollectiveKind::all_reduce), 2 * bs * 7168);
  EXPECT_EQ(bytes(whole.backward, GroupKind::tensor, CollectiveKind::all_reduce), bs * (1536 + 512 + 64 + 7168));
  one.description.parallel.sequence = true;
  const PartPasses cut = block_passes(one.setup(), shape);
  EXPECT_DOUBLE_EQ(4 * flops(cut.forward), flops(alone.forward));
  EXPECT_DOUBLE_EQ(4 * flops(cut.backward), flops(alone.backward));
  EXPECT_DOUBLE_EQ(4 * (flops(cut.input_gradient) + flops(cut.weight_gradient)), flops(alone.backward));
  const auto of = [](const std::vector<Segment>& pass, CollectiveKind kind) {
    return bytes(pass, GroupKind::tensor, kind);
  };
  EXPECT_EQ(of(cut.forward, CollectiveKind::all_gather), bs * (1536 + 512 + 64 + 7168));
  EXPECT_EQ(of(cut.forward, CollectiveKind::reduce_scatter), 2 * bs * 7168);
  EXPECT_EQ(of(cut.backward, CollectiveKind::all_gather), bs * (7168 + 1536 + 512 + 2 * 7168));
  EXPECT_EQ(of(cut.backward, CollectiveKind::reduce_scatter), bs * (1536 + 512 + 64 + 7168));
  // Only the rotary key, 64 numbers of 2 bytes, is kept whole.
  const double kept = block_activation_bytes(one.setup(), shape);
  one.description.parallel = {};
  EXPECT_DOUBLE_EQ(4 * kept, block_activation_bytes(one.setup(), shape) + 3.0 * 4096 * 64 * 2);
}

// Llama's embedding is scattered as it is summed. GPT-2's whole sums get their learned positions first.
TEST(BlockPasses, LearnedPositionsNeedWholeSums) {
  for (const bool learned : {false, true}) {
    Case one = case_of(learned ? "gpt2" : "llama-3.1-8b", 4, 1024);
    one.description.parallel.tensor = 4;
    one.description.parallel.sequence = true;
    const std::int64_t bsh = 4 * 1024 * one.description.model.hidden * 2;
    const PartPasses passes = embedding_passes(one.setup());
    EXPECT_EQ(bytes(passes.forward, GroupKind::tensor, CollectiveKind::all_reduce), learned ? bsh : 0);
    EXPECT_EQ(bytes(passes.forward, GroupKind::tensor, CollectiveKind::reduce_scatter), learned ? 0 : bsh);
    EXPECT_EQ(bytes(passes.backward, GroupKind::tensor, CollectiveKind::all_gather), bsh);
  }
}

TEST(BlockPasses, ContextParallelismMovesKeysAndValues) {
  for (const std::int64_t c : {2, 4}) {
    Case one = case_of("llama-3.1-8b", 2, 4096);
    one.description.parallel.context = c;
    const std::int64_t b = 2, s = 4096, k = 8, a = 32, d = 128, q = 2;
    const std::int64_t block = 2 * b * (s / c) * k * d * q;  // keys and values of one rank
    const BlockShape& shape = one.description.model.layer_shape(0);
    const PartPasses ring = block_passes(one.setup(), shape);
    for (const auto& [segments, factor] : {std::pair(ring.forward, 1), std::pair(ring.backward, 2)}) {
      int rings = 0;
      for (const Segment& segment : segments) {
        if (segment.kind != Segment::Kind::ring) continue;
        ++rings;
        EXPECT_EQ(segment.size.count(), factor * block);
      }
      EXPECT_EQ(rings, 1);
    }
    one.description.parallel.context_kind = ContextKind::all_gather;
    const PartPasses gathered = block_passes(one.setup(), shape);
    EXPECT_EQ(bytes(gathered.forward, GroupKind::context, CollectiveKind::all_gather), c * block);
    EXPECT_EQ(bytes(gathered.backward, GroupKind::context, CollectiveKind::all_gather), c * block);
    EXPECT_EQ(bytes(gathered.backward, GroupKind::context, CollectiveKind::reduce_scatter), c * block);
    // Ulysses: queries, keys, values and the output, b s/c (2 h + 2 k d), both ways.
    one.description.parallel.context_kind = ContextKind::ulysses;
    const PartPasses heads = block_passes(one.setup(), shape);
    const std::int64_t all = b * (s / c) * (2 * a * d + 2 * k * d) * q;
    EXPECT_EQ(bytes(heads.forward, GroupKind::context, CollectiveKind::all_to_all), all);
    EXPECT_EQ(bytes(heads.backward, GroupKind::context, CollectiveKind::all_to_all), all);
  }
}

// Two ranks, whose keys and values are repeated for 32 heads: 2 b s/2 32 128 elements of 2 B. Each computes a causal
// block of half the sequence and a whole one with half of its keys, together half of 4 b s^2 a d FLOPs for two ranks;
// backward gradients of 4 B go on twice, to the other rank and home.
TEST(BlockPasses, PyTorchGathersRepeatedKeysAndSendsTheirGradientsRound) {
  Case one = case_of("llama-3.1-8b", 1, 4096);
  one.attention = AttentionKernel::flash;
  one.description.parallel.context = 2;
  one.description.parallel.context_kind = ContextKind::gathered_ring;
  const std::string folder = workloads_folder() + "/frameworks/";
  const std::int64_t s = 4096, a = 32, d = 128, elements = 2 * (s / 2) * a * d;
  for (const bool compiled : {false, true}) {
    const KernelCatalogue kernels =
        read_kernel_catalogue(Spec::load(folder + (compiled ? "pytorch_compiled.yaml" : "pytorch_eager.yaml")));
    PassSetup setup = one.setup();
    setup.framework = &kernels;
    const PartPasses passes = block_passes(setup, one.description.model.layer_shape(0));
    for (const auto* pass : {&passes.forward, &passes.backward}) {
      const bool backward = pass == &passes.backward;
      EXPECT_EQ(bytes(*pass, GroupKind::context, CollectiveKind::all_gather), 2 * elements * 2);
      double core = 0, sums = 0;
      int rotations = 0, beside = 0;
      for (const Segment& segment : *pass) {
        if (segment.what == "attention block") core += segment.flops;
        if (segment.what == "sums of blocks")
          for (const KernelUse& use : segment.kernels) sums += static_cast<double>(use.kernel.bytes);
        if (segment.kind == Segment::Kind::rotation) {
          ++rotations;
          EXPECT_EQ(segment.size.count(), 4 * elements);
        }
        beside += segment.beside && segment.group == GroupKind::context ? 1 : 0;
      }
      const auto queries = static_cast<double>((s / 2) * a * d), keys = static_cast<double>(elements);
      EXPECT_DOUBLE_EQ(core, (backward ? 2.5 : 1) * 4 * static_cast<double>(s * s) * a * d / 2 / 2);
      EXPECT_EQ(rotations, backward ? 2 : 0);
      // Traced collectives are waited for at once; else the gather runs beside, and all gradients but the last ones.
      EXPECT_EQ(beside, compiled ? 0 : backward ? 2 : 1);
      // Forward compiled: the sum so far and the block are read, the sum is written. Eager: to fp32 6 B, difference 12,
      // weight 8, sum 12, and keys and values are joined, 4. Backward: both gradients are added, 10 B; eager half of
      // the keys', 5, joined with the other half, 8, and with the values', 8, and keys and values once more, 4.
      const double expected = compiled ? (backward ? 10 * queries + 10 * keys : 10 * queries)
                                       : (backward ? 10 * queries + 25 * keys : 38 * queries + 4 * keys);
      EXPECT_DOUBLE_EQ(sums, expected) << compiled << backward;
    }
  }
}

// Transformer Engine's ring on c ranks: of its own keys a rank computes the causal half, of each other rank's a half,
// s^2 / 2 / c scores together. Keys and values of 8 heads of 128, b s/c 2 8 128 elements, go on c - 1 times. Backward
// so do they, and their gradients behind them, which also come home. Per block of another rank half of the keys and
// values is copied, 2 B an element, and the sum of blocks moves 6 B an element of the result; backward so do the
// queries' gradients, and those of keys and values move 2 B to be joined and 3 to be added. At the end all of the
// latter count, 9 B without the byte that the first block has not, and 4 B of the queries' gradient.
TEST(BlockPasses, TransformerEnginesRingComputesBlocks) {
  Case one = case_of("llama-3.1-8b", 1, 4096);
  one.attention = AttentionKernel::flash;
  const KernelCatalogue kernels =
      read_kernel_catalogue(Spec::load(workloads_folder() + "/frameworks/megatron_core.yaml"));
  for (const std::int64_t c : {2, 4}) {
    one.description.parallel.context = c;
    PassSetup setup = one.setup();
    setup.framework = &kernels;
    const std::int64_t s = 4096, a = 32, d = 128, k = 8, elements = 2 * (s / c) * k * d;
    const PartPasses passes = block_passes(setup, one.description.model.layer_shape(0));
    for (const auto* pass : {&passes.forward, &passes.backward}) {
      const bool backward = pass == &passes.backward;
      double core = 0, sums = 0;
      std::vector<std::int64_t> sent;
      for (const Segment& segment : *pass) {
        if (segment.what == "attention block") core += segment.flops;
        if (segment.what == "sums of blocks") {
          EXPECT_TRUE(segment.join);
          for (const KernelUse& use : segment.kernels) sums += static_cast<double>(use.kernel.bytes);
        }
        if (segment.kind != Segment::Kind::rotation) continue;
        EXPECT_TRUE(segment.beside);
        sent.push_back(segment.size.count());
      }
      EXPECT_DOUBLE_EQ(core,
                       (backward ? 2.5 : 1) * 4 * static_cast<double>(s * s * a * d) / 2 / static_cast<double>(c));
      std::vector<std::int64_t> expected(c - 1, (backward ? 4 : 2) * elements);
      if (backward) {
        expected.front() = 2 * elements;
        expected.push_back(2 * elements);
      }
      EXPECT_EQ(sent, expected);
      const auto queries = static_cast<double>((s / c) * a * d), keys = static_cast<double>(elements);
      const double parts = static_cast<double>(c - 1) * (6 * queries + (backward ? 7 : 2) * keys);
      EXPECT_DOUBLE_EQ(sums, parts + (backward ? 4 * queries + 9 * keys : 0));
    }
    // Selective recomputation repeats the forward pass of attention with all that it sends.
    one.description.recompute = Recompute::selective;
    int rotations = 0;
    for (const Segment& segment : block_passes(setup, one.description.model.layer_shape(0)).backward)
      rotations += segment.kind == Segment::Kind::rotation ? 1 : 0;
    EXPECT_EQ(rotations, c - 1 + c);
    one.description.recompute = Recompute::none;
  }
}

TEST(BlockPasses, ExpertsExchangeTheCopiesOfTokens) {
  for (const bool sequence : {false, true}) {
    Case one = case_of("mixtral-8x7b", 1, 4096);
    one.description.parallel.tensor = 2;
    one.description.parallel.expert = 8;
    one.description.parallel.sequence = sequence;
    one.description.dispatch_precision = "fp8";
    const std::int64_t copies = 4096 * 2 * 4096 / (sequence ? 2 : 1);  // b s K h (/ t)
    const PartPasses passes = block_passes(one.setup(), one.description.model.layer_shape(0));
    // Dispatch in one byte, combine in two; both of gradients in two.
    EXPECT_EQ(bytes(passes.forward, GroupKind::expert, CollectiveKind::all_to_all), copies * 3);
    EXPECT_EQ(bytes(passes.backward, GroupKind::expert, CollectiveKind::all_to_all), copies * 4);
  }
}

// Over two servers of four: one copy for each of the servers that a token is sent to, then one for each expert, and
// back.
TEST(BlockPasses, TokensGoToServersFirst) {
  for (const std::int64_t max : {0, 1}) {
    Case one = case_of("mixtral-8x7b", 1, 4096);
    one.description.parallel.expert = 8;
    one.description.parallel.expert_server = 4;
    one.description.parallel.servers_per_token = max;
    one.description.dispatch_precision = "fp8";
    const std::int64_t token = 4096 * 4096;  // b s h
    const std::int64_t servers = max == 1 ? 1 : 2;
    const PartPasses passes = block_passes(one.setup(), one.description.model.layer_shape(0));
    EXPECT_EQ(bytes(passes.forward, GroupKind::expert_rail, CollectiveKind::all_to_all), token * servers * 3);
    EXPECT_EQ(bytes(passes.forward, GroupKind::expert_server, CollectiveKind::all_to_all), token * 2 * 3);
    EXPECT_EQ(bytes(passes.backward, GroupKind::expert_rail, CollectiveKind::all_to_all), token * servers * 4);
    EXPECT_EQ(bytes(passes.forward, GroupKind::expert, CollectiveKind::all_to_all), 0);
    std::vector<GroupKind> legs;
    for (const Segment& segment : passes.forward)
      if (segment.kind == Segment::Kind::collective) legs.push_back(segment.group);
    EXPECT_EQ(legs, (std::vector{GroupKind::expert_rail, GroupKind::expert_server, GroupKind::expert_server,
                                 GroupKind::expert_rail}));
  }
}

// In parts both ways begin together, in streams of their own, and what comes next waits for both.
TEST(BlockPasses, TokensAreForwardedInParts) {
  Case one = case_of("mixtral-8x7b", 1, 4096);
  one.description.parallel.expert = 8;
  one.description.parallel.expert_server = 4;
  const auto forward = [&] { return block_passes(one.setup(), one.description.model.layer_shape(0)).forward; };
  const std::vector<Segment> whole = forward();
  one.description.parallel.forward_in_parts = true;
  const std::vector<Segment> parts = forward();
  for (const GroupKind group : {GroupKind::expert_rail, GroupKind::expert_server})
    EXPECT_EQ(bytes(parts, group, CollectiveKind::all_to_all), bytes(whole, group, CollectiveKind::all_to_all));
  EXPECT_EQ(parts.size(), whole.size() + 2);  // dispatch and combine
  for (std::size_t i = 0; i + 2 < parts.size(); ++i) {
    if (parts[i].kind != Segment::Kind::collective || parts[i + 1].kind != Segment::Kind::collective) continue;
    EXPECT_TRUE(parts[i].beside && parts[i + 1].beside);
    EXPECT_NE(parts[i].stream, parts[i + 1].stream);
    EXPECT_TRUE(parts[i + 2].join);
    EXPECT_EQ(parts[i + 2].duration, Time());
    EXPECT_EQ(parts[i + 2].stream, Stream::none);
  }
}

TEST(BlockPasses, BoundariesAreCutWithTheSequence) {
  Case one = case_of("gpt2", 4, 1024);
  EXPECT_EQ(boundary_bytes(one.description, 0).count(), 4 * 1024 * 768 * 2);
  one.description.parallel.tensor = 2;
  EXPECT_EQ(boundary_bytes(one.description, 0).count(), 4 * 1024 * 768 * 2);
  one.description.parallel.sequence = true;
  EXPECT_EQ(boundary_bytes(one.description, 0).count(), 4 * 1024 * 768 * 2 / 2);
  one.description.parallel.context = 4;
  EXPECT_EQ(boundary_bytes(one.description, 0).count(), 4 * 1024 * 768 * 2 / 8);
}

}  // namespace
}  // namespace weft::test::block_passes_test
