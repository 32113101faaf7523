// SPDX-License-Identifier: GPL-2.0-only
// The two ends of a model: embedding and head.
#include "workloads/parallel/held_parameters.hpp"
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

  PartPasses message() {
    PartPasses passes;
    add_small(KernelPlace::message_gathered, false, common_units(), "copies of a message", passes.forward);
    return passes;
  }

  /// `own`: the parameters that no other part has.
  PartPasses head(const std::vector<Tensor>& own) {
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
    std::vector<Tensor> used = model.head;
    if (model.tied && plan_.embedding_copy > 0) used.push_back(model.embedding.front());
    add_gradient_accumulation(setup_, used, passes);
    add_shared_copies(setup_, own, passes, false);
    return passes;
  }

  PartPasses prediction_input() {
    const std::int64_t n = norm_tokens() * h_;
    const Gemm projection{tokens_, share_of(h_, t_), 2 * h_};
    PartPasses passes;
    Work norms(setup_);
    for (int i = 0; i < 2; ++i) norms.small(KernelPlace::final_norm, false, common_units());
    norms.memory(4 * n);  // side by side: both are read and written
    cast(norms, 2 * n);
    passes.forward.push_back(norms.segment("prediction norms"));
    gather(passes.forward, "prediction gather", false, 2 * h_);
    Work forward(setup_);
    projection.forward(forward);
    passes.forward.push_back(forward.segment("prediction projection"));
    if (t_ > 1) passes.forward.push_back(tensor_collective("prediction results gather", CollectiveKind::all_gather));
    passes.backward = prediction_backward(projection, true, true);
    passes.input_gradient = prediction_backward(projection, true, false);
    passes.weight_gradient = prediction_backward(projection, false, true);
    add_gradient_accumulation(setup_, setup_.description->model.prediction_input, passes);
    add_shared_copies(setup_, setup_.description->model.prediction_input, passes, true);
    return passes;
  }

 private:
  /// What a GEMM in fp8 reads, with a transposed copy where it wants one; plain jobs count no casts.
  void cast(Work& work, std::int64_t elements) const {
    const std::string& precision = setup_.description->precision;
    if (!is_fp8(precision) || setup_.framework == nullptr) return;
    const bool transposes = is_scaled_in_blocks(precision) || setup_.times->device().fp8_transposes;
    if (precision == "fp8" && setup_.description->fp8_scaling == Fp8Scaling::current)
      work.memory_bytes(Bytes(2 * elements));  // the largest magnitude
    work.memory_bytes(Bytes(2 * elements + (transposes ? 2 : 1) * (elements + scale_bytes(precision, elements))));
  }

  std::vector<Segment> prediction_backward(const Gemm& projection, bool inputs_too, bool weights_too) const {
    std::vector<Segment> to;
    const std::int64_t n = norm_tokens() * h_;
    if (inputs_too) {
      if (t_ > 1 && plan_.sequence)
        to.push_back(tensor_collective("prediction results gradient gather", CollectiveKind::all_gather));
      Work work(setup_);
      cast(work, projection.rows * projection.columns);
      projection.input_gradient(work);
      to.push_back(work.segment("prediction input gradient"));
      sum(to, "prediction gradient sum", 2 * h_);
      if (overlaps(weights_too) && t_ > 1) to.back().beside = true;
    }
    if (weights_too) {
      gather_again(to, "prediction gather again", true, 2 * h_);
      Work work(setup_);
      projection.weight_gradient(work);
      to.push_back(work.segment("prediction weight gradient"));
    }
    if (inputs_too) {
      Work norms(setup_);
      norms.memory(4 * n);  // both halves of the gradient
      for (int i = 0; i < 2; ++i) norms.small(KernelPlace::final_norm, true, common_units());
      norms.memory(3 * n);  // added to the gradient of what comes after the hidden vectors
      to.push_back(norms.segment("prediction norms gradient"));
      to.back().join = true;
    }
    return to;
  }

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
PartPasses head_passes(const PassSetup& setup) {
  return EndBuilder(setup).head(head_tensors(setup.description->model, setup.description->parallel));
}
PartPasses prediction_input_passes(const PassSetup& setup) { return EndBuilder(setup).prediction_input(); }

PartPasses message_passes(const PassSetup& setup) { return EndBuilder(setup).message(); }
PartPasses prediction_head_passes(const PassSetup& setup) {
  return EndBuilder(setup).head(setup.description->model.prediction_head);
}

}  // namespace weft
