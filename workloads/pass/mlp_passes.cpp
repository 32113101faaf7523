// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/pass/mlp_passes.hpp"

namespace weft {

FeedForward MlpPasses::feed_forward(std::int64_t rows, std::int64_t inner, bool gated, std::int64_t ranks,
                                    std::int64_t count) const {
  const std::int64_t width = share_of(inner, ranks);
  const std::int64_t first = width * (gated ? 2 : 1);
  return {{rows, first, h_, count}, {rows, h_, width, count}, gated};
}

KernelUnits MlpPasses::units_of(const FeedForward& mlp) const {
  KernelUnits units = common_units();
  const std::int64_t inner = mlp.down.rows * mlp.down.inner * mlp.down.count;
  unit(units, KernelUnit::inner) = inner;
  unit(units, KernelUnit::tensors) = mlp.down.count;
  unit(units, KernelUnit::inner_and_gates) = inner * (mlp.gated ? 3 : 2);  // the up projection's result, and theirs
  return units;
}

void MlpPasses::forward(const FeedForward& mlp, std::string_view what, std::vector<Segment>& to,
                        bool needed_only) const {
  Work work(setup_);
  if (cuts(OverlappedGemm::fc1_fprop)) {
    gather_beside(to, OverlappedGemm::fc1_fprop, "MLP gather", "MLP up", mlp.up);
  } else {
    gather(to, "MLP gather");
    mlp.up.forward(work);
  }
  work.small(KernelPlace::mlp_activation, false, units_of(mlp), {.gated = mlp.gated, .dense = true});
  const bool in_parts = cuts(OverlappedGemm::fc2_fprop);
  if (!needed_only && !in_parts) mlp.down.forward(work);
  to.push_back(work.segment(what));
  if (needed_only) return;
  if (in_parts)
    sum_beside(to, OverlappedGemm::fc2_fprop, "MLP sum", "MLP down", mlp.down);
  else
    sum(to, "MLP sum");
}

void MlpPasses::backward(const FeedForward& mlp, std::vector<Segment>& to, bool inputs_too, bool weights_too) const {
  if (inputs_too) {
    Work down(setup_);
    if (cuts(OverlappedGemm::fc2_dgrad)) {
      gather_beside(to, OverlappedGemm::fc2_dgrad, "MLP gradient gather", "MLP down gradient", mlp.down);
    } else {
      gather_gradient(to, "MLP gradient gather");
      mlp.down.input_gradient(down);
    }
    down.small(KernelPlace::mlp_activation, true, units_of(mlp), {.gated = mlp.gated, .dense = true});
    to.push_back(down.segment("MLP inner gradient"));
    std::size_t begin = to.size();
    gather_again(to, "MLP gather again", weights_too);
    if (in_buffers_) in_bulk(to, begin, OverlappedGemm::fc1_dgrad);
    Work up(setup_);
    if (in_buffers_) set_beside(up, OverlappedGemm::fc1_dgrad);
    mlp.up.input_gradient(up);
    to.push_back(up.segment("MLP input gradient"));
    begin = to.size();
    sum(to, "MLP gradient sum");
    if (overlaps(weights_too) && t_ > 1) to.back().beside = true;
    if (in_buffers_ && weights_too) in_bulk(to, begin, OverlappedGemm::fc1_wgrad);
  }
  if (weights_too) {
    Work work(setup_);
    if (in_buffers_) set_beside(work, OverlappedGemm::fc1_wgrad);
    mlp.up.weight_gradient(work);
    mlp.down.weight_gradient(work);
    to.push_back(work.segment("MLP weight gradient"));
  }
}

void MlpPasses::operators_again(const FeedForward& mlp, std::vector<Segment>& to) const {
  gather(to, "MLP gather");
  Work work(setup_);
  work.gemm(tokens_, mlp.down.inner, h_);
  work.small(KernelPlace::mlp_activation, false, units_of(mlp), {.gated = mlp.gated, .dense = true});
  to.push_back(work.segment("MLP operators again"));
}

}  // namespace weft
