// SPDX-License-Identifier: GPL-2.0-only
// Memory that a training step takes on each rank.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "workloads/parallel/training_description.hpp"
#include "workloads/pass/block_passes.hpp"
#include "workloads/pipeline/pipeline_schedule.hpp"

namespace weft {

/// Bytes of a rank at the worst moment of a step.
struct RankMemory {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t activations = 0;  ///< of blocks
  std::int64_t ends = 0;         ///< activations of the embedding and the head
  std::int64_t buffers = 0;  ///< gathered parameters, keys and values, copies in fp8, a block that is computed again
  std::int64_t host = 0;     ///< in the memory of the host, if offloaded
  std::int64_t sum() const { return parameters + gradients + optimizer + activations + ends + buffers; }
};

/// Activations that the backward pass of one block needs, of one micro-batch on one rank, in bytes. Korthikanti et al.,
/// arXiv:2205.05198, table 2, for 16-bit activations: none sbh(34 + 5as/h); tensor sbh(10 + 24/t + 5as/(ht)); with
/// sequence parallelism sbh/t (34 + 5as/h); without the core of attention (selective recomputation, or a fused kernel
/// that keeps no scores) the same without 5as/h; full recomputation 2sbh. Latent attention keeps its compressions
/// besides, before and behind their norms (2sb each of q_lora_rank + kv_lora_rank), and the rotary key;
/// recompute_modules leave out outputs of norms, of up-projections (queries, keys, values), of the experts' activation
/// function, and all of an MLP, a mixture of experts or shared experts but what goes in. Blocks with other shapes take
/// the same sum of their own tensors: what follows for f = 4h, no gate, and k = a. s is the rank's part of the
/// sequence, but for the scores' columns. Models without dropout have no masks, 2 of the 34.
///
/// GEMMs of fp8 keep what they have read in 1 byte an element; what goes from one operator to the next keeps 2. Such
/// a block with all heads, no gate, and no dropout keeps sbh (2 (2 + 1) + 3 * 2 + (2 + 1) + (2 + 1) f/h): of norms, of
/// queries, keys and values, of what attention gives, of the MLP. attention_output_precision and
/// activation_input_precision replace 3 and 2 of these.
double block_activation_bytes(const PassSetup& setup, const BlockShape& block);

/// Memory of a pipeline rank. Parameters, gradients and Adam's state: Rajbhandari et al., arXiv:1910.02054, 3 (K = 12
/// bytes of optimizer state per parameter, 8 if parameters have 32 bits; 16-bit gradients are summed in 32 bits where
/// gradient_precision says so), shared out by `sharding`. Activations: of all micro-batches that are in flight when the
/// rank's slots hold most; peak_activations() of the schedule if all its chunks are equal (Korthikanti et al., 4.2.3: L
/// blocks on the first rank of 1F1B, L (1 + (p-1)/(pv)) interleaved); and their ends (4.3).
RankMemory memory_of_rank(const PassSetup& setup, const PipelineSchedule& schedule, const PipelineShape& shape,
                          std::uint32_t pipeline_rank);

/// Names and bytes, for tables.
std::vector<std::pair<std::string, std::int64_t>> lines_of(const RankMemory& memory);

}  // namespace weft
