// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/pass/block_passes.hpp"

#include "workloads/pass/attention_passes.hpp"
#include "workloads/pass/mixture_passes.hpp"
#include "workloads/pass/mlp_passes.hpp"
#include "workloads/pass/parameter_passes.hpp"
#include "workloads/pass/pass_builder.hpp"

namespace weft {
namespace {

MlpKind mlp_of(const BlockShape& block) {
  const MlpShape& mlp = block.mlp;
  return {.gated = mlp.gated, .dense = !mlp.mixture() || mlp.shared_inner > 0, .experts = mlp.mixture()};
}

class BlockBuilder : private PassBuilder {
 public:
  explicit BlockBuilder(const PassSetup& setup)
      : PassBuilder(setup),
        attention_(setup),
        mlp_(setup),
        mixture_(setup),
        host_(setup.kernels().host.value_or(KernelCatalogue::Host{})) {}

  PartPasses block(const BlockShape& block) {
    if (!block.gemms.empty()) return sample_gemms(block);
    PartPasses passes;
    build_forward(block, passes.forward);
    if (setup_.description->recompute == Recompute::full)
      build_forward(block, passes.recompute, setup_.kernels().recomputes_what_is_needed);
    if (setup_.description->recompute == Recompute::operators) build_operators_again(block, passes.recompute);
    build_backward(block, passes.backward, true, true);
    build_backward(block, passes.input_gradient, true, false);
    build_backward(block, passes.weight_gradient, false, true);
    add_gradient_accumulation(setup_, block.tensors, passes);
    add_shared_copies(setup_, block.tensors, passes, true);
    return passes;
  }

 private:
  void build_forward(const BlockShape& block, std::vector<Segment>& to, bool needed_only = false) const {
    std::size_t begin = to.size();
    attention_.forward(block.attention, to);
    if (block.cross_attention) attention_.forward(block.attention, to);
    host_takes(to, begin, host_.attention);
    in_graph(to, begin, graphs_attention());
    begin = to.size();
    Work norm(setup_);
    norm.small(KernelPlace::mlp_norm, false, common_units(), mlp_of(block));
    to.push_back(norm.segment("MLP norm"));
    if (block.mlp.mixture()) {
      mixture_.route(block.mlp, to);
      host_takes(to, begin, host_.router);
      in_graph(to, begin, graphs_router());
      begin = to.size();
      mixture_.compute(block.mlp, to);
      host_takes(to, begin, of_experts(block), true);
    } else {
      mlp_.forward(mlp_.shape(block.mlp.inner, block.mlp.gated), "MLP", to, needed_only);
    }
    if (needed_only && !block.mlp.mixture()) return host_takes(to, begin, host_.mlp);
    Work residual(setup_);
    residual.small(KernelPlace::mlp_residual, false, common_units(), mlp_of(block));
    to.push_back(residual.segment("MLP residual"));
    to.back().join = true;
    if (!block.mlp.mixture()) host_takes(to, begin, host_.mlp);
    if (!combined(block)) return;
    to.back().stream = Stream::expert;
    to.back().yields = true;
  }

  /// Another pass goes beside the exchanges. What adds up results behind them is in their stream (NVIDIA/Megatron-LM,
  /// commit 00c58ba0, megatron/core/models/gpt/fine_grained_callables.py, submodule_combine_forward).
  bool combined(const BlockShape& block) const { return block.mlp.mixture() && plan_.combined() && plan_.expert > 1; }

  /// The kernels that torchtitan's selective checkpointing of operators computes again: all small kernels, and every
  /// second GEMM (torchtitan/models/llama/parallelize_llama.py, _apply_ac_to_transformer_block), which are those for
  /// keys, behind attention, and for gates, or the only one of an MLP without; fused attention is kept. So are the sums
  /// that tensor ranks have scattered, so that the GEMM before is not needed again; gathered tensors are gathered
  /// again.
  void build_operators_again(const BlockShape& block, std::vector<Segment>& to) const {
    attention_.operators_again(block.attention, to);
    Work middle(setup_);
    middle.small(KernelPlace::attention_residual, false, attention_.units_of(block.attention));
    middle.small(KernelPlace::mlp_norm, false, common_units(), mlp_of(block));
    to.push_back(middle.segment("MLP norm again"));
    mlp_.operators_again(mlp_.shape(block.mlp.inner, block.mlp.gated), to);
  }

  void build_backward(const BlockShape& block, std::vector<Segment>& to, bool inputs_too, bool weights_too) const {
    const RecomputedModules& again = setup_.description->recompute_modules;
    std::size_t begin = to.size();
    if (inputs_too)
      add_small(KernelPlace::mlp_residual, true, common_units(), "MLP residual gradient", to, mlp_of(block));
    if (combined(block) && !to.empty()) to.back().stream = Stream::expert;
    if (block.mlp.mixture()) {
      if (inputs_too && again.mixture) mixture_.forward(block.mlp, to);
      begin = to.size();
      mixture_.backward(block.mlp, to, inputs_too, weights_too);
      host_takes(to, begin, of_experts(block), true);
      begin = to.size();
      if (inputs_too) mixture_.route_back(block.mlp, to);
    } else {
      const FeedForward mlp = mlp_.shape(block.mlp.inner, block.mlp.gated);
      if (inputs_too && again.mlp) {
        begin = to.size();
        mlp_.forward(mlp, "MLP again", to);
        host_takes(to, begin, host_.mlp);
        begin = to.size();
      }
      mlp_.backward(mlp, to, inputs_too, weights_too);
    }
    if (inputs_too) {
      Work norm(setup_);
      norm.small(KernelPlace::mlp_norm, true, common_units(), mlp_of(block));
      to.push_back(norm.segment("MLP norm gradient"));
      to.back().join = true;
    }
    if (block.mlp.mixture()) {
      host_takes(to, begin, host_.router);
      in_graph(to, begin, graphs_router());
    } else {
      host_takes(to, begin, host_.mlp);
    }
    // Where another pass goes beside, nothing waits for the gradients of weights, which come last.
    const bool weights_last = combined(block) && inputs_too && weights_too;
    begin = to.size();
    build_attention_backward(block, to, inputs_too, weights_too && !weights_last);
    const std::size_t weights = to.size();
    if (weights_last) build_attention_backward(block, to, false, true);
    for (std::size_t i = weights; i < to.size(); ++i) to[i].beside = true;
    host_takes(to, begin, host_.attention);
  }

  void build_attention_backward(const BlockShape& block, std::vector<Segment>& to, bool inputs_too,
                                bool weights_too) const {
    const std::size_t begin = to.size();
    if (block.cross_attention) attention_.backward(block.attention, to, inputs_too, weights_too);
    attention_.backward(block.attention, to, inputs_too, weights_too);
    in_graph(to, begin, graphs_attention());
  }

  Time of_experts(const BlockShape& block) const { return share_of(block.mlp.experts, plan_.expert) * host_.expert; }

  /// The time of the host for the computations from `begin` on, shared out over their kernels; `experts`: of those of
  /// experts.
  static void host_takes(std::vector<Segment>& pieces, std::size_t begin, Time whole, bool experts = false) {
    std::int64_t kernels = 0;
    const auto counts = [&](const Segment& piece) {
      return piece.kind == Segment::Kind::compute && (!experts || piece.by_load);
    };
    for (std::size_t i = begin; i < pieces.size(); ++i)
      if (counts(pieces[i]))
        for (const KernelUse& use : pieces[i].kernels) kernels += launches_of(use.kernel);
    for (std::size_t i = begin; i < pieces.size() && kernels > 0; ++i)
      if (counts(pieces[i])) pieces[i].launch = whole / kernels;
  }

  bool graphs_attention() const { return setup_.kernels().host && setup_.kernels().host->graphs_attention; }
  bool graphs_router() const { return setup_.kernels().host && setup_.kernels().host->graphs_router; }

  /// The pieces from `begin` on are launched together.
  static void in_graph(std::vector<Segment>& pieces, std::size_t begin, bool graphed) {
    if (!graphed) return;
    for (std::size_t i = begin; i < pieces.size(); ++i)
      pieces[i].graph = i == begin ? Segment::Graph::first : Segment::Graph::later;
  }

  PartPasses sample_gemms(const BlockShape& block) const {
    Work forward(setup_), inputs(setup_), weights(setup_);
    const std::int64_t samples = setup_.description->micro_batch;
    for (const SampleGemm& p : block.gemms) {
      const Gemm gemm{p.rows * samples, p.columns, p.inner};
      gemm.forward(forward);
      forward.memory(p.rows * samples * p.columns * 4);  // norm and activation: read and written twice
      gemm.input_gradient(inputs);
      inputs.memory(p.rows * samples * p.columns * 6);
      gemm.weight_gradient(weights);
    }
    PartPasses passes;
    passes.forward.push_back(forward.segment("GEMMs"));
    if (setup_.description->recompute == Recompute::full) passes.recompute = passes.forward;
    passes.input_gradient.push_back(inputs.segment("GEMMs input gradient"));
    passes.weight_gradient.push_back(weights.segment("GEMMs weight gradient"));
    passes.backward = passes.input_gradient;
    passes.backward.push_back(passes.weight_gradient.front());
    return passes;
  }

  AttentionPasses attention_;
  MlpPasses mlp_;
  MixturePasses mixture_;
  KernelCatalogue::Host host_;
};

}  // namespace

PartPasses block_passes(const PassSetup& setup, const BlockShape& block) { return BlockBuilder(setup).block(block); }

}  // namespace weft
