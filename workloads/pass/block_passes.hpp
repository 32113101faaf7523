// SPDX-License-Identifier: GPL-2.0-only
// What a rank computes and communicates in one pass of one micro-batch through a part of the model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/collective/collective.hpp"
#include "schedule/program/program.hpp"
#include "workloads/compute/framework.hpp"
#include "workloads/compute/operator_times.hpp"
#include "workloads/parallel/pass_sizes.hpp"
#include "workloads/parallel/rank_layout.hpp"
#include "workloads/parallel/training_description.hpp"

namespace weft {

/// What a pass needs to know beside the part of the model.
struct PassSetup {
  const TrainingDescription* description = nullptr;  ///< settled
  const OperatorTimes* times = nullptr;
  AttentionKernel attention = AttentionKernel::flash;
  const KernelCatalogue* framework = nullptr;  ///< nothing: plain_kernels()
  const KernelCatalogue& kernels() const { return framework == nullptr ? plain_kernels() : *framework; }
};

/// A kernel of a segment, for people.
struct KernelUse {
  std::string name;
  Kernel kernel;
  double flops = 0;  ///< those of small kernels, too
  Time time;
};

/// A piece of a pass. Pieces run one after another, but for those that run beside.
struct Segment {
  enum class Kind : std::uint8_t {
    compute,
    collective,
    ring,  ///< ring attention: `parts` computations of `duration`, and in between messages of `size` round the group
    rotation,  ///< a message of `size` to the next rank of the group, and one from the rank before
    // A GEMM in `parts` computations of `duration`, with messages of `size` of each (TensorOverlap)
    gathering,   ///< parts of what is gathered go round the group, each beside the computation of the one before
    summing,     ///< a call that sums each part of the result, beside the computation of the next one
    scattering,  ///< each part but the last, which is the rank's own, goes to another rank; a later piece sums them up
  };
  Kind kind = Kind::compute;
  std::string_view what;  ///< for people: "attention", "MLP gather"; lives for ever
  Time duration;          ///< compute; of each part, if there are several
  Time slowed;            ///< compute: `duration` while collectives are under way; 0: as the device says of all kernels
  double flops = 0;       ///< of it
  Stream stream = Stream::compute;
  GroupKind group = GroupKind::tensor;
  CollectiveKind collective = CollectiveKind::all_reduce;
  Bytes size;                ///< of a collective call, or of each message of a ring
  std::int64_t parts = 1;    ///< of a GEMM in parts
  bool pairs = false;        ///< gathering: neighbours exchange what they have first, and then both go round
  bool beside = false;       ///< starts when the piece before has ended; only a later piece that joins waits for it
  bool join = false;         ///< waits for all pieces beside
  bool by_load = false;      ///< sizes and times go with the tokens that come to the rank's experts
  bool combine = false;      ///< by_load: the tokens go back
  bool from_second = false;  ///< not in the first micro-batch
  bool host_waits = false;   ///< the host launches nothing more until it has ended
  bool yields = false;       ///< ParallelPlan::combined(): the pass beside goes on behind it
  Time launch;               ///< of each kernel of a computation; 0: that of all kernels
  /// The piece of a CUDA graph, which the host launches with its first one.
  enum class Graph : std::uint8_t { none, first, later };
  Graph graph = Graph::none;
  std::vector<KernelUse> kernels;                         ///< of a computation
  std::shared_ptr<const std::vector<KernelUse>> grouped;  ///< those of them that are grouped GEMMs of experts, if any
};

/// All passes of a part. `backward` = `input_gradient` and `weight_gradient` together. With full recomputation
/// `recompute` comes before the backward pass.
struct PartPasses {
  std::vector<Segment> forward, backward, input_gradient, weight_gradient, recompute;
};

/// Arithmetic and communication per micro-batch of a block on one of its ranks, by tensor, sequence, context and expert
/// parallelism. GEMMs: QKV 2bsh(a+2k)d, scores and values 4bs^2 ad, output 2bsadh, MLP 4bshf or gated 6bshf; a
/// backward pass takes a GEMM for the gradient of each input (Narayanan et al., arXiv:2104.04473, appendix;
/// Korthikanti et al., arXiv:2205.05198, appendix A). Communication per block, forward and backward each: tensor
/// parallelism 2 all-reduces of bsh (Shoeybi et al., arXiv:1909.08053); with sequence parallelism 2 all-gathers and 2
/// reduce-scatters, and backward 2 all-gathers more that run beside the GEMMs for the gradient of the input
/// (Korthikanti et al., 4.2.2); experts 2 all-to-alls of the tokens' copies (Lepikhin et al., arXiv:2006.16668).
PartPasses block_passes(const PassSetup& setup, const BlockShape& block);
PartPasses embedding_passes(const PassSetup& setup);
/// Final norm, logits, and the loss: three all-reduces of a number per token where the vocabulary is shared out
/// (Megatron-LM, megatron/core/tensor_parallel/cross_entropy.py).
PartPasses head_passes(const PassSetup& setup);
/// What layers of multi-token prediction have beside a block, and the embedding of the next tokens before it: two
/// norms, and a projection of both vectors side by side, 4 b s h^2 (DeepSeek-V3, arXiv:2412.19437, 2.2; Megatron-LM,
/// megatron/core/transformer/multi_token_prediction.py: the projection is cut over tensor ranks, its results are
/// gathered); and behind the block a norm, and logits and loss with the head's matrix.
PartPasses prediction_input_passes(const PassSetup& setup);
/// Copies of a message between stages that tensor ranks have gathered, `forward` for both directions.
PartPasses message_passes(const PassSetup& setup);
PartPasses prediction_head_passes(const PassSetup& setup);

}  // namespace weft
