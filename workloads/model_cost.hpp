// SPDX-License-Identifier: GPL-2.0-only
// Arithmetic and memory traffic of the parts of a transformer.
#pragma once

#include <cstdint>

#include "units/bytes.hpp"
#include "workloads/model_config.hpp"

namespace weft {

/// What one rank works on at a time.
struct MicroBatch {
  std::int64_t sequences = 1;        ///< [b], at most 2^16
  std::int64_t sequence_length = 1;  ///< [s] tokens, at most 2^24
  std::int64_t tokens() const { return sequences * sequence_length; }
};

/// Forward pass of one part; the backward pass takes twice as much of both (gradients of inputs and of weights; Kaplan
/// et al., arXiv:2001.08361, 2.1).
struct PartCost {
  double flops = 0;  ///< multiplications and additions; a whole number, exact below 2^53
  Bytes traffic;     ///< read from and written to device memory
};

/// FLOPs: Narayanan et al., SC'21, arXiv:2104.04473, appendix, and Korthikanti et al., arXiv:2205.05198, appendix A,
/// with grouped queries and gated MLPs: QKV 2bsh(a+2k)d, scores and values 4bs^2 ad (not halved for causality), output
/// 2bsadh, MLP 4bshf or gated 6bshf. For k=a, d=h/a, f=4h: 24bsh^2 + 4bs^2 h. Traffic: each matrix product reads both
/// inputs and writes its result once (Williams et al., "Roofline", doi:10.1145/1498765.1498785); attention is one
/// kernel that keeps the scores on chip (Dao et al., arXiv:2205.14135); norms, activations and residual sums are
/// kernels of their own. `element` is the bytes of a weight and of an activation.
PartCost block_cost(const ModelConfig& model, const BlockShape& block, const MicroBatch& batch, std::int64_t element);
/// Rows are looked up (and summed with positions) and written: memory traffic only.
PartCost embedding_cost(const ModelConfig& model, const MicroBatch& batch, std::int64_t element);
/// Last norm, logits 2bshV, and the loss, which reads the logits once more.
PartCost head_cost(const ModelConfig& model, const MicroBatch& batch, std::int64_t element);

/// Memory traffic of one step of mixed-precision Adam on one parameter: reads the gradient and the 32-bit parameter and
/// both moments (4+4+4), writes the three and the parameter in training precision. The same state as the 12 bytes (K)
/// of Rajbhandari et al., arXiv:1910.02054, 3.1.
constexpr std::int64_t adam_traffic(std::int64_t gradient_bytes, std::int64_t parameter_bytes) {
  return gradient_bytes + 12 + 12 + parameter_bytes;
}

/// Bytes that weights, gradients and that optimizer keep per parameter (without distribution over ranks).
constexpr std::int64_t adam_state(std::int64_t gradient_bytes, std::int64_t parameter_bytes) {
  return parameter_bytes + gradient_bytes + 12;
}

}  // namespace weft
