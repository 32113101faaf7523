// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/parallel/held_parameters.hpp"

namespace weft {

HeldParameters held_parameters(const std::vector<Tensor>& tensors, const ParallelPlan& plan) {
  const auto part = [](std::int64_t whole, std::int64_t ranks) { return (whole + ranks - 1) / ranks; };
  HeldParameters held;
  for (const Tensor& tensor : tensors) {
    if (tensor.split == Split::expert)
      held.experts += part(tensor.elements, plan.expert * plan.expert_tensor);
    else
      held.dense += tensor.split == Split::tensor ? part(tensor.elements, plan.tensor) : tensor.elements;
  }
  return held;
}

std::vector<Tensor> head_tensors(const ModelConfig& model, const ParallelPlan& plan) {
  std::vector<Tensor> tensors = model.head;
  if (plan.embedding_copy > 0 && model.prediction_blocks == 0) tensors.push_back(model.embedding.front());
  return tensors;
}

std::int64_t kept_parameters(const HeldParameters& held, const ParallelPlan& plan, const RankLayout& whole) {
  if (plan.sharding == Sharding::none) return held.sum();
  const std::int64_t ranks = whole.size(GroupKind::shard);
  const std::int64_t copies = whole.size(GroupKind::expert_data);
  return (held.dense + ranks - 1) / ranks + (held.experts + copies - 1) / copies;
}

}  // namespace weft
