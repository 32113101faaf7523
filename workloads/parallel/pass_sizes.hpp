// SPDX-License-Identifier: GPL-2.0-only
// Tokens and bytes of one micro-batch on one rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "units/bytes.hpp"
#include "workloads/parallel/training_description.hpp"

namespace weft {

/// A rank's share, rounded up, at least 1.
std::int64_t share_of(std::int64_t whole, std::int64_t ranks);

/// Gradients of parameters are kept and summed in 16 bits.
bool narrow_gradients(const TrainingDescription& description);
/// Bytes of `a` * `b` elements, or the most that there may be.
Bytes bytes_of(std::int64_t a, std::int64_t b, std::int64_t element);

/// What is computed beside the GEMMs of blocks, what goes from one operator to the next, and what ranks send each
/// other has `precision`, or bf16 where GEMMs have fp8: those read bf16, turn it into fp8, and give bf16 (NVIDIA,
/// Transformer Engine, transformer_engine/pytorch/module/linear.py; DeepSeek-AI, arXiv:2412.19437, 3.3.1: embedding,
/// head, routers, norms and attention keep their precision).
std::string activation_precision(const TrainingDescription& description);
std::int64_t activation_bytes(const TrainingDescription& description);

/// Formats in which activations may wait for the backward pass: those of arithmetic, and e5m6 with 12 bits
/// (DeepSeek-AI, arXiv:2412.19437, 3.3.3).
std::vector<std::string> kept_precision_names();
double kept_element_bytes(const std::string& precision);

/// Tokens of a micro-batch on one rank: b s / c.
std::int64_t tokens_per_rank(const TrainingDescription& description);
/// Those that one rank sends to experts: / t with sequence parallelism.
std::int64_t routed_tokens(const TrainingDescription& description);
/// With expert_server: servers that a token goes to, as many as may be.
std::int64_t servers_of_token(const ParallelPlan& plan, const MlpShape& mlp);

/// Bytes of the activations that go from a stage to the next: b s h / c, and / t with sequence parallelism or
/// scatter_gather; behind layers of multi-token prediction as much again for what each of them gives.
Bytes boundary_bytes(const TrainingDescription& description, std::int64_t stage);

}  // namespace weft
