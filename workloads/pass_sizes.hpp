// SPDX-License-Identifier: GPL-2.0-only
// Tokens and bytes of one micro-batch on one rank.
#pragma once

#include <cstdint>

#include "units/bytes.hpp"
#include "workloads/training_description.hpp"

namespace weft {

/// A rank's share, rounded up, at least 1.
std::int64_t share_of(std::int64_t whole, std::int64_t ranks);
/// Bytes of `a` * `b` elements, or the most that there may be.
Bytes bytes_of(std::int64_t a, std::int64_t b, std::int64_t element);

/// Tokens of a micro-batch on one rank: b s / c.
std::int64_t tokens_per_rank(const TrainingDescription& description);
/// Those that one rank sends to experts: / t with sequence parallelism.
std::int64_t routed_tokens(const TrainingDescription& description);
/// With expert_server: servers that a token goes to, as many as may be.
std::int64_t servers_of_token(const ParallelPlan& plan, const MlpShape& mlp);

/// Bytes of the activations that go from one stage to the next: b s h / c, and / t with sequence parallelism or
/// scatter_gather.
Bytes boundary_bytes(const TrainingDescription& description);

}  // namespace weft
