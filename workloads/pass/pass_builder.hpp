// SPDX-License-Identifier: GPL-2.0-only
// What the passes of all parts of a model are made of: sizes, small kernels, and communication of tensor parallelism.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "workloads/pass/block_passes.hpp"
#include "workloads/pass/pass_work.hpp"

namespace weft {

/// Of one rank and one micro-batch. Sizes: `tokens_` b s / c of a rank, `t_` and `c_` tensor and context ranks, `h_`
/// the model's hidden size, `element_` bytes of an activation.
class PassBuilder {
 protected:
  explicit PassBuilder(const PassSetup& setup);

  /// Elements that small kernels of any part work on.
  KernelUnits common_units() const;
  static std::int64_t& unit(KernelUnits& units, KernelUnit which) { return units[static_cast<std::size_t>(which)]; }
  /// Kernels of a place by themselves, if there are any.
  void add_small(KernelPlace place, bool backward, const KernelUnits& units, std::string_view what,
                 std::vector<Segment>& to, MlpKind mlp = {}) const;
  /// GEMMs that do not have fp8: the core of attention, routers and the head.
  Work unquantised() const;

  /// Of all tokens' vectors, hidden ones if `width` is 0.
  Segment tensor_collective(std::string_view what, CollectiveKind kind, std::int64_t width = 0) const;
  /// Sums and gathers of a backward pass run beside the GEMMs for the gradients of weights.
  bool overlaps(bool weights_too) const { return weights_too && setup_.description->overlap_tensor; }
  /// What a GEMM reads is gathered as it reads it, in fp8 where it has fp8 (NVIDIA, Transformer Engine,
  /// transformer_engine/pytorch/module/layernorm_linear.py: with_quantized_all_gather). Nothing without sequence
  /// parallelism.
  void gather(std::vector<Segment>& to, std::string_view what, bool beside = false, std::int64_t width = 0) const;
  /// Of the gradient that the GEMMs behind a sum read. Scaled in blocks it is gathered along rows and along columns,
  /// for one of both GEMMs each, because one does not follow from the other (Transformer Engine 2,
  /// pytorch/module/linear.py: set_usage(rowwise=True, columnwise=True); "we can't convert row-scaled MXFP8 to
  /// column-scaled").
  void gather_gradient(std::vector<Segment>& to, std::string_view what) const;
  /// The same for the gradients of weights, if it was not kept.
  void gather_again(std::vector<Segment>& to, std::string_view what, bool weights_too, std::int64_t width = 0) const;
  /// The sum over tensor ranks of what a GEMM, cut along its inner dimension, leaves on each.
  void sum(std::vector<Segment>& to, std::string_view what, std::int64_t width = 0) const;

  // GEMMs next to a call of tensor ranks (overlap_passes.cpp)

  const OverlapOfGemm& overlap_of(OverlappedGemm gemm) const { return setup_.description->tensor_overlap.of(gemm); }
  bool overlaps(OverlappedGemm gemm) const { return t_ > 1 && overlap_of(gemm).method != OverlapMethod::none; }
  /// What a GEMM reads is gathered part by part, each part beside the GEMM of the one before.
  void gather_beside(std::vector<Segment>& to, OverlappedGemm which, std::string_view gathered, std::string_view what,
                     const Gemm& gemm) const;
  /// A GEMM part by part, and the sum of each part over tensor ranks beside the GEMM of the next one.
  void sum_beside(std::vector<Segment>& to, OverlappedGemm which, std::string_view summed, std::string_view what,
                  const Gemm& gemm) const;
  /// Calls from this place on go beside the GEMM, if they do so in bulk.
  void in_bulk(std::vector<Segment>& to, std::size_t begin, OverlappedGemm which) const;
  /// Kernels that a call in bulk goes beside.
  void set_beside(Work& work, OverlappedGemm which) const;

  const PassSetup& setup_;
  const ParallelPlan& plan_;
  std::int64_t tokens_, t_, c_, h_, element_;

  /// Tokens of what is outside of tensor parallelism.
  std::int64_t norm_tokens() const;

 private:
  KernelUnits units_of_width(std::int64_t width) const;
  void gather_copies(std::vector<Segment>& to, std::string_view what, std::int64_t copies, bool beside,
                     std::int64_t width) const;
  /// Of all tokens' vectors as GEMMs read them, with their scales.
  Bytes gathered_bytes(std::int64_t width) const;
  /// Buffers of userbuffers have no room for scales of MXFP8: a call of NCCL gathers them before, and the GEMM waits
  /// for it (NVIDIA, Transformer Engine, pytorch/module/base.py, fill_userbuffers_buffer_for_all_gather).
  bool gathers_scales() const;
  void gather_scales(std::vector<Segment>& to) const;
  /// Of all tokens' hidden vectors in a buffer.
  Bytes buffered_bytes() const;
  /// Where each tensor has a scale of its own, ranks that gather it in fp8 agree on its largest magnitude before
  /// (pytorch/module/layernorm_linear.py, linear.py: set_quantizer_amax_reduction_group, with sequence parallelism;
  /// pytorch/csrc/quantizer.cpp: Float8CurrentScalingQuantizer::quantize_impl).
  void reduce_magnitude(std::vector<Segment>& to) const;
};

}  // namespace weft
