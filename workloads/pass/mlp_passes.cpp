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
  gather(to, "MLP gather");
  Work work(setup_);
  mlp.up.forward(work);
  work.small(KernelPlace::mlp_activation, false, units_of(mlp), {.gated = mlp.gated, .dense = true});
  if (!needed_only) mlp.down.forward(work);
  to.push_back(work.segment(what));
  if (!needed_only) sum(to, "MLP sum");
}

void MlpPasses::backward(const FeedForward& mlp, std::vector<Segment>& to, bool inputs_too, bool weights_too) const {
  if (inputs_too) {
    gather_gradient(to, "MLP gradient gather");
    Work down(setup_);
    mlp.down.input_gradient(down);
    down.small(KernelPlace::mlp_activation, true, units_of(mlp), {.gated = mlp.gated, .dense = true});
    to.push_back(down.segment("MLP inner gradient"));
    gather_again(to, "MLP gather again", weights_too);
    Work up(setup_);
    mlp.up.input_gradient(up);
    to.push_back(up.segment("MLP input gradient"));
    sum(to, "MLP gradient sum");
    if (overlaps(weights_too) && t_ > 1) to.back().beside = true;
  }
  if (weights_too) {
    Work work(setup_);
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
