// SPDX-License-Identifier: GPL-2.0-only
// Kernels of a pass that work on parameters and their gradients, tensor by tensor.
#pragma once

#include <vector>

#include "workloads/pass/block_passes.hpp"

namespace weft {

/// Gradients of weights are added to those of the micro-batches before, tensor by tensor. Where the GEMMs do it, the
/// few parameters that have none (biases, norms) are left out.
void add_gradient_accumulation(const PassSetup& setup, const std::vector<Tensor>& tensors, PartPasses& passes);

/// Copies of parameters that are shared out when they are gathered, and of their gradients when they are summed up.
/// `quantised`: of parts whose GEMMs have fp8, if any have.
void add_shared_copies(const PassSetup& setup, const std::vector<Tensor>& tensors, PartPasses& passes, bool quantised);

}  // namespace weft
