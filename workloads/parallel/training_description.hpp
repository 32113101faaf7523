// SPDX-License-Identifier: GPL-2.0-only
// What is trained, and how the work is shared out: the one description that all configuration formats are read into.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/basics/error.hpp"
#include "workloads/model/model_config.hpp"
#include "workloads/parallel/gradient_buckets.hpp"
#include "workloads/parallel/tensor_overlap.hpp"

namespace weft {

/// How the keys and values of a sequence that is cut over ranks meet all queries.
enum class ContextKind : std::uint8_t {
  ring,        ///< blocks go round (Liu et al., arXiv:2310.01889)
  all_gather,  ///< keys and values are gathered before attention (Llama 3, arXiv:2407.21783, 3.3.2)
  /// Keys and values are gathered, and attention computed block by block and summed up; their gradients go round
  /// (PyTorch, torch/distributed/tensor/experimental/_attention.py, _templated_ring_attention).
  gathered_ring,
  ulysses,  ///< all-to-all between sequence and heads (Jacobs et al., arXiv:2309.14509)
};

/// What data-parallel ranks share out instead of each keeping it (ZeRO; Rajbhandari et al., arXiv:1910.02054).
enum class Sharding : std::uint8_t {
  none,
  optimizer,   ///< stage 1, Megatron's distributed optimizer
  gradients,   ///< stage 2
  parameters,  ///< stage 3, FSDP
};

/// Activations that are computed again in the backward pass (Korthikanti et al., arXiv:2205.05198).
enum class Recompute : std::uint8_t {
  none,
  selective,  ///< the core of attention
  operators,  ///< small kernels and every second GEMM (torchtitan's selective checkpointing)
  full,       ///< whole blocks
};

/// Parts of a block whose results are not kept but computed again in the backward pass, in addition to Recompute, by
/// the names of Megatron-LM's --recompute-modules.
struct RecomputedModules {
  bool norms = false;               ///< layernorm: the norms before attention and MLP, and those of latent attention
  bool up_projections = false;      ///< mla_up_proj: queries, keys and values of latent attention from the compressions
  bool expert_activations = false;  ///< moe_act: what comes of the activation function of routed experts
  bool mlp = false;                 ///< mlp: the MLPs of blocks without experts
  bool mixture = false;             ///< moe: router, experts and shared experts, with the exchanges of tokens
  bool shared_experts = false;      ///< shared_experts
  bool any() const { return norms || up_projections || expert_activations || mlp || mixture || shared_experts; }
};

/// Numbers of ranks. world = tensor * context * data * pipeline; expert and expert_tensor share out the same ranks
/// again: expert * expert_tensor divides tensor * context * data.
struct ParallelPlan {
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  std::int64_t data = 0;  ///< 0: what the world leaves
  std::int64_t pipeline = 1;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 0;  ///< ranks that share one expert; 0: as `tensor`
  /// Expert ranks of one server. Tokens then go to servers first, from each rank to the one in the same place, once for
  /// all experts of a server, and on within it (DeepSeek-V3, arXiv:2412.19437, 2.1.2 and 3.2.2); 0: straight to
  /// experts.
  std::int64_t expert_server = 0;
  /// What comes from other servers goes on while it comes, as DeepEP forwards it; else when all of it is there.
  bool forward_in_parts = false;
  std::int64_t servers_per_token = 0;  ///< most servers that a token goes to, at least 1; 0: all of them may be
  std::int64_t virtual_stages = 1;     ///< model chunks of each pipeline rank
  bool sequence = false;               ///< the parts between tensor-parallel GEMMs are cut along the sequence
  /// Activations go to the next stage in parts, one from each tensor rank, and are gathered there (Narayanan et al.,
  /// arXiv:2104.04473, 4.1).
  bool scatter_gather = false;
  ContextKind context_kind = ContextKind::ring;
  std::string schedule = "1f1b";  ///< of the pipeline, a name of PipelineScheduleRegistry
  /// Forward passes go beside backward passes, in the parts and the order of Megatron-LM's
  /// --overlap-moe-expert-parallel-comm with --delay-wgrad-compute.
  bool combined() const { return schedule == "combined_1f1b"; }
  /// Dimensions from the one whose ranks are neighbours to the outermost (Megatron-LM,
  /// megatron/core/parallel_state.py).
  std::string order = "tp-cp-ep-dp-pp";
  Sharding sharding = Sharding::none;
  std::int64_t shard_group = 0;       ///< data-parallel ranks that share one copy (HSDP, ZeRO++); 0: all
  bool reshard_after_forward = true;  ///< stage 3: parameters are gathered again for the backward pass
  std::int64_t prefetch = 1;          ///< stage 3: blocks whose parameters are gathered ahead
  std::int64_t shard_copies = 0;      ///< the same as shard_group by the number of copies; 0: not said
  /// Blocks of each pipeline stage in the order of the model; empty: as many on each. Never empty once settled.
  std::vector<std::int64_t> stage_layers;
  /// The stage with the layers of multi-token prediction; -1: the last one. Never -1 once settled.
  std::int64_t prediction_stage = -1;
  /// The pipeline rank that has a copy of the embedding, if it is not the first one; settled.
  std::int64_t embedding_copy = 0;
};

/// Ranks that share the scales of fp8 with delayed scaling: they reduce the largest magnitudes of their tensors.
enum class AmaxRanks : std::uint8_t {
  stage,   ///< all tensor, context and data ranks of a pipeline rank
  tensor,  ///< tensor and context ranks (Megatron-LM's --tp-only-amax-red)
  none,    ///< scales do not follow from earlier passes
};

/// Where the scale of a tensor in fp8 comes from.
enum class Fp8Scaling : std::uint8_t {
  delayed,  ///< from the largest magnitudes of earlier ones
  current,  ///< from its own, which a kernel looks for before
};

/// Recipes of Transformer Engine as Megatron-LM's --fp8-recipe names them.
enum class Fp8Recipe : std::uint8_t { delayed, tensorwise, blockwise, mxfp8 };

struct TrainingDescription {
  ModelConfig model;
  ParallelPlan parallel;
  std::int64_t world = 0;            ///< ranks; 0: not said, as Megatron's arguments do not
  std::int64_t micro_batch = 1;      ///< sequences [b]; 0: what global_batch and micro_batches leave
  std::int64_t global_batch = 0;     ///< sequences per step over all ranks [B]; 0: micro_batch * data * micro_batches
  std::int64_t micro_batches = 0;    ///< per pipeline and step [m]; 0: from global_batch, or 1
  std::int64_t sequence_length = 0;  ///< tokens [s]; 0: not said
  std::string precision = "bf16";    ///< of GEMMs; of activations, too, but for fp8 (activation_precision)
  Fp8Recipe fp8_recipe = Fp8Recipe::delayed;  ///< that fp8 is meant with, if the framework has its casts
  Fp8Scaling fp8_scaling = Fp8Scaling::delayed;
  std::string parameter_precision = "bf16";  ///< of weights that are kept and gathered
  bool gradient_copies = false;              ///< the optimizer keeps its own gradients in fp32 besides
  std::string gradient_precision;            ///< of what is reduced; empty: as the parameters
  std::string dispatch_precision;            ///< of tokens on their way to experts; empty: as activations
  std::string moment_precision = "fp32";     ///< of both moments that Adam keeps
  std::string combine_precision;             ///< of what comes back from experts; empty: as activations
  /// What backward passes find of what activation functions take (Megatron-LM's activation_func_fp8_input_store), and
  /// of what attention gives, which its own backward pass and that of the GEMM behind it need;
  /// kept_precision_names(). Empty: as they are, and what attention gives besides as the GEMM reads it.
  std::string activation_input_precision, attention_output_precision;
  Recompute recompute = Recompute::none;
  std::int64_t recompute_layers = 0;  ///< full: so many blocks of each stage; 0: all
  RecomputedModules recompute_modules;
  BucketLimits buckets;  ///< of gradients that are reduced together
  /// Elements of a bucket, which replace `buckets` when settled, and the least of them for each data-parallel rank
  /// (Megatron-LM's default is the larger of 40,000,000 and 1,000,000 per rank); 0: by bytes.
  static constexpr std::int64_t all_elements = std::int64_t{1} << 48;
  std::int64_t bucket_elements = 0;
  std::int64_t bucket_elements_per_rank = 0;
  bool buckets_of_first_chunk = false;  ///< all other model chunks have one bucket each, of any size
  bool overlap_tensor = true;           ///< tensor ranks sum gradients of inputs beside the GEMMs for those of weights
  TensorOverlap tensor_overlap;         ///< calls of tensor ranks in parts beside the GEMMs next to them
  bool overlap_gradients = true;        ///< reductions run beside the backward pass
  /// In an interleaved pipeline the sums of a chunk begin on all stages at once, when the first stage has its gradients
  /// (Megatron-LM's --overlap-grad-reduce without --no-align-grad-reduce); else on each stage when they are ready.
  bool align_gradients = false;
  bool overlap_parameters = false;        ///< parameters of sharded state are gathered beside the forward pass
  bool reduce_every_micro_batch = false;  ///< stage 2 as DeepSpeed does it, hybrid stage 3 as PyTorch FSDP2
  bool clip_gradients = true;             ///< the norm of all gradients is reduced before the optimizer's step
  bool fused_router = false;              ///< experts are chosen in one kernel (Megatron-LM's --moe-router-fusion)
  bool fused_loss = false;                ///< the loss and its gradient (its --cross-entropy-loss-fusion, of TE)
  bool fused_permutation = true;          ///< copies are sorted and summed in one each (its --moe-permute-fusion)
  bool padded_copies = true;  ///< fp8: copies of tokens are copied to fill up tiles; else the router does it
  AmaxRanks amax_ranks = AmaxRanks::stage;  ///< fp8, if the framework has delayed scaling
  double capacity_factor = 0;               ///< largest share of tokens an expert takes, of the mean; 0: all that come
  bool pad_to_capacity = false;             ///< an expert takes as much in any case: what is missing is padding
  bool offload_optimizer = false;           ///< optimizer state is in host memory
  bool offload_parameters = false;          ///< parameters are there, and come before each part's pass
  bool overlap_offload = true;              ///< what goes to the host or comes from it does so beside computations
  std::vector<std::string> ignored;         ///< keys that say nothing here, each once, for people

  /// Where each field was said, by its name above ("tensor", "global_batch"): for complaints.
  std::map<std::string, SourceLine> where;
  /// An InputError at the place of a field, or at `otherwise` if it was not said.
  InputError error(const std::string& field, const std::string& message, const SourceLine& otherwise) const;
};

/// Fills in what follows from the rest (data from world, micro_batches from global_batch, expert_tensor, precisions),
/// and throws InputError for contradictions, at the line of one of the fields: products that are not the world, batches
/// that do not divide, heads by tensor ranks, layers by stages, experts by expert ranks, sequences by context ranks,
/// stages that have not all blocks, recompute without blocks. `hosts`: accelerators of the machine, or 0 if there is
/// none; the world defaults to it. `otherwise`: place of complaints about fields that were not said.
void settle_description(TrainingDescription& description, std::int64_t hosts, const SourceLine& otherwise);

}  // namespace weft
