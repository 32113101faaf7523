// SPDX-License-Identifier: GPL-2.0-only
// An accelerator: peak arithmetic, memory bandwidth, and the time that work takes on it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/documents/spec.hpp"
#include "units/bandwidth.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// How a kernel goes through memory: the curves of achieved bandwidth that a device may have.
enum class Traffic : std::uint8_t {
  elementwise,
  norm,     ///< sums along the hidden dimension, too
  softmax,  ///< sums along rows of scores
};
constexpr std::size_t traffic_count = 3;
/// `elementwise`, `norm` or `softmax`. Throws InputError.
Traffic read_traffic(const Spec& word);

/// A value over a size: points with rising sizes, a straight line over the logarithm of the size in between, the
/// outermost value beyond.
class SizeCurve {
 public:
  struct Point {
    double size, value;
  };
  explicit SizeCurve(std::vector<Point> points) : points_(std::move(points)) {}
  double at(double size) const;

 private:
  std::vector<Point> points_;  // at least one
};

/// How arithmetic is divided among units, and how it combines with the traffic of the same kernel.
struct SharedWork {
  std::int64_t units = 1;  ///< tiles that are worked on at once
  /// A kernel starts at most a block of threads for each unit of the device, which takes one tile after the other. Of
  /// those that find no unit free, because something else runs there, each waits until another one has done all of its
  /// tiles.
  bool persistent = false;
  std::int64_t blocks = 0;  ///< persistent, with fewer units than the device has: as many as it has; else 0
  /// 0: a last wave with few tiles takes as long as a full one; 1: units share the work evenly, a part of a tile each.
  double even_share = 0;
  double memory_fraction = 1;  ///< of the memory bandwidth
  /// Arithmetic a and traffic b take (a^p + b^p)^(1/p): 1 is one after the other; 0 stands for infinity, the larger.
  double sharpness = 0;
  double slowing = 0;  ///< clocks fall in long kernels by themselves: t becomes t (1 + t / 10 ms)^slowing
};

/// GEMMs of one precision.
struct GemmRates {
  struct TileChoice {
    std::int64_t m = 1, n = 1;
    double peak_fraction = 1;  ///< while all units work on such tiles
  };
  std::vector<TileChoice> tiles;  ///< of which a library takes the best for a GEMM, either way round
  /// Instead: fractions of the peak over the widths of tiles, of which a library takes one by a rule (chosen_tile()).
  std::optional<SizeCurve> columns;
  double few_rows = 1;  ///< such fractions, of tiles of GEMMs of up to 64 rows, relative to the others
  /// Loads of rows of tiles beyond the last row of a matrix, which fill in zeros, of all units together; 0: they take
  /// no time.
  Bandwidth padding_bandwidth;
  SharedWork work;
  SizeCurve inner_overhead{
      std::vector<SizeCurve::Point>{{1, 0}}};  ///< beginning and end of a tile, as so much more along k, over k
  /// Rates of the loop along k of GEMMs whose rows in memory are aligned to so many bytes and no more, from few bytes
  /// to many; beyond the last 1. Of elements of 16 bits.
  struct Alignment {
    std::int64_t bytes;
    double rate;
  };
  std::vector<Alignment> alignment;
  double speed_of_rows(std::int64_t bytes) const;
  std::int64_t max_splits = 1;  ///< parts along k, summed up afterwards
  Time split_time;              ///< what summing up takes besides, whatever the size
};

/// A library's kernel for attention without stored scores, forward; causal masks skip whole tiles.
struct AttentionRates {
  Time launch;
  std::int64_t rows = 128;  ///< queries of a tile
  SharedWork work;
  SizeCurve peak_fraction{std::vector<SizeCurve::Point>{{1, 1}}};  ///< over head sizes
  std::int64_t key_overhead = 0;  ///< beginning and end of a tile, as so many more keys
  double alone = 1;               ///< how much faster a tile is that has the device to itself
  /// Rate of the backward pass relative to the forward pass, over the keys that a query sees in the mean.
  SizeCurve backward{std::vector<SizeCurve::Point>{{1, 1}}};
};

/// What kernels reach inside a long step, by their shape (docs/reference/compute_times.md, "Sustained rates"). A job
/// takes these if it names a framework.
struct SustainedRates {
  /// Of the clock, and of what goes with it, what power leaves in a step of many seconds; 1: not known, as `slowing`
  /// says.
  double clock = 1;
  GemmRates gemms;
  /// The rate of GEMMs of fp8 that add up in two levels, relative to that of others.
  double split_accumulation = 1;
  /// The rate of GEMMs of mxfp8 relative to that of those of fp8.
  double mxfp8 = 1;
  std::map<std::string, GemmRates> other_gemms;  ///< by precision, of fp8 and fp8_block if theirs differ
  /// Of experts' grouped GEMMs, in 16 bits and in fp8_block; as single ones if absent.
  std::optional<GemmRates> grouped, grouped_blocks;
  /// By library, the first one for frameworks that name none; empty: fused_fraction.
  std::vector<std::pair<std::string, AttentionRates>> attention;
  std::array<std::optional<SizeCurve>, traffic_count> bandwidth;  ///< by Traffic; memory_fraction if absent
  Time launch;
  /// Of the units of GEMMs, those that kernels of collectives take while they are under way; 0: not known.
  std::int64_t collective_units = 0;
  Bandwidth collective_bandwidth;  ///< of the memory, that they take; 0: not known
};

/// The content of a device file (workloads/devices/*.yaml).
struct Device {
  std::string name;
  std::map<std::string, double> peak;  ///< precision -> dense FLOP/s
  double efficiency = 1;  ///< fraction of the peak for roofline_time(), (0, 1]; gemm_fraction if the file lacks it
  Bandwidth memory_bandwidth;
  Bytes memory;
  /// GEMMs of fp8 read both factors along k, so that those for gradients need transposed copies.
  bool fp8_transposes = true;
  Bandwidth host_link;              ///< to the memory of the host, each way; 0: not known
  Bandwidth host_memory_bandwidth;  ///< a device's share of it, for an optimizer that runs on the host; 0: not known
  /// How many times as long its host takes for a launch as the one of a framework's catalogue, [0.01, 100].
  double host_slowdown = 1;

  // For kernel_time(), each in (0, 1].
  double gemm_fraction = 1;         ///< of the peak in GEMMs, while all units work; `efficiency` if absent
  double gemm_memory_fraction = 1;  ///< of the memory bandwidth in GEMMs
  double memory_fraction = 1;       ///< of the memory bandwidth in all other kernels
  double fused_fraction = 1;        ///< of the peak in kernels known by flops and bytes; gemm_fraction if absent
  Time launch;                      ///< a kernel's share of getting started, in a queue of kernels
  /// How GEMMs are cut up; without it any size is as efficient as any other.
  struct Tiles {
    std::int64_t units = 1;  ///< tiles that are worked on at once: streaming multiprocessors
    std::int64_t m = 1;
    std::int64_t n = 1;
  };
  std::optional<Tiles> tiles;
  std::optional<SustainedRates> sustained;
  bool in_a_step = false;   ///< kernel_time() goes by `sustained`; set by who knows that the kernels are part of a step
  bool one_by_one = false;  ///< in_a_step, but of kernels that have rested before, as benchmarks measure them

  /// By which factor, at least 1, kernels are slower while collectives or sends of the device are under way.
  double slowdown_while_communicating = 1;
};

/// Bytes of an element of a precision: bf16, fp16 2; fp32, tf32 4; fp8, fp8_block, mxfp8 1. Scales are not counted.
std::int64_t element_bytes(const std::string& precision);
std::vector<std::string> precision_names();
/// fp8, fp8_block or mxfp8.
bool is_fp8(const std::string& precision);
/// fp8_block or mxfp8. Numbers have scales along rows, 4 B for each 128 (DeepSeek-AI, arXiv:2412.19437, 3.3) or 1 B for
/// each 32 (OCP Microscaling Formats, v1.0, 5.2), and those along columns are others, so that both are kept.
bool is_scaled_in_blocks(const std::string& precision);
/// The scales of so many elements along rows.
std::int64_t scale_bytes(const std::string& precision, std::int64_t elements);
/// Of GEMMs: precision_names(), and those that have scales beside the numbers.
std::vector<std::string> gemm_precision_names();

/// Limits of a factor by which compute is slower beside communication.
constexpr double max_slowdown = 100;

/// By which factor kernels of a device take longer beside communication, of which nothing else is known:
/// `slowdown_while_communicating`; in a step at least units / (units - collective_units), which is that of kernels that
/// wait for arithmetic, and b / (b - collective_bandwidth), of kernels that wait for memory of bandwidth b.
double slowdown_beside_communication(const Device& device);

/// What kernels of a step have of a device while its collectives are under way: units, and with them their share of the
/// arithmetic, and bandwidth are those that collectives leave. Nothing if the device does not say what they take, or if
/// its kernels are no part of a step.
std::optional<Device> beside_communication(const Device& device);
/// The same with another number of units taken. Not `waits`: a persistent kernel starts as many blocks as it finds
/// units free, so that none waits.
std::optional<Device> beside_communication(const Device& device, std::int64_t units, bool waits);
/// A device in a step whose kernels leave so many units free, whatever runs beside them.
Device with_units_left(const Device& device, std::int64_t units);

/// Reads a whole device file. Throws InputError.
Device read_device(const Spec& spec);

/// "989.4 TFLOP/s" -> 9.894e14. Units: GFLOP/s, TFLOP/s, PFLOP/s. Throws InputError at `value`.
double read_flops(const Spec& value);

/// Without a kernel's shape: roofline (Williams, Waterman, Patterson, doi:10.1145/1498765.1498785): the larger of flops
/// / (peak * efficiency) and traffic / memory bandwidth, rounded to ps, at most 2^62 ps. `precision` is in device.peak.
Time roofline_time(const Device& device, const std::string& precision, double flops, Bytes traffic);

}  // namespace weft
