// SPDX-License-Identifier: GPL-2.0-only
// GEMMs beside the calls of tensor ranks before or behind them, as userbuffers of NVIDIA's Transformer Engine cut both
// up (transformer_engine/common/comm_gemm_overlap/comm_gemm_overlap.cpp). Buffers are where GEMMs read and write, so
// that nothing is copied.
#include "workloads/pass/pass_builder.hpp"

namespace weft {
namespace {

/// A GEMM with the gradient flag that its rates depend on: m x k by k x n.
struct Product {
  std::int64_t m, n, k;
  bool gradient;
};

Product product_of(const Gemm& gemm, bool gradient) {
  return gradient ? Product{gemm.rows, gemm.inner, gemm.columns, true}
                  : Product{gemm.rows, gemm.columns, gemm.inner, false};
}

/// Copy engines move parts that go round (userbuffers.cu, userbuffers_send with use_ce), so that they take no
/// multiprocessor. A GEMM that leaves some alone does so all the same.
UnitsBeside units_beside(const OverlapOfGemm& overlap) {
  const bool copied = overlap.method == OverlapMethod::ring_exchange && !overlap.sm_margin;
  return {copied ? 0 : overlap.units, overlap.sm_margin};
}

/// A segment of so many computations of which each takes that part of the time.
Segment in_parts(Segment whole, Segment::Kind kind, std::int64_t parts) {
  whole.kind = kind;
  whole.group = GroupKind::tensor_overlap;
  whole.stream = Stream::compute;
  whole.parts = parts;
  whole.duration = whole.duration / parts;
  whole.slowed = whole.slowed / parts;
  whole.flops /= static_cast<double>(parts);
  return whole;
}

}  // namespace

void PassBuilder::gather_beside(std::vector<Segment>& to, OverlappedGemm which, std::string_view gathered,
                                std::string_view what, const Gemm& gemm) const {
  const OverlapOfGemm& overlap = overlap_of(which);
  const bool gradient = which == OverlappedGemm::proj_dgrad || which == OverlappedGemm::fc2_dgrad;
  const Product product = product_of(gemm, gradient);
  const std::string& precision = setup_.description->precision;
  reduce_magnitude(to);
  gather_scales(to);
  // Columns of what is scaled in blocks are gathered besides, for the gradients of weights, beside the whole GEMM
  // (pytorch/module/linear.py: bulk_overlap_ag_with_external_gemm).
  const Bytes whole = buffered_bytes();
  if (gradient && is_scaled_in_blocks(precision)) {
    gather_scales(to);
    to.push_back(tensor_collective(gathered, CollectiveKind::all_gather));
    to.back().group = GroupKind::tensor_overlap;
    to.back().size = whole;
    to.back().beside = true;
  }
  const std::int64_t parts = overlap.pairs ? t_ / 2 : t_;
  Work work(setup_);
  work.set_beside(units_beside(overlap));
  work.gemm_in_parts(product.m / parts, product.n, product.k, parts, Work::Parts::rows, product.gradient);
  to.push_back(in_parts(work.segment(what), Segment::Kind::gathering, parts));
  to.back().pairs = overlap.pairs;
  to.back().size = Bytes(share_of(whole.count(), t_));
}

void PassBuilder::sum_beside(std::vector<Segment>& to, OverlappedGemm which, std::string_view summed,
                             std::string_view what, const Gemm& gemm) const {
  const OverlapOfGemm& overlap = overlap_of(which);
  const Product product = product_of(gemm, false);
  const std::int64_t element = overlap.fp8_buffer ? 1 : element_;
  const Bytes whole = bytes_of(tokens_, h_, element);
  Work work(setup_);
  work.set_beside(units_beside(overlap));
  if (overlap.method == OverlapMethod::pipeline) {  // split_overlap_rs of CommOverlapBase: columns of the result
    work.gemm_in_parts(product.m, product.n / overlap.parts, product.k, overlap.parts, Work::Parts::columns, false);
    to.push_back(in_parts(work.segment(what), Segment::Kind::summing, overlap.parts));
    to.back().collective = CollectiveKind::reduce_scatter;
    to.back().size = Bytes(share_of(whole.count(), overlap.parts));
    return;
  }
  work.gemm_in_parts(product.m / t_, product.n, product.k, t_, Work::Parts::rows, false);
  to.push_back(in_parts(work.segment(what), Segment::Kind::scattering, t_));
  to.back().size = Bytes(share_of(whole.count(), t_));
  Work sums(setup_);
  sums.memory_bytes(Bytes(share_of(whole.count(), t_)) * t_ + bytes_of(norm_tokens(), h_, element_));  // reduce_bf16
  to.push_back(sums.segment(summed));
  to.back().join = true;
}

void PassBuilder::in_bulk(std::vector<Segment>& to, std::size_t begin, OverlappedGemm which) const {
  if (!overlaps(which)) return;
  for (std::size_t i = begin; i < to.size(); ++i) {
    if (to[i].kind != Segment::Kind::collective) continue;
    to[i].group = GroupKind::tensor_overlap;
    to[i].beside = true;
    if (to[i].collective != CollectiveKind::all_gather || !gathers_scales()) continue;
    to[i].size = buffered_bytes();
    std::vector<Segment> scales;
    gather_scales(scales);
    to.insert(to.begin() + static_cast<std::ptrdiff_t>(i), scales.front());
    ++i;
  }
}

bool PassBuilder::gathers_scales() const { return setup_.description->precision == "mxfp8"; }

Bytes PassBuilder::buffered_bytes() const {
  return gathers_scales() ? bytes_of(tokens_, h_, element_bytes(setup_.description->precision)) : gathered_bytes(h_);
}

void PassBuilder::gather_scales(std::vector<Segment>& to) const {
  if (!gathers_scales()) return;
  to.push_back(tensor_collective("scales gather", CollectiveKind::all_gather));
  to.back().size = Bytes(scale_bytes(setup_.description->precision, tokens_ * h_));
}

void PassBuilder::set_beside(Work& work, OverlappedGemm which) const {
  if (overlaps(which)) work.set_beside(units_beside(overlap_of(which)));
}

}  // namespace weft
