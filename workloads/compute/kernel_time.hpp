// SPDX-License-Identifier: GPL-2.0-only
// How long one kernel takes on a device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "units/time.hpp"
#include "workloads/reading/device.hpp"

namespace weft {

/// What one kernel does.
struct Kernel {
  enum class Kind : std::uint8_t {
    gemm,    ///< `count` GEMMs of m x k by k x n in one kernel
    memory,  ///< goes through `bytes` of device memory; `flops` if it also computes much, as fused attention does
    /// Fused attention of `count` heads in all: m queries and n keys each, of k elements. `bytes` and `flops` as
    /// `memory`, flops of the scores that a mask leaves.
    attention,
  };
  Kind kind = Kind::gemm;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t count = 1;
  std::int64_t bytes = 0;  ///< read and written; gemm: 0 means each matrix once, in `precision`
  double flops = 0;        ///< memory: arithmetic of matrix units; gemm: always 2 m n k count
  std::string precision = "bf16";
  Traffic traffic = Traffic::elementwise;  ///< memory
  // attention
  bool causal = false;
  bool backward = false;
  std::string library{};  ///< of the device's; "": its first one
  // gemm
  bool grouped = false;      ///< of experts, each with rows of its own, all in one kernel
  std::int64_t streams = 0;  ///< grouped, but a kernel for each expert, in so many streams side by side; 0: one kernel
  /// grouped: rows of each of the `count` experts, 0 or more, of which m is the mean; empty: m for each. Experts
  /// without rows take no time, and their weights are not read.
  std::vector<std::int64_t> rows{};
  bool rows_inner = false;  ///< grouped: rows are not m but k, as in gradients of weights
  /// The first factor lies along m in memory, as in gradients of weights; else along k. The second one and the result
  /// lie along n, or in other words, k of a gradient of weights and m of all others are no length of a row in memory.
  bool along_m = false;
  /// fp8: sums of matrix units, which keep few bits, are added to sums of 32 bits every so often.
  bool split_accumulation = false;
};

/// What the host launches for it: a kernel for each expert where the framework calls the library for each.
std::int64_t launches_of(const Kernel& kernel);

/// The largest power of two of bytes that divides the lengths of rows of a GEMM's matrices in memory.
std::int64_t row_alignment(const Kernel& kernel);

/// Bytes that a kernel reads and writes.
double traffic_of(const Kernel& kernel);

/// A grouped GEMM whose experts have so many rows instead of as many for each; its bytes, if it has any, go with them.
/// `rows` has kernel.count entries.
Kernel with_rows(Kernel kernel, std::vector<std::int64_t> rows);

/// Time of a kernel, rounded to ps, at most 2^62 ps; `precision` is in device.peak.
///
/// memory: device.launch + the larger of bytes / (memory bandwidth * memory_fraction) and
/// flops / (peak * fused_fraction).
///
/// gemm without device.tiles: device.launch + the larger of 2 m n k count / (peak * gemm_fraction) and
/// bytes / (memory bandwidth * gemm_memory_fraction).
///
/// gemm with device.tiles: the result is cut into tiles, each of which one of the device's units works on, as many at
/// a time as there are units: a last wave with few tiles takes as long as a full one, and a tile at the edge as long as
/// a whole one (NVIDIA, "Matrix Multiplication Background User's Guide", DU-09799-001, chapter 3). Arithmetic:
/// ceil(ceil(m / tile_m) * ceil(n / tile_n) * count / units) * 2 tile_m tile_n k * units / (peak * gemm_fraction).
///
/// attention: as memory.
///
/// With device.in_a_step and device.sustained: the same, for a GEMM the least over tiles and parts along k, each
/// part of which writes and reads its sums in 32 bits besides; arithmetic with k / parts + inner_overhead along k and
/// the tile's own peak_fraction; for other kernels the bandwidth that the curve of their kind has at their bytes.
/// Grouped ones of bf16 and fp16 have device.sustained->grouped, those of fp8_block ->grouped_blocks, if the device has
/// it; in `streams` each expert has the tile and parts of a single GEMM of the mean rows, all go in waves together, and
/// it takes no less than the sum of single GEMMs over the number of streams. With `rows` the tiles of each expert are
/// counted, all go in waves together, and each expert with rows has its weights read once. A persistent GEMM beside
/// collectives (SharedWork::blocks) has the tiles that it has alone, and its arithmetic takes twice as long if it has
/// more tiles than units are left. GEMMs of fp8 with kernel.split_accumulation have that part of the rate of arithmetic
/// that device.sustained says. Attention with device.sustained->attention: tiles of `rows` queries, each with the
/// keys that a causal mask leaves it in whole blocks; units share the tiles out, but one tile takes its time.
/// Arithmetic of both goes by the clock that lasts, or with device.one_by_one slows down in long kernels.
/// The loop along k of GEMMs whose rows in memory are aligned to few bytes has that part of the rate which the rates
/// say (GemmRates::alignment). docs/reference/compute_times.md has the formulas.
Time kernel_time(const Device& device, const Kernel& kernel);

}  // namespace weft
