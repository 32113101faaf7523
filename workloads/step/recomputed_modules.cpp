// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/step/recomputed_modules.hpp"

#include <algorithm>

#include "workloads/pass/attention_passes.hpp"
#include "workloads/pass/pass_work.hpp"

namespace weft {
namespace {

/// Computations of one rank that are done again.
class Again {
 public:
  Again(const PassSetup& setup, const BlockShape& block)
      : setup_(setup), d_(*setup.description), block_(block), tokens_(tokens_per_rank(d_)) {}

  /// With tensor ranks, from compressed vectors that are gathered again (Megatron-LM,
  /// megatron/core/transformer/multi_latent_attention.py, qkv_up_proj_and_rope_apply).
  std::vector<Segment> up_projections() const {
    const AttentionShape& a = block_.attention;
    std::vector<Segment> segments;
    AttentionPasses(setup_).gather_compressed(a, segments);
    const std::int64_t heads = share_of(a.heads, d_.parallel.tensor);
    Work again(setup_);
    if (a.query_rank > 0) again.gemm(tokens_, heads * a.head_size, a.query_rank);
    again.gemm(tokens_, heads * (a.head_size - a.rope_size + a.value_size), a.kv_rank);
    segments.push_back(again.segment("latent up-projection again"));
    return segments;
  }

  Segment norms() const {
    const AttentionShape& a = block_.attention;
    Work again(setup_);
    const std::int64_t tokens = d_.parallel.sequence ? share_of(tokens_, d_.parallel.tensor) : tokens_;
    for (int norm = 0; norm < (block_.cross_attention ? 3 : 2); ++norm) again.memory(tokens * 2 * d_.model.hidden);
    if (a.latent()) again.memory(tokens * 2 * (a.query_rank + a.kv_rank));
    return again.segment("norms again");
  }

  Segment expert_activations() const {
    const MlpShape& mlp = block_.mlp;
    Work again(setup_);
    const std::int64_t rows = routed_tokens(d_) * mlp.experts_per_token * d_.parallel.expert_tensor;
    again.memory(rows * share_of(mlp.expert_inner, d_.parallel.expert_tensor) * (mlp.gated ? 3 : 2));
    Segment segment = again.segment("expert activation again");
    segment.by_load = true;
    return segment;
  }

 private:
  const PassSetup& setup_;
  const TrainingDescription& d_;
  const BlockShape& block_;
  std::int64_t tokens_;
};

/// Puts a segment before the first one with this name, if there is one.
void put_before(std::vector<Segment>& pass, std::string_view what, const Segment& segment) {
  const auto place = std::find_if(pass.begin(), pass.end(), [&](const Segment& one) { return one.what == what; });
  if (place != pass.end()) pass.insert(place, segment);
}

/// The first piece of a backward pass through attention that needs queries, keys and values follows this one.
constexpr std::string_view before_core = "attention output gradient";

void add_up_projections(std::vector<Segment>& pass, const std::vector<Segment>& again) {
  const auto place = std::find_if(pass.begin(), pass.end(), [](const Segment& one) { return one.what == before_core; });
  if (place != pass.end()) pass.insert(place + 1, again.begin(), again.end());
}

void in_combine_precision(std::vector<Segment>& pass, const TrainingDescription& d) {
  if (d.combine_precision.empty()) return;
  const std::int64_t of = activation_bytes(d), to = element_bytes(d.combine_precision);
  for (Segment& segment : pass)
    if (segment.combine) segment.size = Bytes(segment.size.count() / of * to);
}

}  // namespace

std::vector<std::string> recomputed_module_names() {
  return {"core_attn", "layernorm", "mla_up_proj", "moe_act", "mlp", "moe", "shared_experts"};
}

void recompute_modules(const std::vector<std::string>& names, TrainingDescription& description) {
  const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  if (description.recompute != Recompute::full)
    description.recompute = has("core_attn") ? Recompute::selective : Recompute::none;
  description.recompute_modules = {has("layernorm"), has("mla_up_proj"), has("moe_act"),
                                   has("mlp"),       has("moe"),         has("shared_experts")};
}

PartPasses passes_of_block(const PassSetup& setup, const BlockShape& block) {
  PartPasses passes = block_passes(setup, block);
  const TrainingDescription& d = *setup.description;
  for (auto* pass :
       {&passes.forward, &passes.backward, &passes.input_gradient, &passes.weight_gradient, &passes.recompute})
    in_combine_precision(*pass, d);
  const Again again(setup, block);
  const RecomputedModules& modules = d.recompute_modules;
  if (modules.up_projections && block.attention.latent())
    for (auto* pass : {&passes.backward, &passes.input_gradient}) add_up_projections(*pass, again.up_projections());
  for (auto* pass : {&passes.backward, &passes.weight_gradient}) {
    if (modules.norms && block.attention.heads > 0) put_before(*pass, "attention weight gradient", again.norms());
    if (modules.expert_activations && block.mlp.mixture())
      put_before(*pass, "experts weight gradient", again.expert_activations());
  }
  return passes;
}

}  // namespace weft
