// SPDX-License-Identifier: GPL-2.0-only
// Encoders with decoders as T5 has them, dense or with experts.
#pragma once

#include <functional>

#include "workloads/model/transformer_tensors.hpp"

namespace weft {

/// What the MLP of an encoder's or decoder's block is.
struct EncoderDecoderMlp {
  MlpShape dense, sparse;
  bool router_bias = false;
  std::int64_t encoder_step = 0;  ///< of so many blocks one, the second, has experts (1: all, 0: none)
  std::int64_t decoder_step = 0;
};

/// Reads d_model, d_kv, num_heads, num_layers, num_decoder_layers and vocab_size. Relative positions: one table in the
/// first block of either half. RMS norms, no biases.
ModelConfig read_encoder_decoder(const JsonConfig& config, const EncoderDecoderMlp& mlp);

}  // namespace weft
