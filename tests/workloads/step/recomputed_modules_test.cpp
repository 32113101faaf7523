// SPDX-License-Identifier: GPL-2.0-only
// Norms, up-projections of latent attention and activations of experts that are computed again: FLOPs, time and memory
// by formulas; precisions of what comes back from experts and of Adam's moments.
#include "workloads/step/recomputed_modules.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/compute/adam.hpp"
#include "workloads/step/training_memory.hpp"

namespace weft::test::recomputed_modules_test {
namespace {

// DeepSeek-V3 (DeepSeek-AI, arXiv:2412.19437, 4.2): hidden size, heads, sizes of queries and keys without and with the
// rotary part, of values, ranks of the compressions, experts per token and their width.
constexpr double h = 7168, heads = 128, nope = 128, rope = 64, value = 128, query_rank = 1536, kv_rank = 512, k = 8,
                 inner = 2048, dense_inner = 18432;
constexpr double tokens = 4096;

struct Case {
  TrainingDescription description;
  OperatorTimes times{Device{}};

  explicit Case(const std::string& model = "deepseek-v3") {
    Device device;
    device.peak = {{"bf16", 1e15}};
    device.memory_bandwidth = Bandwidth::from_gbps(8000);
    times = OperatorTimes(device);
    description.model = read_model(JsonConfig::load(workloads_folder() + "/models/" + model + ".json"));
    description.micro_batch = 1;
    description.micro_batches = 1;
    description.sequence_length = 4096;
    description.parallel.data = 1;
    description.parallel.expert_tensor = 1;
  }
  PassSetup setup() const { return {&description, &times, AttentionKernel::flash}; }
  PartPasses passes(std::int64_t layer) const { return passes_of_block(setup(), description.model.layer_shape(layer)); }
  double kept(std::int64_t layer) const {
    return block_activation_bytes(setup(), description.model.layer_shape(layer));
  }
};

double flops(const std::vector<Segment>& pass) {
  double sum = 0;
  for (const Segment& segment : pass) sum += segment.flops;
  return sum;
}

double seconds(const std::vector<Segment>& pass) {
  double sum = 0;
  for (const Segment& segment : pass) sum += segment.duration.seconds();
  return sum;
}

TEST(RecomputedModules, UpProjectionsAreDoneAgainBeforeTheGradientOfAttention) {
  for (const double t : {1.0, 4.0}) {
    Case plain, again;
    for (Case* one : {&plain, &again}) one->description.parallel.tensor = static_cast<std::int64_t>(t);
    again.description.recompute_modules.up_projections = true;
    // Queries from 1536, keys and values from 512: 2 m n k each.
    const double more = 2 * tokens * heads / t * ((nope + rope) * query_rank + (nope + value) * kv_rank);
    EXPECT_DOUBLE_EQ(flops(again.passes(0).backward) - flops(plain.passes(0).backward), more);
    EXPECT_DOUBLE_EQ(flops(again.passes(0).input_gradient) - flops(plain.passes(0).input_gradient), more);
    EXPECT_EQ(flops(again.passes(0).weight_gradient), flops(plain.passes(0).weight_gradient));
    EXPECT_EQ(flops(again.passes(0).forward), flops(plain.passes(0).forward));
    // What needs queries, keys and values comes behind.
    const auto pass = again.passes(0).backward;
    const auto position = [&](std::string_view what) {
      return std::find_if(pass.begin(), pass.end(), [&](const Segment& one) { return one.what == what; }) -
             pass.begin();
    };
    EXPECT_LT(position("latent up-projection again"), position("attention core"));
    EXPECT_LT(position("attention output gradient"), position("latent up-projection again"));
  }
}

TEST(RecomputedModules, UpProjectionsGatherCompressedVectorsAgain) {
  for (const bool sequence : {false, true}) {
    Case plain, again;
    for (Case* one : {&plain, &again}) {
      one->description.parallel.tensor = 4;
      one->description.parallel.sequence = sequence;
    }
    again.description.recompute_modules.up_projections = true;
    const auto gathered = [](const std::vector<Segment>& pass) {
      std::int64_t bytes = 0;
      for (const Segment& segment : pass)
        if (segment.kind == Segment::Kind::collective && segment.collective == CollectiveKind::all_gather)
          bytes += segment.size.count();
      return static_cast<double>(bytes);
    };
    // Compressed queries, keys and values, and the rotary key, in 2 bytes.
    EXPECT_EQ(gathered(again.passes(0).backward) - gathered(plain.passes(0).backward),
              sequence ? 2 * tokens * (query_rank + kv_rank + rope) : 0);
  }
}

TEST(RecomputedModules, NormsAndActivationsGoThroughMemoryAgain) {
  Case plain, norms, activations;
  norms.description.recompute_modules.norms = true;
  activations.description.recompute_modules.expert_activations = true;
  const double bandwidth = 1e12;  // B/s
  // Two norms of the block and those of the compressions: read and written, 2 bytes an element.
  const double bytes = 2 * tokens * (2 * 2 * h + 2 * (query_rank + kv_rank));
  EXPECT_NEAR(seconds(norms.passes(60).backward) - seconds(plain.passes(60).backward), bytes / bandwidth, 1e-11);
  EXPECT_NEAR(seconds(norms.passes(0).weight_gradient) - seconds(plain.passes(0).weight_gradient), bytes / bandwidth,
              1e-11);
  EXPECT_EQ(flops(norms.passes(60).backward), flops(plain.passes(60).backward));
  // SwiGLU reads two GEMMs and writes one; the dense block has no experts.
  EXPECT_NEAR(seconds(activations.passes(60).backward) - seconds(plain.passes(60).backward),
              2 * tokens * k * inner * 3 / bandwidth, 1e-11);
  EXPECT_EQ(seconds(activations.passes(0).backward), seconds(plain.passes(0).backward));
}

TEST(RecomputedModules, MemoryIsWithoutTheirResults) {
  // In bytes of 2 per element, a token: inputs and outputs of both norms, queries, keys, values, what the core gives,
  // the compressions before and behind their norms with the rotary key; the dense MLP's two GEMMs and what comes of
  // them.
  const double attention =
      2 * (2 * heads * (nope + rope) + 2 * heads * value) + 2 * (2 * (query_rank + kv_rank) + rope);
  const double dense = 2 * (2 * 2 * h) + attention + 2 * 3 * dense_inner;
  // 8 routed experts and a shared one, and the tokens that come.
  const double sparse = 2 * (2 * 2 * h) + attention + 2 * 3 * (k + 1) * inner + 2 * k * h;
  Case one;
  EXPECT_DOUBLE_EQ(one.kept(0), tokens * dense);
  EXPECT_DOUBLE_EQ(one.kept(60), tokens * sparse);

  one.description.recompute_modules = {.norms = true};
  const double norms = 2 * (2 * h + query_rank + kv_rank);
  EXPECT_DOUBLE_EQ(one.kept(60), tokens * (sparse - norms));
  one.description.recompute_modules = {.up_projections = true};
  const double up = 2 * (2 * heads * (nope + rope) + heads * value);
  EXPECT_DOUBLE_EQ(one.kept(60), tokens * (sparse - up));
  one.description.recompute_modules = {.expert_activations = true};
  EXPECT_DOUBLE_EQ(one.kept(60), tokens * (sparse - 2 * k * inner));
  EXPECT_DOUBLE_EQ(one.kept(0), tokens * dense);
  one.description.recompute_modules = {.norms = true, .up_projections = true, .expert_activations = true};
  EXPECT_DOUBLE_EQ(one.kept(60), tokens * (sparse - norms - up - 2 * k * inner));

  // While the fullest block is computed again, what it does not keep is there once.
  one.description.parallel.stage_layers = {61};
  one.description.gradient_precision = "fp32";
  const RankMemory memory =
      memory_of_rank(one.setup(), *PipelineScheduleRegistry::instance().find("1f1b")->make(), {1, 1, 1}, 0);
  EXPECT_EQ(memory.buffers, std::llround(tokens * (norms + up + 2 * k * inner)));
}

constexpr double experts = 256;

// All of a module's forward pass, in front of its backward pass; that of weights alone needs nothing again.
TEST(RecomputedModules, WholeModulesAreComputedAgain) {
  const auto more = [](RecomputedModules modules, std::int64_t layer, std::vector<Segment> PartPasses::*pass,
                       double t) {
    Case plain, again;
    for (Case* one : {&plain, &again}) one->description.parallel.tensor = static_cast<std::int64_t>(t);
    again.description.recompute_modules = modules;
    EXPECT_EQ(flops(again.passes(layer).forward), flops(plain.passes(layer).forward));
    EXPECT_EQ(flops(again.passes(layer).weight_gradient), flops(plain.passes(layer).weight_gradient));
    return flops(again.passes(layer).*pass) - flops(plain.passes(layer).*pass);
  };
  RecomputedModules mlp, moe, shared, both;
  mlp.mlp = moe.mixture = shared.shared_experts = both.mixture = both.shared_experts = true;
  for (const double t : {1.0, 4.0})
    for (auto pass : {&PartPasses::backward, &PartPasses::input_gradient}) {
      // SwiGLU: three GEMMs of 2 b s h f.
      EXPECT_DOUBLE_EQ(more(mlp, 0, pass, t), 6 * tokens * h * dense_inner / t);
      EXPECT_EQ(more(mlp, 60, pass, t), 0);
      const double one_expert = 6 * tokens * h * inner;  // routed tokens are those of all tensor ranks here
      const double routed = 2 * tokens * h * experts + k * one_expert;
      EXPECT_DOUBLE_EQ(more(shared, 60, pass, t), one_expert / t);
      EXPECT_DOUBLE_EQ(more(moe, 60, pass, t), routed + one_expert / t);
      EXPECT_DOUBLE_EQ(more(both, 60, pass, t), routed + 2 * one_expert / t);
      EXPECT_EQ(more(both, 0, pass, t), 0);
    }
}

// Their collectives, too: with sequence parallelism a gather and a sum of b s h, and both exchanges of tokens.
TEST(RecomputedModules, WholeModulesSendAgainWhatTheyHaveSent) {
  const auto sent = [](RecomputedModules modules, std::int64_t layer) {
    Case one;
    one.description.parallel.tensor = 4;
    one.description.parallel.sequence = true;
    one.description.parallel.expert = 8;
    one.description.recompute_modules = modules;
    std::map<std::pair<GroupKind, CollectiveKind>, std::int64_t> bytes;
    for (const Segment& segment : one.passes(layer).backward)
      if (segment.kind == Segment::Kind::collective) bytes[{segment.group, segment.collective}] += segment.size.count();
    return bytes;
  };
  RecomputedModules mlp, moe;
  mlp.mlp = moe.mixture = true;
  const auto whole = static_cast<std::int64_t>(2 * tokens * h);
  const std::pair gather(GroupKind::tensor, CollectiveKind::all_gather),
      sum(GroupKind::tensor, CollectiveKind::reduce_scatter), exchange(GroupKind::expert, CollectiveKind::all_to_all);
  for (const auto& [modules, layer] : {std::pair(mlp, 0), std::pair(moe, 60)}) {
    auto plain = sent({}, layer), again = sent(modules, layer);
    EXPECT_EQ(again[gather] - plain[gather], whole);  // of the MLP, or the shared expert
    EXPECT_EQ(again[sum] - plain[sum], whole);
    EXPECT_EQ(again[exchange] - plain[exchange], layer == 0 ? 0 : 2 * static_cast<std::int64_t>(k) * whole / 4);
  }
}

TEST(RecomputedModules, WholeModulesKeepWhatGoesIn) {
  // What block_activation_bytes() of MemoryIsWithoutTheirResults has beside norms and attention.
  const double dense = 2 * 3 * dense_inner, shared = 2 * 3 * inner, routed = 2 * 3 * k * inner + 2 * k * h;
  const auto saved = [](RecomputedModules modules, std::int64_t layer) {
    Case one;
    const double all = one.kept(layer);
    one.description.recompute_modules = modules;
    return all - one.kept(layer);
  };
  RecomputedModules some;
  some.mlp = true;
  EXPECT_DOUBLE_EQ(saved(some, 0), tokens * dense);
  EXPECT_EQ(saved(some, 60), 0);
  some = {};
  some.shared_experts = true;
  EXPECT_DOUBLE_EQ(saved(some, 60), tokens * shared);
  EXPECT_EQ(saved(some, 0), 0);
  some = {};
  some.mixture = true;
  EXPECT_DOUBLE_EQ(saved(some, 60), tokens * (routed + shared));
  some.shared_experts = some.expert_activations = true;
  EXPECT_DOUBLE_EQ(saved(some, 60), tokens * (routed + shared));
  EXPECT_EQ(saved(some, 0), 0);
}

TEST(RecomputedModules, WhatComesBackFromExpertsHasItsPrecision) {
  Case one("mixtral-8x7b");
  one.description.parallel.data = 8;
  one.description.parallel.expert = 8;
  one.description.precision = "bf16";
  one.description.dispatch_precision = "fp8";
  one.description.combine_precision = "fp32";
  const std::int64_t elements = 4096 * 2 * 4096;  // tokens, experts per token, hidden size
  const PartPasses passes = one.passes(0);
  std::map<std::string_view, std::int64_t> bytes;
  for (const auto* pass : {&passes.forward, &passes.backward})
    for (const Segment& segment : *pass)
      if (segment.group == GroupKind::expert) bytes[segment.what] += segment.size.count();
  EXPECT_EQ(bytes.at("dispatch"), elements);
  EXPECT_EQ(bytes.at("combine"), 4 * elements);
  EXPECT_EQ(bytes.at("combine gradient"), 2 * elements);   // goes to the experts
  EXPECT_EQ(bytes.at("dispatch gradient"), 4 * elements);  // comes back
}

TEST(RecomputedModules, MomentsInSixteenBits) {
  // A 32-bit copy and two moments (Rajbhandari et al., arXiv:1910.02054, 3.1); DeepSeek-V3, 3.3.2: moments in BF16.
  EXPECT_EQ(adam_kept(2, 4), 12);
  EXPECT_EQ(adam_kept(4, 4), 8);
  EXPECT_EQ(adam_kept(2, 2), 8);
  // Reads the gradient, the state; writes the state and the parameter.
  EXPECT_EQ(adam_traffic(4, 2, 2), 4 + 2 * 8 + 2);
}

TEST(RecomputedModules, ReadsTheirNames) {
  const std::string words = "{kind: training, device: h100-sxm, parallelism: {data: 2}, model: ";
  const auto job = [&](const std::string& keys) { return read_workload(words + keys + "}", context_of(2)); };
  const auto held = [&](const std::string& keys) { return job(keys)->report()->memory.front().sum; };
  EXPECT_GT(held("deepseek-v3"), held("deepseek-v3, recompute_modules: [layernorm, mla_up_proj]"));
  EXPECT_GT(held("deepseek-v3"), held("deepseek-v3, moment_precision: bf16"));
  // The core of attention is one of the modules.
  EXPECT_EQ(held("deepseek-v3, attention: unfused, recompute: selective"),
            held("deepseek-v3, attention: unfused, recompute_modules: [core_attn]"));
  const auto complaint = [&](const std::string& keys) { return complaint_about(words + keys + "}", context_of(2)); };
  EXPECT_NE(complaint("llama-3.1-8b, recompute_modules: [mla_up_proj]").find("no block of the model has latent"),
            std::string::npos);
  EXPECT_NE(complaint("llama-3.1-8b, recompute_modules: [moe_act]").find("no block of the model has experts"),
            std::string::npos);
  EXPECT_NE(complaint("resnet-50, recompute_modules: [layernorm]").find("no block of the model has such norms"),
            std::string::npos);
  EXPECT_NE(complaint("deepseek-v3, recompute: full, recompute_modules: [layernorm]").find("selective"),
            std::string::npos);
  EXPECT_NE(complaint("deepseek-v3, recompute_modules: [norm]").find("layernorm"), std::string::npos);
  EXPECT_GT(held("deepseek-v3"), held("deepseek-v3, recompute_modules: [mlp, shared_experts]"));
  // Modules that the model lacks are listed.
  const auto ignored = [&](const std::string& keys) {
    std::vector<std::string> found;
    for (const auto& [key, text] : job(keys)->description())
      if (key == "ignored" && text.starts_with("recompute_modules")) found.push_back(text);
    return found;
  };
  EXPECT_EQ(ignored("deepseek-v3, recompute_modules: [mlp, moe, shared_experts]").size(), 0U);
  EXPECT_EQ(ignored("llama-3.1-8b, recompute_modules: [mlp, moe, shared_experts]").size(), 2U);
}

}  // namespace
}  // namespace weft::test::recomputed_modules_test
