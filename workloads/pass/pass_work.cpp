// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/pass/pass_work.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "workloads/reading/reading.hpp"

namespace weft {

using Wide = unsigned __int128;

Work::Work(const PassSetup& setup) : Work(setup, setup.description->precision) {}

Work::Work(const PassSetup& setup, std::string gemms)
    : setup_(setup), gemms_(std::move(gemms)), activations_(activation_precision(*setup.description)) {}

void Work::add_gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count, const GemmKind& kind) {
  Kernel kernel;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.count = count;
  kernel.grouped = kind.grouped;
  constexpr std::int64_t part_streams = 3;  // Transformer Engine, pytorch/module/base.py, _NUM_MAX_UB_STREAMS
  if (kind.grouped)
    kernel.streams = kind.parts == Parts::none ? setup_.kernels().expert_streams : std::min(part_streams, count);
  kernel.rows_inner = kind.rows_inner;
  kernel.along_m = kind.along_m;
  kernel.split_accumulation = kind.gradient && setup_.kernels().split_accumulation;
  kernel.flops =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(count);
  kernel.precision = gemms_;
  if (gemms_ != activations_ || kind.more > 0) {
    const auto read = static_cast<Wide>(m + n) * static_cast<Wide>(k) * static_cast<Wide>(element_bytes(gemms_));
    const auto written =
        static_cast<Wide>(m) * static_cast<Wide>(n) * static_cast<Wide>(element_bytes(activations_) + kind.more);
    kernel.bytes = saturated((read + written) * static_cast<Wide>(count)).count();
  }
  if (gemms_ == "mxfp8" && setup_.kernels().swizzles_scales) {
    swizzle(m, k, kind.parts == Parts::columns ? 1 : count);  // all parts of columns read the same rows
    swizzle(n, k, kind.parts == Parts::rows ? 1 : count);
  }
  std::string name = fmt::format("GEMM {} x {} x {}", m, n, k);
  if (count > 1) name += fmt::format(", {} of them", count);
  add(kernel, name, kernel.flops);
}

void Work::gemm_in_parts(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count, Parts parts,
                         bool gradient) {
  add_gemm(m, n, k, count, {.grouped = true, .gradient = gradient, .parts = parts});
}

void Work::swizzle(std::int64_t side, std::int64_t k, std::int64_t count) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::memory;
  const auto scales = static_cast<Wide>(side) * static_cast<Wide>(k) / 32 * static_cast<Wide>(count);
  kernel.bytes = saturated(2 * scales).count();  // read and written
  kernel.precision = activations_;
  add(kernel, "scales for matrix units", 0);
}

std::int64_t Work::accumulated_bytes() const {
  return setup_.kernels().accumulation_of(!narrow_gradients(*setup_.description)).in_gemms;
}

void Work::memory(std::int64_t elements) { memory_bytes(bytes_of(elements, 1, element_bytes(activations_))); }

void Work::memory_bytes(Bytes bytes) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::memory;
  kernel.bytes = bytes.count();
  kernel.precision = activations_;
  add(kernel, "memory", 0);
}

void Work::attention(Kernel kernel) {
  kernel.kind = Kernel::Kind::attention;
  kernel.precision = activations_;
  kernel.library = setup_.kernels().attention_library;
  add(kernel, "fused attention", kernel.flops);
}

namespace {

bool holds(const PassSetup& setup, KernelWhen when, MlpKind mlp) {
  const TrainingDescription& description = *setup.description;
  switch (when) {
    case KernelWhen::gated:
      return mlp.gated;
    case KernelWhen::plain:
      return !mlp.gated;
    case KernelWhen::dense:
      return mlp.dense;
    case KernelWhen::experts:
      return mlp.experts;
    case KernelWhen::no_experts:
      return !mlp.experts;
    case KernelWhen::transposed:
      return setup.times->device().fp8_transposes;
    case KernelWhen::untransposed:
      return !setup.times->device().fp8_transposes;
    case KernelWhen::learned_positions:
      return description.model.learned_positions;
    case KernelWhen::no_positions:
      return !description.model.learned_positions;
    case KernelWhen::grouped: {
      const auto& shapes = description.model.shapes;
      return !shapes.empty() && shapes.front().attention.kv_heads < shapes.front().attention.heads;
    }
    case KernelWhen::head_norms: {
      const auto& shapes = description.model.shapes;
      const auto is_one = [](const Tensor& tensor) { return tensor.name == "self_attn.q_norm.weight"; };
      return !shapes.empty() && std::any_of(shapes.front().tensors.begin(), shapes.front().tensors.end(), is_one);
    }
    case KernelWhen::fp8:
      return description.precision == "fp8";
    case KernelWhen::delayed:
      return description.precision == "fp8" && description.fp8_scaling == Fp8Scaling::delayed;
    case KernelWhen::current:
      return description.precision == "fp8" && description.fp8_scaling == Fp8Scaling::current;
    case KernelWhen::fp8_block:
      return description.precision == "fp8_block";
    case KernelWhen::mxfp8:
      return description.precision == "mxfp8";
    case KernelWhen::fp8_scaled:
      return is_scaled_in_blocks(description.precision);
    case KernelWhen::no_fp8:
      return !is_fp8(description.precision);
    case KernelWhen::sequence:
      return description.parallel.sequence && description.parallel.tensor > 1;
    case KernelWhen::no_sequence:
      return !description.parallel.sequence || description.parallel.tensor == 1;
    case KernelWhen::fused_router:
      return description.fused_router;
    case KernelWhen::separate_router:
      return !description.fused_router;
    case KernelWhen::fused_loss:
      return description.fused_loss;
    case KernelWhen::separate_loss:
      return !description.fused_loss;
    case KernelWhen::fused_permutation:
      return description.fused_permutation;
    case KernelWhen::separate_permutation:
      return !description.fused_permutation;
    case KernelWhen::several_here:
      return mlp.several;
    case KernelWhen::experts_in_turn:
      return setup.kernels().expert_streams == 1;
    case KernelWhen::padded:
      return is_fp8(description.precision) && description.padded_copies;
    case KernelWhen::wide_gradients:
      return !narrow_gradients(description);
    case KernelWhen::narrow_gradients:
      return narrow_gradients(description);
  }
  return true;
}

}  // namespace

bool has_kernel(const PassSetup& setup, const SmallKernel& kernel, MlpKind mlp) {
  return std::all_of(kernel.when.begin(), kernel.when.end(), [&](KernelWhen when) { return holds(setup, when, mlp); });
}

void Work::small(KernelPlace place, bool backward, const KernelUnits& units, MlpKind mlp) {
  for (const SmallKernel& one : setup_.kernels().at(place, backward)) {
    if (!has_kernel(setup_, one, mlp)) continue;
    const auto tensors = one.each_tensor ? units[static_cast<std::size_t>(KernelUnit::tensors)] : 1;
    const auto count = [&](KernelUnit unit) { return share_of(units[static_cast<std::size_t>(unit)], tensors); };
    Kernel kernel = kernel_of(one, count(one.unit), activations_);
    for (const SmallKernel::More& more : one.also)
      kernel.bytes = saturated(static_cast<Wide>(kernel.bytes) +
                               static_cast<Wide>(count(more.unit)) * static_cast<Wide>(more.bytes))
                         .count();
    for (std::int64_t tensor = 0; tensor < tensors; ++tensor)
      add(kernel, one.name, one.flops * static_cast<double>(count(one.unit)));
  }
}

void Work::small(const std::string& name, const SmallKernel& one, std::int64_t units) {
  add(kernel_of(one, units, activations_), name, one.flops * static_cast<double>(units));
}

namespace {

/// Scales in fp32, for each 128 units and for each 128 x 128, or four of a byte; the last ones may be incomplete.
Wide scales_of(const SmallKernel& small, std::int64_t units) {
  constexpr std::int64_t side = 128;
  const auto scales = [units](std::int64_t elements, std::int64_t each) {
    return static_cast<Wide>((units + elements - 1) / elements) * static_cast<Wide>(each);
  };
  return 4 * (scales(side, small.row_scales) + scales(side * side, small.block_scales));
}

}  // namespace

Kernel kernel_of(const SmallKernel& small, std::int64_t units, const std::string& precision) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::memory;
  const auto each = static_cast<Wide>(small.bytes + small.elements * element_bytes(precision));
  kernel.bytes = saturated(static_cast<Wide>(units) * each + scales_of(small, units)).count();
  kernel.precision = precision;
  kernel.traffic = small.traffic;
  return kernel;
}

Segment Work::segment(std::string_view what) const {
  Segment result;
  result.what = what;
  result.duration = time_;
  result.slowed = slowed_;
  result.flops = flops_;
  result.kernels = kernels_;
  std::vector<KernelUse> grouped;
  std::copy_if(kernels_.begin(), kernels_.end(), std::back_inserter(grouped),
               [](const KernelUse& use) { return use.kernel.grouped; });
  if (!grouped.empty()) result.grouped = std::make_shared<const std::vector<KernelUse>>(std::move(grouped));
  return result;
}

void Work::add(const Kernel& kernel, const std::string& name, double flops) {
  const Time time = beside_ ? setup_.times->of(kernel, *beside_) : setup_.times->of(kernel);
  time_ += time;
  slowed_ += beside_ ? setup_.times->beside(kernel, *beside_) : setup_.times->beside(kernel);
  flops_ += kernel.flops;  // of GEMMs: a model's FLOPs do not include those of small kernels
  kernels_.push_back({name, kernel, flops, time});
}

}  // namespace weft
