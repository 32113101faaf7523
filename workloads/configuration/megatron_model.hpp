// SPDX-License-Identifier: GPL-2.0-only
// GPT models as Megatron-LM builds them from its options.
#pragma once

#include "workloads/configuration/megatron_options.hpp"
#include "workloads/model/model_config.hpp"

namespace weft {

/// The model of --num-layers, --hidden-size and so on: learned or rotary positions, layer or RMS norms, gated MLPs,
/// grouped queries, experts with shared ones, latent attention. The vocabulary is padded to a multiple of
/// --make-vocab-size-divisible-by times `tensor` (megatron/training/tokenizer, _vocab_size_with_padding); without
/// --vocab-size it is that of a well-known tokenizer. Throws InputError.
ModelConfig read_megatron_model(const MegatronOptions& options, std::int64_t tensor);

/// Which blocks have experts, by --moe-layer-freq: "2" (every second, from the first on), or a Python expression of
/// lists such as "([0]*3+[1]*58)". Throws InputError.
std::vector<bool> expert_blocks(const MegatronOptions& options, std::int64_t layers);

}  // namespace weft
