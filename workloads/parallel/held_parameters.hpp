// SPDX-License-Identifier: GPL-2.0-only
// Which parameters a rank holds.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/parallel/rank_layout.hpp"
#include "workloads/parallel/training_description.hpp"

namespace weft {

/// Parameters of a part of the model that one rank holds (before sharding).
struct HeldParameters {
  std::int64_t dense = 0;    ///< the same on all data-parallel ranks
  std::int64_t experts = 0;  ///< the same on all expert-data ranks
  std::int64_t sum() const { return dense + experts; }
};
HeldParameters held_parameters(const std::vector<Tensor>& tensors, const ParallelPlan& plan);

/// Parameters of the head as its stage has them. A tied embedding on another pipeline rank has a copy here, a parameter
/// like any other, registered last (Megatron-LM, megatron/core/models/common/language_module/language_module.py,
/// setup_embeddings_and_output_layer). With layers of multi-token prediction these have the copy.
std::vector<Tensor> head_tensors(const ModelConfig& model, const ParallelPlan& plan);

/// Those of them that the rank's optimizer works on; `whole`: of all ranks.
std::int64_t kept_parameters(const HeldParameters& held, const ParallelPlan& plan, const RankLayout& whole);

}  // namespace weft
