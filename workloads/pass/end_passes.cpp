// SPDX-License-Identifier: GPL-2.0-only
// The two ends of a model: embedding and head.
#include "workloads/pass/block_passes.hpp"
#include "workloads/pass/parameter_passes.hpp"
#include "workloads/pass/pass_builder.hpp"

namespace weft {
namespace {

class EndBuilder : private PassBuilder {
 public:
  explicit EndBuilder(const PassSetup& setup) : PassBuilder(setup) {}

  PartPasses embedding() {
    PartPasses passes;
    KernelUnits units = common_units();
    unit(units, KernelUnit::table) = share_of(setup_.description->model.vocabulary, t_) * h_;
    Work look_up(setup_);
    look_up.small(KernelPlace::embedding, false, units);
    passes.forward.push_back(look_up.segment("embedding"));
    // Learned positions are added to whole sums, of which each rank then takes its part (Megatron-LM,
    // megatron/core/models/common/embeddings/language_model_embedding.py, reduce_scatter_embeddings).
    const bool parts = plan_.sequence && !setup_.description->model.learned_positions;
    if (t_ > 1)
      passes.forward.push_back(
          tensor_collective("embedding sum", parts ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce));
    if (t_ > 1 && plan_.sequence)
      passes.backward.push_back(tensor_collective("embedding gather", CollectiveKind::all_gather));
    Work scatter(setup_);
    scatter.small(KernelPlace::embedding, true, units);
    passes.backward.push_back(scatter.segment("embedding"));
    passes.weight_gradient = passes.backward;  // there is no input to have a gradient
    add_gradient_accumulation(setup_, setup_.description->model.embedding, passes);
    add_shared_copies(setup_, setup_.description->model.embedding, passes, false);
    return passes;
  }

  PartPasses head() {
    const ModelConfig& model = setup_.description->model;
    PartPasses passes;
    const Gemm logits{model.vocabulary > 0 ? tokens_ : setup_.description->micro_batch,
                      share_of(model.vocabulary > 0 ? model.vocabulary : model.head_classes, t_), h_};
    Work norm(setup_);
    norm.small(KernelPlace::final_norm, false, common_units());
    Work forward = unquantised();
    logits.forward(forward);
    forward.small(KernelPlace::loss, false, units_of(logits));
    passes.forward.push_back(norm.segment("final norm"));
    if (t_ > 1 && plan_.sequence)
      passes.forward.push_back(tensor_collective("head gather", CollectiveKind::all_gather));
    passes.forward.push_back(forward.segment("logits"));
    if (t_ > 1)
      for (const char* what : {"loss maximum", "loss target", "loss sum"}) {
        Segment sum = tensor_collective(what, CollectiveKind::all_reduce);
        sum.size = bytes_of(tokens_, 1, 4);  // fp32
        passes.forward.push_back(sum);
      }
    passes.backward = head_backward(logits, true, true);
    passes.input_gradient = head_backward(logits, true, false);
    passes.weight_gradient = head_backward(logits, false, true);
    add_gradient_accumulation(setup_, model.head, passes);
    add_shared_copies(setup_, model.head, passes, false);
    return passes;
  }

 private:
  KernelUnits units_of(const Gemm& logits) const {
    KernelUnits units = common_units();
    unit(units, KernelUnit::logits) = logits.rows * logits.columns;
    return units;
  }

  std::vector<Segment> head_backward(const Gemm& logits, bool inputs_too, bool weights_too) const {
    std::vector<Segment> to;
    if (inputs_too) {
      Work work = unquantised();
      work.small(KernelPlace::loss, true, units_of(logits));
      logits.input_gradient(work);
      to.push_back(work.segment("logits input gradient"));
      sum(to, "head gradient sum");
      if (overlaps(weights_too) && t_ > 1) to.back().beside = true;
    }
    if (weights_too) {
      if (t_ > 1 && plan_.sequence) to.push_back(tensor_collective("head gather again", CollectiveKind::all_gather));
      Work work = unquantised();
      logits.weight_gradient(work);
      to.push_back(work.segment("logits weight gradient"));
    }
    if (inputs_too) {
      Work norm(setup_);
      norm.small(KernelPlace::final_norm, true, common_units());
      to.push_back(norm.segment("final norm gradient"));
      to.back().join = true;
    }
    return to;
  }
};

}  // namespace

PartPasses embedding_passes(const PassSetup& setup) { return EndBuilder(setup).embedding(); }
PartPasses head_passes(const PassSetup& setup) { return EndBuilder(setup).head(); }

}  // namespace weft
