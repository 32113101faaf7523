// SPDX-License-Identifier: GPL-2.0-only
// Kernels of a piece of a pass, summed up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "workloads/block_passes.hpp"
#include "workloads/kernel_time.hpp"

namespace weft {

/// Time and FLOPs of the kernels of one segment.
class Work {
 public:
  /// Products have the job's precision, or another one. All else has activation_precision(), also what products give.
  explicit Work(const PassSetup& setup);
  Work(const PassSetup& setup, std::string products);

  /// `count` products of m x k by k x n.
  void matmul(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count = 1);
  /// A kernel that reads and writes `elements` in all and computes next to nothing.
  void memory(std::int64_t elements);
  void memory_bytes(Bytes bytes, double flops = 0);
  Segment segment(std::string_view what) const;

 private:
  void add(const Kernel& kernel);
  const PassSetup& setup_;
  std::string products_, activations_;  // precisions
  Time time_;
  double flops_ = 0;
};

/// Rows x columns times inner: a product and those for the gradients of its inputs.
struct Product {
  std::int64_t rows, columns, inner;
  std::int64_t count = 1;
  void forward(Work& work) const { work.matmul(rows, columns, inner, count); }
  void input_gradient(Work& work) const { work.matmul(rows, inner, columns, count); }
  void weight_gradient(Work& work) const { work.matmul(inner, columns, rows, count); }
};

}  // namespace weft
