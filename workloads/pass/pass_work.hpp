// SPDX-License-Identifier: GPL-2.0-only
// Kernels of a piece of a pass, summed up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "workloads/compute/kernel_time.hpp"
#include "workloads/pass/block_passes.hpp"

namespace weft {

/// Time and FLOPs of the kernels of one segment.
class Work {
 public:
  /// GEMMs have the job's precision, or another one. All else has activation_precision(), also what GEMMs give.
  explicit Work(const PassSetup& setup);
  Work(const PassSetup& setup, std::string gemms);

  /// `count` GEMMs of m x k by k x n; `grouped`: of experts.
  void gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count = 1, bool grouped = false) {
    add_gemm(m, n, k, count, {.grouped = grouped});
  }
  /// The same, whose first factor lies along m in memory.
  void turned_gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count) {
    add_gemm(m, n, k, count, {.along_m = true});
  }
  /// The same as gemm(), whose result has `more` bytes of each element beside those of activations.
  void wide_gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t more, bool along_m = false) {
    add_gemm(m, n, k, 1, {.more = more, .along_m = along_m});
  }
  /// A GEMM that is called for each of `count` parts of its rows or columns, in streams whose kernels fill each other's
  /// last waves up. m and n are those of a part.
  enum class Parts : std::uint8_t { none, rows, columns };
  void gemm_in_parts(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count, Parts parts, bool gradient);
  /// What runs beside the kernels that are added from now on, if not NCCL.
  void set_beside(const UnitsBeside& communication) { beside_ = communication; }
  /// The GEMM that is the gradient of an input.
  void input_gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count = 1, bool grouped = false) {
    add_gemm(m, n, k, count, {.grouped = grouped, .gradient = true});
  }
  /// The GEMM that is the gradient of a weight, which may be added to what is there; k are an expert's rows.
  void weight_gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count = 1, bool grouped = false) {
    add_gemm(
        m, n, k, count,
        {.more = accumulated_bytes(), .grouped = grouped, .rows_inner = grouped, .along_m = true, .gradient = true});
  }
  /// The small kernels of a place.
  void small(const std::string& name, const SmallKernel& one, std::int64_t units);
  void small(KernelPlace place, bool backward, const KernelUnits& units, MlpKind mlp = {});
  /// A kernel that reads and writes `elements` in all and computes next to nothing.
  void memory(std::int64_t elements);
  void memory_bytes(Bytes bytes);
  /// Fused attention, of which precision and library are filled in.
  void attention(Kernel kernel);
  Segment segment(std::string_view what) const;

 private:
  struct GemmKind {
    std::int64_t more = 0;  ///< bytes of each element of the result beside reading the factors and writing it
    bool grouped = false, rows_inner = false, along_m = false, gradient = false;
    Parts parts = Parts::none;
  };
  /// Of a parameter, beside writing the result of the GEMM for its gradient.
  std::int64_t accumulated_bytes() const;
  void add_gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count, const GemmKind& kind);
  /// Scales of `count` factors of side x k, in blocks of 32, as matrix units read them.
  void swizzle(std::int64_t side, std::int64_t k, std::int64_t count);
  void add(const Kernel& kernel, const std::string& name, double flops);
  const PassSetup& setup_;
  std::string gemms_, activations_;  // precisions
  std::optional<UnitsBeside> beside_;
  Time time_, slowed_;
  double flops_ = 0;
  std::vector<KernelUse> kernels_;
};

/// Whether a job has a kernel at a place of such an MLP.
bool has_kernel(const PassSetup& setup, const SmallKernel& kernel, MlpKind mlp = {});

/// A small kernel over so many units.
Kernel kernel_of(const SmallKernel& small, std::int64_t units, const std::string& precision);

/// Rows x columns times inner: a GEMM and those for the gradients of its inputs.
struct Gemm {
  std::int64_t rows, columns, inner;
  std::int64_t count = 1;
  bool grouped = false;  ///< of experts
  void forward(Work& work) const { work.gemm(rows, columns, inner, count, grouped); }
  void input_gradient(Work& work) const { work.input_gemm(rows, inner, columns, count, grouped); }
  void weight_gradient(Work& work) const { work.weight_gemm(inner, columns, rows, count, grouped); }
};

}  // namespace weft
