// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/step/training_memory.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/compute/adam.hpp"
#include "workloads/model/real.hpp"
#include "workloads/step/stage_plan.hpp"

namespace weft {
namespace {

/// Bytes per token of what attention or MLP keep.
struct TokenBytes {
  double whole = 0;   ///< outside of tensor-parallel regions: / t with sequence parallelism
  double shared = 0;  ///< within: / t
  double every = 0;   ///< on every rank: the rotary key of latent attention
};

/// Bytes of an element as the backward pass finds it.
struct KeptBytes {
  explicit KeptBytes(const TrainingDescription& d)
      : passed(real(activation_bytes(d))),
        read(real(element_bytes(d.precision)) + real(scale_bytes(d.precision, 128)) / 128),
        activation_input(kept_or(d.activation_input_precision, passed)),
        attention_output(kept_or(d.attention_output_precision, is_fp8(d.precision) ? passed + read : passed)) {}

  double passed;  ///< from one operator to the next
  /// The input of a GEMM: the same, or a copy in fp8, which is all that a norm or an activation function in front of it
  /// leaves (NVIDIA, Transformer Engine, transformer_engine/pytorch/module/{linear,layernorm_mlp}.py).
  double read;  ///< with its scales
  double activation_input;
  double attention_output;  ///< for its own backward pass, and that of the GEMM behind it

 private:
  static double kept_or(const std::string& precision, double otherwise) {
    return precision.empty() ? otherwise : kept_element_bytes(precision);
  }
};

/// A norm's input; its output, which the GEMMs share (Korthikanti et al., 4.1: 2sb(h) each), unless it is computed
/// again; the mask of a dropout, 1 byte.
double around_gemms(const TrainingDescription& d, double input, double output) {
  return real(d.model.hidden) * (input + (d.recompute_modules.norms ? 0 : output) + (d.model.dropout ? 1 : 0));
}

TokenBytes attention_bytes(const TrainingDescription& d, const AttentionShape& a) {
  const KeptBytes kept(d);
  const RecomputedModules& again = d.recompute_modules;
  const double queries = real(a.heads * a.head_size), keys = real(a.kv_heads * a.head_size),
               values = real(a.kv_heads * a.value_size), out = real(a.heads * a.value_size);
  TokenBytes bytes;
  bytes.whole = around_gemms(d, kept.passed, kept.read);
  bytes.shared = kept.attention_output * out;
  if (!(a.latent() && again.up_projections)) bytes.shared += kept.passed * (queries + keys + values);
  // The compressions before and after their norms, and the gathered rotary key.
  if (a.latent()) {
    bytes.whole += real(a.query_rank + a.kv_rank) * (kept.passed + (again.norms ? 0 : kept.read));
    bytes.every = kept.passed * real(a.rope_size);
  }
  return bytes;
}

/// The input of an activation function, of both GEMMs if there is a gate, and its output.
double activation_function_bytes(const KeptBytes& kept, double width, bool gated, bool again) {
  return width * (kept.activation_input * (gated ? 2 : 1) + (again ? 0 : kept.read));
}

TokenBytes mlp_bytes(const TrainingDescription& d, const MlpShape& mlp) {
  const KeptBytes kept(d);
  const RecomputedModules& again = d.recompute_modules;
  const double h = real(d.model.hidden);
  TokenBytes bytes;
  // A router does not read fp8 (Megatron-LM, megatron/core/transformer/moe/shared_experts.py: the output of the norm is
  // kept for it, and shared experts use it, too).
  bytes.whole = around_gemms(d, kept.passed, mlp.mixture() ? kept.passed : kept.read);
  if (mlp.mixture() ? again.mixture : again.mlp) return bytes;  // only its input
  if (!mlp.mixture()) {
    bytes.shared = activation_function_bytes(kept, real(mlp.inner), mlp.gated, false);
    return bytes;
  }
  bytes.shared = activation_function_bytes(kept, real(mlp.experts_per_token * mlp.expert_inner), mlp.gated,
                                           again.expert_activations);
  if (!again.shared_experts) bytes.shared += activation_function_bytes(kept, real(mlp.shared_inner), mlp.gated, false);
  // The arriving copies. The returned copies are not needed: tokens are scaled by their routing weights before the last
  // GEMM of an expert (Megatron-LM, megatron/core/transformer/moe/experts.py, TEGroupedMLP: permuted_probs).
  bytes.whole += kept.read * h * real(mlp.experts_per_token);
  return bytes;
}

std::int64_t shared_out(std::int64_t elements, std::int64_t ranks) { return (elements + ranks - 1) / ranks; }

/// The memory of gathered keys and values beside a block's activations while it computes attention. With `context_kind:
/// all_gather` those of all context ranks, gathered in both passes and freed, and backward as many gradients, which are
/// then scattered (NVIDIA, Transformer Engine, context_parallel.py, AttnFuncWithCPAndKVAllGather). A ring that is
/// computed in blocks keeps each that has arrived until the forward pass ends, and backward has two of each (the same
/// file, AttnFuncWithCPAndKVP2P, p2p_comm_buffers). With `gathered_ring` those of all context ranks, too (PyTorch,
/// torch/distributed/tensor/experimental/_attention.py, _AllGatherRotater), and backward the sums of their gradients,
/// one that is sent and one that arrives (_AllToAllRotater).
double gathered_bytes(const PassSetup& setup, const AttentionShape& a) {
  const TrainingDescription& d = *setup.description;
  const ParallelPlan& plan = d.parallel;
  if (plan.context > 1 && plan.context_kind == ContextKind::all_gather)
    return 2 * real(d.micro_batch * d.sequence_length) *
           real(shared_out(a.kv_heads, plan.tensor) * (a.head_size + a.value_size) * activation_bytes(d));
  const KernelCatalogue::Context& how = setup.kernels().context;
  const bool blocks =
      plan.context_kind == ContextKind::gathered_ring || (plan.context_kind == ContextKind::ring && how.ring_in_blocks);
  if (plan.context == 1 || !blocks || setup.attention != AttentionKernel::flash) return 0;
  const std::int64_t heads = how.repeats_keys ? a.heads : a.kv_heads;
  const double elements =
      real(tokens_per_rank(d)) * real((heads + plan.tensor - 1) / plan.tensor * (a.head_size + a.value_size));
  return elements * (real(plan.context * activation_bytes(d)) + 2 * real(how.gradient_bytes));
}

/// Activations of one micro-batch in a model chunk: those of its blocks, and of embedding and head if it has them.
struct ChunkBytes {
  double blocks = 0;
  double ends = 0;
  double sum() const { return blocks + ends; }
};

/// The kept bytes of a block, with and without recomputation.
double kept_bytes(const PassSetup& setup, const BlockShape& block, bool again) {
  if (setup.description->recompute != Recompute::full || again) return block_activation_bytes(setup, block);
  TrainingDescription whole = *setup.description;
  whole.recompute = Recompute::none;
  PassSetup with = setup;
  with.description = &whole;
  return block_activation_bytes(with, block);
}

/// The part of a block in memory only while its backward pass computes it again. Not the core of attention, whose
/// scores Korthikanti et al. count nowhere either.
double bytes_again(const PassSetup& setup, const BlockShape& block) {
  const double kept = kept_bytes(setup, block, true);
  if (setup.description->recompute == Recompute::full) return kept_bytes(setup, block, false);
  TrainingDescription whole = *setup.description;
  whole.recompute_modules = {};
  PassSetup with = setup;
  with.description = &whole;
  return block_activation_bytes(with, block) - kept;
}

double tokens_of_norms(const TrainingDescription& d) {
  return real(tokens_per_rank(d)) / (d.parallel.sequence ? real(d.parallel.tensor) : 1);
}

/// The mask of the dropout after the embedding (Korthikanti et al., 4.3).
double embedding_activation_bytes(const TrainingDescription& d) {
  return d.model.dropout ? tokens_of_norms(d) * real(d.model.hidden) : 0;
}

/// The final norm's input and output, and the logits in 32 bits: 4sbh/t (1 + V/h) with sequence parallelism (the same).
double head_activation_bytes(const TrainingDescription& d) {
  const double classes = real(shared_out(std::max(d.model.vocabulary, d.model.head_classes), d.parallel.tensor));
  const double rows = d.model.vocabulary > 0 ? real(tokens_per_rank(d)) : real(d.micro_batch);
  return tokens_of_norms(d) * real(d.model.hidden) * 2 * real(activation_bytes(d)) + rows * classes * 4;
}

/// Inputs of both norms, and what they give side by side, as the projection reads it.
double prediction_input_bytes(const TrainingDescription& d) {
  const KeptBytes kept(d);
  return tokens_of_norms(d) * real(d.model.hidden) * 2 * (kept.passed + kept.read);
}

/// The peak memory of a rank over its slots. Slots that run together end together.
ChunkBytes max_activations(const PipelineSchedule& schedule, const PipelineShape& shape, std::uint32_t pipeline_rank,
                           const std::vector<ChunkBytes>& chunks) {
  std::vector<std::int64_t> held(chunks.size());
  std::vector<std::uint32_t> ended;
  ChunkBytes max;
  const auto slots = schedule.slots(shape, pipeline_rank);
  for (PipelineSlot slot; slots->next(slot);) {
    if (slot.pass == PipelineSlot::Pass::forward) ++held[slot.chunk];
    if (slot.pass == PipelineSlot::Pass::backward || slot.pass == PipelineSlot::Pass::weight_gradient)
      ended.push_back(slot.chunk);
    ChunkBytes now;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      now.blocks += chunks[c].blocks * real(held[c]);
      now.ends += chunks[c].ends * real(held[c]);
    }
    if (now.sum() > max.sum()) max = now;
    if (slot.with_next) continue;
    for (const std::uint32_t chunk : ended) --held[chunk];
    ended.clear();
  }
  return max;
}

/// Parameters of blocks as GEMMs of fp8 read them: quantised once a step, and kept along both dimensions, because
/// these GEMMs want both factors along the inner one (NVIDIA, Transformer Engine,
/// transformer_engine/pytorch/module/base.py, get_weight_workspace; its documentation, "Handling transposes").
/// Parameters that have fp8 are one of the two. Where these GEMMs read factors either way, there is only one.
std::int64_t fp8_copies(const PassSetup& setup, std::int64_t parameters) {
  const TrainingDescription& d = *setup.description;
  if (!is_fp8(d.precision)) return 0;
  const bool transposed = setup.times->device().fp8_transposes || is_scaled_in_blocks(d.precision);
  const std::int64_t copies = (transposed ? 2 : 1) - (d.parameter_precision == "fp8" ? 1 : 0);
  const std::int64_t scales =
      d.precision == "fp8_block" ? 4 * (parameters / (128 * 128)) : scale_bytes(d.precision, parameters);
  return copies * (parameters + scales);
}

}  // namespace

double block_activation_bytes(const PassSetup& setup, const BlockShape& block) {
  const TrainingDescription& d = *setup.description;
  const ParallelPlan& plan = d.parallel;
  const double element = real(activation_bytes(d));
  const double tokens = real(tokens_per_rank(d));
  const double t = real(plan.tensor);
  if (!block.gemms.empty()) {
    double bytes = 0;
    for (const SampleGemm& gemm : block.gemms) bytes += real(gemm.rows * gemm.columns * d.micro_batch) * element * 2;
    return d.recompute == Recompute::full ? 0 : bytes;
  }
  if (d.recompute == Recompute::full) return tokens * real(d.model.hidden) * element / (plan.sequence ? t : 1);
  const TokenBytes attention = attention_bytes(d, block.attention);
  const TokenBytes mlp = mlp_bytes(d, block.mlp);
  const double copies = block.cross_attention ? 2 : 1;
  const double whole = (copies * attention.whole + mlp.whole) / (plan.sequence ? t : 1);
  double bytes = tokens * (whole + copies * attention.every + (copies * attention.shared + mlp.shared) / t);
  if (setup.attention == AttentionKernel::unfused && d.recompute == Recompute::none) {
    // Softmax's output, its dropout's mask (1 byte) and the dropout's output, of every score: 5as per token and layer.
    const double scores = real(block.attention.heads) * real(d.sequence_length) / t;
    bytes += tokens * scores * (2 * element + 1) * copies;
  }
  return bytes;
}

RankMemory memory_of_rank(const PassSetup& setup, const PipelineSchedule& schedule, const PipelineShape& shape,
                          std::uint32_t pipeline_rank) {
  const TrainingDescription& d = *setup.description;
  const ParallelPlan& plan = d.parallel;
  const std::uint32_t stages = schedule.stages(shape);
  HeldParameters held;
  std::int64_t largest_part = 0, in_blocks = 0;
  const auto hold = [&](const std::vector<Tensor>& tensors) {
    const HeldParameters more = held_parameters(tensors, plan);
    held.dense += more.dense;
    held.experts += more.experts;
    largest_part = std::max(largest_part, more.sum());
  };
  std::vector<ChunkBytes> chunks(schedule.chunks(shape));
  for (std::uint32_t c = 0; c < chunks.size(); ++c) {
    const std::uint32_t stage = schedule.stage_of(shape, pipeline_rank, c);
    const StageLayers layers = layers_of_stage(plan, stage);
    for (std::int64_t layer = layers.first; layer < layers.last; ++layer) {
      hold(d.model.layer_shape(layer).tensors);
      in_blocks += held_parameters(d.model.layer_shape(layer).tensors, plan).sum();
      const bool again = d.recompute_layers == 0 || layer < layers.first + d.recompute_layers;
      chunks[c].blocks += kept_bytes(setup, d.model.layer_shape(layer), again);
    }
    if (stage == 0) {
      hold(d.model.embedding);
      chunks[c].ends += embedding_activation_bytes(d);
    }
    if (stage + 1 == stages) {
      hold(head_tensors(d.model, plan));
      for (std::int64_t i = 0; i < d.model.prediction_blocks; ++i) hold(d.model.prediction_head);
      chunks[c].ends += (1 + real(d.model.prediction_blocks)) * head_activation_bytes(d);
    }
    if (stage == plan.prediction_stage) {
      if (d.model.prediction_blocks > 0 && plan.embedding_copy > 0) hold({d.model.embedding.front()});
      for (std::int64_t i = 0; i < d.model.prediction_blocks; ++i) {
        const BlockShape& block = d.model.layer_shape(d.model.layers() + i);
        hold(d.model.prediction_input);
        hold(block.tensors);
        in_blocks += held_parameters(block.tensors, plan).sum();
        chunks[c].blocks += kept_bytes(setup, block, d.recompute_layers == 0);
        chunks[c].ends += embedding_activation_bytes(d) + prediction_input_bytes(d);
      }
    }
  }
  const std::int64_t data = plan.data * plan.context;
  const std::int64_t dense_ranks = plan.shard_group > 0 ? plan.shard_group : data;
  const std::int64_t expert_ranks =
      std::max<std::int64_t>(1, plan.tensor * plan.context * plan.data / (plan.expert * plan.expert_tensor));
  const auto state = [&](std::int64_t bytes, Sharding from) {
    if (plan.sharding < from) return held.sum() * bytes;
    return (shared_out(held.dense, dense_ranks) + shared_out(held.experts, expert_ranks)) * bytes;
  };
  // Gathered; GEMMs of fp8 have separate copies.
  const std::int64_t element = d.parameter_precision == "fp8" ? 1 : activation_bytes(d);
  RankMemory memory;
  memory.parameters = state(element_bytes(d.parameter_precision), Sharding::parameters);
  memory.gradients = state(element_bytes(d.gradient_precision), Sharding::gradients);
  memory.optimizer = state(
      adam_kept(element_bytes(d.parameter_precision), element_bytes(d.moment_precision)) + (d.gradient_copies ? 4 : 0),
      Sharding::optimizer);
  const ChunkBytes max = max_activations(schedule, shape, pipeline_rank, chunks);
  memory.activations = std::llround(max.blocks);
  memory.ends = std::llround(max.ends);
  if (d.recompute == Recompute::full || d.recompute_modules.any()) {
    double again = 0;  // of one block at a time
    for (const BlockShape& block : d.model.shapes) again = std::max(again, bytes_again(setup, block));
    memory.buffers += std::llround(again);
  }
  double gathered = 0;  // of one block at a time
  for (const BlockShape& block : d.model.shapes) gathered = std::max(gathered, gathered_bytes(setup, block.attention));
  memory.buffers += std::llround(gathered);
  if (plan.sharding == Sharding::parameters) memory.buffers += largest_part * (1 + plan.prefetch) * element;
  memory.buffers += fp8_copies(setup, plan.sharding == Sharding::parameters ? largest_part : in_blocks);
  if (d.offload_optimizer) memory.host += std::exchange(memory.optimizer, 0);
  if (d.offload_parameters) memory.host += std::exchange(memory.parameters, 0);
  return memory;
}

std::vector<std::pair<std::string, std::int64_t>> lines_of(const RankMemory& memory) {
  return {{"parameters", memory.parameters},
          {"gradients", memory.gradients},
          {"optimizer", memory.optimizer},
          {"activations", memory.activations},
          {"ends", memory.ends},
          {"buffers", memory.buffers},
          {"sum", memory.sum()}};
}

}  // namespace weft
