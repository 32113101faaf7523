// SPDX-License-Identifier: GPL-2.0-only
// Floating-point operations that a model needs, whoever computes them.
#pragma once

#include <cstdint>

#include "workloads/model/model_config.hpp"

namespace weft {

/// GEMMs of the forward pass of one sequence; two operations per multiplication and addition.
struct ModelFlops {
  double linear = 0;  ///< GEMMs with parameters; of experts, those that the tokens pass
  double scores = 0;  ///< queries times keys, and scores times values, over all of the sequence
  double causal = 0;  ///< of those, what a causal mask leaves (half), or a window
};

/// For GPT's blocks 24 s h^2 + 4 s^2 h each, and 2 s h V for the logits: Narayanan et al., arXiv:2104.04473, appendix,
/// whose backward pass takes twice that. Norms, activation functions and the optimizer are not counted.
ModelFlops forward_flops(const ModelConfig& model, std::int64_t sequence_length);

}  // namespace weft
