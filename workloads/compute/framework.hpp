// SPDX-License-Identifier: GPL-2.0-only
// The small kernels of a training framework, beside the GEMMs: a catalogue that is data, not code.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/documents/spec.hpp"
#include "workloads/compute/kernel_time.hpp"

namespace weft {

/// How attention is computed.
enum class AttentionKernel : std::uint8_t {
  flash,    ///< one kernel that keeps the scores on chip and skips what a causal mask hides (Dao, arXiv:2307.08691)
  unfused,  ///< two GEMMs and a softmax over all scores, which go through device memory
};

/// The places of small kernels in a pass.
enum class KernelPlace : std::uint8_t {
  attention_norm,
  attention_input,     ///< behind the GEMM that makes queries, keys and values
  attention_core,      ///< between the two GEMMs of attention without fusion; nothing where one kernel does it all
  attention_output,    ///< before the GEMM behind attention
  attention_residual,  ///< behind that GEMM and its sum over tensor ranks
  mlp_norm,
  mlp_activation,
  mlp_residual,
  embedding,
  final_norm,
  loss,              ///< logits to loss
  tensor_gathered,   ///< with sequence parallelism: behind each gather over tensor ranks in a block
  tensor_scattered,  ///< and before each of their sums, in which they scatter, too
  router,            ///< of mixtures: behind the GEMM that scores experts
  experts_input,     ///< of mixtures: tokens on their way to the GEMMs of experts, backward their gradients back
  experts_output,    ///< and what experts give on its way back to the tokens
  context_begin,     ///< with ContextKind::gathered_ring: before the gather of keys and values
  context_part,      ///< behind each block of attention but the first one
  context_end,       ///< behind all blocks
  magnitudes,        ///< fp8 with delayed scaling: behind a pass of a chunk's blocks
  message_gathered,  ///< of messages between stages in parts: behind each gather of one over tensor ranks
};
constexpr std::size_t kernel_place_count = 21;

/// What a kernel's bytes are counted per. N: tokens of the rank x hidden.
enum class KernelUnit : std::uint8_t {
  residual,             ///< elements of N between tensor-parallel parts: 1/t of them with sequence parallelism
  hidden,               ///< elements of N, all of them
  heads,                ///< elements of what attention gives, this rank's heads
  queries_keys,         ///< elements of queries and keys
  queries_keys_values,  ///< elements of queries, keys and values
  keys_values,          ///< elements of keys and values as context ranks exchange them
  scores,               ///< a s^2 b / t
  inner,                ///< elements of the MLP's inner width, this rank's part
  inner_and_gates,      ///< these, and what the up projection gives, with its gates
  logits,               ///< tokens x this rank's part of the vocabulary
  table,                ///< parameters of the embedding table on this rank
  choices,              ///< scores of experts: tokens that the rank routes x experts
  chosen,               ///< tokens that the rank routes x experts of each
  sent,                 ///< elements of the copies of tokens that the rank sends to experts
  copies,               ///< elements of those that the experts on the rank, or their parts, get
  parameters,           ///< all parameters of the rank
  kept,                 ///< those that its optimizer works on
  magnitudes,           ///< tensors in fp8 of the rank's blocks, those of one direction
  tensors,              ///< one, or one for each expert on the rank
};
constexpr std::size_t kernel_unit_count = 19;

/// How many units there are, by KernelUnit, at one place.
using KernelUnits = std::array<std::int64_t, kernel_unit_count>;

/// Models that have a kernel.
enum class KernelWhen : std::uint8_t {
  gated,
  plain,
  learned_positions,
  no_positions,
  grouped,               ///< fewer keys and values than queries
  head_norms,            ///< queries and keys of each head are normed
  fp8,                   ///< GEMMs have fp8 with a scale for each tensor
  delayed,               ///< which follows from earlier tensors
  current,               ///< or from the tensor itself
  fp8_block,             ///< they have fp8 scaled in blocks of 128
  mxfp8,                 ///< or of 32
  fp8_scaled,            ///< either of both
  no_fp8,                ///< none of all these
  sequence,              ///< with sequence parallelism
  no_sequence,           ///< without
  fused_router,          ///< experts are chosen in one kernel
  separate_router,       ///< or in one for each operation
  fused_loss,            ///< the loss and its gradient are computed in two kernels
  separate_loss,         ///< or in one for each operation
  fused_permutation,     ///< copies of tokens are sorted and summed in one kernel each
  separate_permutation,  ///< or in one for each operation
  several_here,          ///< the rank has several experts
  experts_in_turn,       ///< the framework computes one expert after the other, in one stream
  padded,                ///< GEMMs have fp8, and copies of tokens are copied to be padded
  dense,                 ///< the place is one of an MLP that all tokens go through, or of a block that has one
  experts,               ///< of a mixture's experts, or of a block that has them
  no_experts,            ///< of none
  transposed,        ///< GEMMs of fp8 on the device read both factors along k, those for gradients transposed copies
  untransposed,      ///< they read factors either way
  wide_gradients,    ///< gradients are kept and summed in 32 bits
  narrow_gradients,  ///< in 16
};

/// The MLP that a place of small kernels belongs to, or is before or behind; elsewhere nothing of this holds.
struct MlpKind {
  bool gated = false;
  bool dense = false;    ///< of a mixture's block: it has shared experts
  bool experts = false;  ///< a mixture
  bool several = false;  ///< of several experts on the rank
};

/// One small kernel.
struct SmallKernel {
  std::string name;
  KernelUnit unit = KernelUnit::residual;
  std::int64_t bytes = 0;     ///< read and written per unit
  std::int64_t elements = 0;  ///< the same in elements of the precision of activations
  /// Scales of fp32 besides: so many for each 128 units, and for each 128 x 128 of them.
  std::int64_t row_scales = 0, block_scales = 0;
  double flops = 0;  ///< per unit; for people: they take no time beside the bytes
  Traffic traffic = Traffic::elementwise;
  bool each_tensor = false;      ///< a kernel for each tensor, that is for each expert on the rank
  std::vector<KernelWhen> when;  ///< all of them; none: every job has it
  struct More {
    KernelUnit unit;
    std::int64_t bytes;
  };
  std::vector<More> also;  ///< what the same kernel reads and writes of other units

  bool needs(KernelWhen what) const { return std::find(when.begin(), when.end(), what) != when.end(); }
};

struct KernelCatalogue {
  std::string name;
  AttentionKernel attention = AttentionKernel::flash;
  /// [place][backward]
  std::array<std::array<std::vector<SmallKernel>, 2>, kernel_place_count> places;
  /// Gradients added up over micro-batches, one kernel for each tensor.
  struct Accumulation {
    std::int64_t bytes = 0;     ///< read and written per parameter; 0: not counted
    bool from_second = false;   ///< the first micro-batch has nothing to add to
    std::int64_t in_gemms = 0;  ///< the GEMM does it instead: bytes per parameter more than writing its result
    bool counted() const { return bytes > 0 || in_gemms > 0; }
  };
  Accumulation accumulation;
  Accumulation accumulation_fp32;  ///< of gradients of 32 bits, if that is something else
  const Accumulation& accumulation_of(bool wide) const {
    return wide && accumulation_fp32.counted() ? accumulation_fp32 : accumulation;
  }
  /// Gradients of 32 bits are summed on all ranks, also where ranks share the optimizer out.
  bool all_reduces_fp32 = false;
  /// Before the norm of all gradients is known, and after; empty: as adam_traffic() says, in one kernel.
  std::vector<SmallKernel> gradient_norm, optimizer;
  /// What GEMMs read that tensor ranks have gathered is kept, or gathered in recomputation; otherwise it is gathered
  /// again for the gradients of weights.
  bool keeps_gathered = false;
  /// Recomputation of whole blocks ends with the last operation that a backward pass needs: it leaves out the last
  /// GEMM of a dense MLP, and what follows.
  bool recomputes_what_is_needed = false;
  /// A rank computes on when what it has sent to other stages has arrived. With interleaved stages the message of a
  /// forward pass goes together with that of the backward pass behind it.
  bool blocking_messages = false;
  /// A rank sends and receives one message at a time, in the order of DeepSpeed's pipeline, and computes nothing beside
  /// it; each message begins when both ranks have come to it.
  bool messages_in_turn = false;
  /// Of messages that tensor ranks send in parts: before a backward pass they also gather what they sent forward.
  bool gathers_sent = false;
  /// A GEMM for each expert of a rank, in so many streams of the device side by side; 0: one grouped GEMM.
  std::int64_t expert_streams = 0;
  /// Ranks of experts tell each other how many tokens each expert gets before these leave, and the host waits for the
  /// numbers.
  bool counts_tokens = false;
  bool counts_optimizer() const { return !optimizer.empty(); }
  /// Copies around the gathering of a part's parameters that are shared out, and around the sum of its gradients, in
  /// each pass.
  std::vector<SmallKernel> gathered, scattered;
  /// Of ContextKind::gathered_ring, and of ContextKind::ring if it is computed in blocks.
  struct Context {
    bool ring_in_blocks = false;      ///< a ring computes attention block by block, with the kernels of these places
    bool repeats_keys = false;        ///< keys and values are repeated for each query head before they are gathered
    bool waits = false;               ///< nothing runs beside the gather and the rotations of gradients
    std::int64_t gradient_bytes = 2;  ///< of an element of the gradients that go round
  } context;
  /// Of training jobs whose keys and configuration files say nothing else. The gradients of a bucket are reduced
  /// together.
  struct Buckets {
    std::int64_t elements = 0;           ///< TrainingDescription::bucket_elements; 0: buckets of PyTorch
    std::int64_t elements_per_rank = 0;  ///< bucket_elements_per_rank
    bool of_first_chunk = false;         ///< buckets_of_first_chunk
    bool aligned = false;                ///< align_gradients in interleaved pipelines
  } buckets;
  /// GEMMs of fp8 for gradients add up in two levels.
  bool split_accumulation = false;
  /// Before a GEMM of mxfp8 a kernel puts the scales of each factor into the order that matrix units read.
  bool swizzles_scales = false;
  std::string router_gradients;   ///< precision of the GEMMs of routers' backward passes; "": that of activations
  std::string attention_library;  ///< of those of the device; "": its first one
  /// The process on the host that launches work on the device.
  struct Host {
    Time kernel, collective;  ///< for one of them
    /// For what a pass of a block has of attention, of an MLP with its norm and residual, of a mixture's router, and of
    /// each expert here, launches and all else that the framework does there; 0: its launches.
    Time attention, mlp, router, expert;
    bool waits_for_chunks = false;    ///< goes on to the next pass of a chunk when the device has done this one
    bool waits_for_launches = false;  ///< goes on when the device has done what was launched last
    /// A CUDA graph launches all of attention, or of a mixture's router, in each pass of a block.
    bool graphs_attention = false, graphs_router = false;

    /// Launches of a host that takes `factor` times as long (Device::host_slowdown).
    void slow_down(double factor);
  };
  std::optional<Host> host;  ///< nothing: it takes no time
  /// What the host took for both passes of a dense block, where that was measured. Nothing is calculated with it.
  struct BlockOnHost {
    Time min, max;
  };
  std::optional<BlockOnHost> block_on_host;

  const std::vector<SmallKernel>& at(KernelPlace place, bool backward) const {
    return places[static_cast<std::size_t>(place)][backward ? 1 : 0];
  }
};

/// What a job that names no framework has: an element read or written where an operation cannot do without.
const KernelCatalogue& plain_kernels();

/// Whether it has what GEMMs of fp8_block or mxfp8 need besides.
bool casts_in_blocks(const KernelCatalogue& kernels, const std::string& precision);
/// Whether it has what fp8 with the scales of the tensors themselves needs.
bool finds_magnitudes(const KernelCatalogue& kernels);

/// Reads a whole catalogue (docs/reference/compute_times.md). Throws InputError.
KernelCatalogue read_kernel_catalogue(const Spec& spec);

}  // namespace weft
