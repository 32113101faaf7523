// SPDX-License-Identifier: GPL-2.0-only
// Finds what ranks cannot share out, and what cannot be computed again.
#include <algorithm>

#include <fmt/format.h>

#include "workloads/parallel/settling.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

/// Whether sequences, heads, widths and experts can be shared out over the ranks.
class ShapeCheck {
 public:
  ShapeCheck(const TrainingDescription& description, const Complaints& complaints)
      : d_(description), p_(description.parallel), complaints_(complaints) {}

  void check() const {
    check_sequence();
    check_tensor_overlap();
    check_model_against_tensor();
  }

 private:
  void check_sequence() const {
    const std::int64_t s = d_.sequence_length;
    const bool attends = std::any_of(d_.model.shapes.begin(), d_.model.shapes.end(),
                                     [](const BlockShape& shape) { return shape.attention.heads > 0; });
    if (s == 0 && attends)
      complaints_.raise(
          {"sequence_length"},
          fmt::format("sequence_length is not said; expected the tokens of a sequence{}",
                      d_.model.positions > 0 ? fmt::format(", up to {}", grouped(d_.model.positions)) : ""));
    if (d_.model.positions > 0 && s > d_.model.positions)
      complaints_.raise({"sequence_length"},
                        fmt::format("sequence_length {}, but the model has {} positions; use up to {}", s,
                                    d_.model.positions, d_.model.positions));
    check_context(s);
    const std::int64_t part = s / p_.context;
    if (p_.sequence && part % p_.tensor != 0)
      complaints_.raise({"sequence", "sequence_length", "tensor"},
                        fmt::format("sequence parallelism: tensor {} does not divide the {} tokens of a rank; use {}",
                                    p_.tensor, part, near_divisors(part, p_.tensor)));
  }

  void check_context(std::int64_t s) const {
    if (p_.context == 1) return;
    for (const BlockShape& shape : d_.model.shapes) {
      // In a ring with causal attention a rank has two chunks, one from each end, so that all have as much to do.
      const bool round = p_.context_kind == ContextKind::ring || p_.context_kind == ContextKind::gathered_ring;
      const bool twice = round && shape.attention.causal && shape.attention.heads > 0;
      const std::int64_t chunks = (twice ? 2 : 1) * p_.context;
      if (s % chunks != 0)
        complaints_.raise({"context", "sequence_length"},
                          fmt::format("sequence_length {} is no multiple of {}context {} = {}; use {}", s,
                                      twice ? "2 x " : "", p_.context, chunks, near_multiples(chunks, s)));
      const std::int64_t heads = shape.attention.heads;
      if (p_.context_kind == ContextKind::ulysses && heads % (p_.tensor * p_.context) != 0)
        complaints_.raise(
            {"context", "context_kind", "tensor"},
            fmt::format("{} heads are no multiple of tensor {} x context {} = {}, which Ulysses shares them over; "
                        "use {}",
                        heads, p_.tensor, p_.context, p_.tensor * p_.context,
                        near_divisors(heads, p_.tensor * p_.context)));
    }
  }

  bool overlaps(OverlappedGemm gemm) const { return d_.tensor_overlap.of(gemm).method != OverlapMethod::none; }

  /// Parts are those of the sequence, and of hidden vectors. Latent attention gathers compressed vectors instead.
  void check_tensor_overlap() const {
    if (!d_.tensor_overlap.on || p_.tensor == 1) return;
    if (!p_.sequence)
      complaints_.raise({"tensor_overlap", "sequence"},
                        fmt::format("tensor_overlap, but {} tensor ranks without `sequence: true`, "
                                    "whose calls sum whole results",
                                    p_.tensor));
    const bool inputs = overlaps(OverlappedGemm::qkv_fprop) || overlaps(OverlappedGemm::qkv_dgrad) ||
                        overlaps(OverlappedGemm::qkv_wgrad);
    for (const BlockShape& shape : d_.model.shapes)
      if (inputs && shape.attention.latent())
        complaints_.raise(
            {"tensor_overlap"},
            "tensor_overlap, but the model has latent attention, whose compressed vectors have no buffers; add "
            "`qkv_fprop: none`, `qkv_dgrad: none` and `qkv_wgrad: none`");
    for (std::size_t gemm = 0; gemm < overlapped_gemm_count; ++gemm) {
      const OverlapOfGemm& overlap = d_.tensor_overlap.gemms[gemm];
      const std::string& name = overlapped_gemm_names()[gemm];
      if (overlap.pairs && p_.tensor % 2 != 0)
        complaints_.raise({"tensor_overlap"},
                          fmt::format("{}: `aggregate` puts tensor ranks in pairs, but there are {}; use an even "
                                      "number, or `aggregate: false`",
                                      name, p_.tensor));
      if (overlap.method == OverlapMethod::pipeline && d_.model.hidden % overlap.parts != 0)
        complaints_.raise({"tensor_overlap"},
                          fmt::format("{}: {} parts do not divide the hidden size {}; use {}", name, overlap.parts,
                                      d_.model.hidden, near_divisors(d_.model.hidden, overlap.parts)));
    }
  }

  void check_model_against_tensor() const {
    for (const BlockShape& shape : d_.model.shapes) {
      const AttentionShape& attention = shape.attention;
      complaints_.check_shares("tensor", p_.tensor, attention.heads, "attention heads");
      // Fewer key-value heads than ranks: each has a copy of one.
      if (attention.kv_heads > 0 && p_.tensor % attention.kv_heads != 0)
        complaints_.check_shares("tensor", p_.tensor, attention.kv_heads, "key-value heads");
      complaints_.check_shares("tensor", p_.tensor, shape.mlp.inner, "inner width of the MLP");
      complaints_.check_shares("tensor", p_.tensor, shape.mlp.shared_inner, "inner width of the shared experts");
      if (!shape.mlp.mixture()) continue;
      // Each tensor rank would route all tokens, and the experts compute each of them tensor times. Megatron-LM refuses
      // it, too (megatron/core/transformer/moe/moe_layer.py).
      if (p_.tensor > 1 && !p_.sequence)
        complaints_.raise(
            {"tensor", "expert"},
            fmt::format("tensor {} and experts, but no sequence parallelism: all tensor ranks would send the same "
                        "tokens to the experts; use `sequence: true` (--sequence-parallel), or tensor 1",
                        p_.tensor));
      complaints_.check_shares("expert", p_.expert, shape.mlp.experts, "experts");
      check_servers(shape.mlp);
      complaints_.check_shares("expert_tensor", p_.expert_tensor, shape.mlp.expert_inner, "inner width of an expert");
    }
  }

  /// The experts of a token are on the servers that it may go to.
  void check_servers(const MlpShape& mlp) const {
    if (p_.servers_per_token == 0) return;
    const std::int64_t here = mlp.experts / (p_.expert / p_.expert_server);
    if (mlp.experts_per_token > p_.servers_per_token * here)
      complaints_.raise(
          {"servers_per_token"},
          fmt::format("a token goes to {} experts, but servers_per_token {} have {} each; use at least {}",
                      mlp.experts_per_token, p_.servers_per_token, here, (mlp.experts_per_token + here - 1) / here));
  }

  const TrainingDescription& d_;
  const ParallelPlan& p_;
  const Complaints& complaints_;
};

/// What is computed again has to be in the model.
class RecomputeCheck {
 public:
  RecomputeCheck(TrainingDescription& description, const Complaints& complaints)
      : d_(description), p_(description.parallel), complaints_(complaints) {}

  void check() {
    if (d_.recompute != Recompute::full && d_.recompute_layers > 0)
      complaints_.raise(
          {"recompute_layers", "recompute"},
          fmt::format("recompute_layers {}, but only full recomputation is by blocks; use 0", d_.recompute_layers));
    check_recomputed_modules();
    if (d_.recompute == Recompute::none) return;
    const bool attends = std::any_of(d_.model.shapes.begin(), d_.model.shapes.end(),
                                     [](const BlockShape& shape) { return shape.attention.heads > 0; });
    if (d_.recompute == Recompute::selective && !attends)
      complaints_.raise({"recompute"},
                        "selective recomputation is of attention, and no block of the model has it; use none "
                        "or full");
    const bool dense = std::all_of(d_.model.shapes.begin(), d_.model.shapes.end(), [](const BlockShape& shape) {
      return shape.attention.heads > 0 && !shape.attention.latent() && !shape.cross_attention && !shape.mlp.mixture();
    });
    if (d_.recompute == Recompute::operators && !dense)
      complaints_.raise(
          {"recompute"},
          "operators are computed again in blocks of attention and an MLP, and the model has other ones; use none, "
          "selective or full");
    if (d_.recompute == Recompute::full && d_.model.blocks.empty())
      complaints_.raise({"recompute"}, "recomputation of whole blocks, but the model has 0 blocks; use none");
    const std::int64_t own = *std::max_element(p_.stage_layers.begin(), p_.stage_layers.end());
    if (d_.recompute_layers > own)
      complaints_.raise({"recompute_layers"},
                        fmt::format("recompute_layers {}, but a pipeline stage has {} blocks; use up to {}",
                                    d_.recompute_layers, own, own));
  }

 private:
  void check_recomputed_modules() {
    const RecomputedModules& again = d_.recompute_modules;
    if (again.any() && d_.recompute == Recompute::full)
      complaints_.raise(
          {"recompute_modules", "recompute"},
          "recompute_modules are of selective recomputation, but whole blocks are computed again; use `recompute: "
          "selective`, or no modules");
    const auto some = [&](auto&& has) { return std::any_of(d_.model.shapes.begin(), d_.model.shapes.end(), has); };
    if (again.norms && !some([](const BlockShape& shape) { return shape.attention.heads > 0; }))
      complaints_.raise({"recompute_modules"},
                        "layernorm is to be computed again, but no block of the model has such norms");
    if (again.up_projections && !some([](const BlockShape& shape) { return shape.attention.latent(); }))
      complaints_.raise(
          {"recompute_modules"},
          "mla_up_proj is to be computed again, but no block of the model has latent attention (kv_lora_rank)");
    if (again.expert_activations && !some([](const BlockShape& shape) { return shape.mlp.mixture(); }))
      complaints_.raise({"recompute_modules"},
                        "moe_act is to be computed again, but no block of the model has experts");
    // Megatron-LM takes these for any model.
    const auto say = [&](bool asked, const char* name, auto&& has) {
      if (asked && !some(has)) d_.ignored.push_back(fmt::format("recompute_modules {}: no block has it", name));
    };
    say(again.mlp, "mlp", [](const BlockShape& shape) { return shape.gemms.empty() && !shape.mlp.mixture(); });
    say(again.mixture, "moe", [](const BlockShape& shape) { return shape.mlp.mixture(); });
    say(again.shared_experts, "shared_experts", [](const BlockShape& shape) { return shape.mlp.shared_inner > 0; });
  }

  TrainingDescription& d_;
  ParallelPlan& p_;
  const Complaints& complaints_;
};

}  // namespace

void check_shapes(const TrainingDescription& description, const Complaints& complaints) {
  ShapeCheck(description, complaints).check();
}

void check_recompute(TrainingDescription& description, const Complaints& complaints) {
  RecomputeCheck(description, complaints).check();
}

}  // namespace weft
