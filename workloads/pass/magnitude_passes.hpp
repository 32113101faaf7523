// SPDX-License-Identifier: GPL-2.0-only
// What fp8 with delayed scaling does beside the casts of tensors.
#pragma once

#include <cstdint>

#include "workloads/pass/block_passes.hpp"

namespace weft {

/// Weights of a block on one rank whose GEMMs have fp8. Up projection and gate are one; a rank has its own experts'.
std::int64_t fp8_gemms(const BlockShape& block, const ParallelPlan& plan);

/// The same of all blocks of a pipeline rank, in the mean.
std::int64_t mean_fp8_gemms(const TrainingDescription& description);

/// Behind a forward pass of a chunk's blocks, and behind a backward pass, the largest magnitudes of all tensors in fp8
/// of the rank become one tensor, ranks reduce them, and scales follow (NVIDIA, Transformer Engine,
/// transformer_engine/pytorch/fp8.py: fp8_autocast_exit, hook_for_bwd_amax_reduction, reduce_and_update_fp8_tensors;
/// Megatron-LM, megatron/core/transformer/transformer_block.py: one region for all blocks of a chunk). For each weight
/// these are its input, itself and its result forward, and two gradients backward (pytorch/module/base.py,
/// set_meta_tensor). Nothing without fp8, and in frameworks without these kernels.
PartPasses magnitude_passes(const PassSetup& setup, std::int64_t gemms);

}  // namespace weft
