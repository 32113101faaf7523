// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/pass/pass_builder.hpp"

namespace weft {

PassBuilder::PassBuilder(const PassSetup& setup)
    : setup_(setup),
      plan_(setup.description->parallel),
      tokens_(tokens_per_rank(*setup.description)),
      t_(plan_.tensor),
      c_(plan_.context),
      h_(setup.description->model.hidden),
      element_(activation_bytes(*setup.description)) {}

KernelUnits PassBuilder::common_units() const { return units_of_width(h_); }

KernelUnits PassBuilder::units_of_width(std::int64_t width) const {
  KernelUnits units{};
  unit(units, KernelUnit::residual) = norm_tokens() * width;
  unit(units, KernelUnit::hidden) = tokens_ * width;
  unit(units, KernelUnit::tensors) = 1;
  return units;
}

std::int64_t PassBuilder::norm_tokens() const { return plan_.sequence ? share_of(tokens_, t_) : tokens_; }

Work PassBuilder::unquantised() const { return {setup_, activation_precision(*setup_.description)}; }

void PassBuilder::add_small(KernelPlace place, bool backward, const KernelUnits& units, std::string_view what,
                            std::vector<Segment>& to, MlpKind mlp) const {
  Work work(setup_);
  work.small(place, backward, units, mlp);
  Segment segment = work.segment(what);
  if (!segment.kernels.empty()) to.push_back(segment);
}

Segment PassBuilder::tensor_collective(std::string_view what, CollectiveKind kind, std::int64_t width) const {
  Segment segment;
  segment.kind = Segment::Kind::collective;
  segment.what = what;
  segment.stream = Stream::tensor;
  segment.group = GroupKind::tensor;
  segment.collective = kind;
  segment.size = bytes_of(tokens_, width > 0 ? width : h_, element_);
  return segment;
}

void PassBuilder::gather(std::vector<Segment>& to, std::string_view what, bool beside, std::int64_t width) const {
  if (width == 0) reduce_magnitude(to);
  gather_copies(to, what, 1, beside, width);
}

void PassBuilder::gather_gradient(std::vector<Segment>& to, std::string_view what) const {
  reduce_magnitude(to);
  gather_copies(to, what, is_scaled_in_blocks(setup_.description->precision) ? 2 : 1, false, 0);
}

void PassBuilder::reduce_magnitude(std::vector<Segment>& to) const {
  const TrainingDescription& d = *setup_.description;
  if (t_ == 1 || !plan_.sequence || d.precision != "fp8" || d.fp8_scaling != Fp8Scaling::current) return;
  to.push_back(tensor_collective("largest magnitude", CollectiveKind::all_reduce));
  to.back().size = Bytes(4);
}

void PassBuilder::gather_copies(std::vector<Segment>& to, std::string_view what, std::int64_t copies, bool beside,
                                std::int64_t width) const {
  if (t_ == 1 || !plan_.sequence) return;
  if (width == 0) width = h_;
  to.push_back(tensor_collective(what, CollectiveKind::all_gather));
  to.back().size = gathered_bytes(width) * copies;
  to.back().beside = beside;
  add_small(KernelPlace::tensor_gathered, false, units_of_width(width), "copies of what was gathered", to);
}

Bytes PassBuilder::gathered_bytes(std::int64_t width) const {
  const std::string& precision = setup_.description->precision;
  return bytes_of(tokens_, width, element_bytes(precision)) + Bytes(scale_bytes(precision, tokens_ * width));
}

void PassBuilder::gather_again(std::vector<Segment>& to, std::string_view what, bool weights_too,
                               std::int64_t width) const {
  if (!setup_.kernels().keeps_gathered) gather_copies(to, what, 1, overlaps(weights_too), width);
}

void PassBuilder::sum(std::vector<Segment>& to, std::string_view what, std::int64_t width) const {
  if (t_ == 1) return;
  if (width == 0) width = h_;
  if (plan_.sequence)
    add_small(KernelPlace::tensor_scattered, false, units_of_width(width), "copies of what is scattered", to);
  to.push_back(
      tensor_collective(what, plan_.sequence ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, width));
}

}  // namespace weft
