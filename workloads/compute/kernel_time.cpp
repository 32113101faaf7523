// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/compute/kernel_time.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "support/basics/contract.hpp"

namespace weft {

namespace {

/// Experts of a grouped GEMM that have rows, or all GEMMs of a kernel.
double groups_of(const Kernel& kernel) {
  if (kernel.rows.empty()) return static_cast<double>(kernel.count);
  return static_cast<double>(
      std::count_if(kernel.rows.begin(), kernel.rows.end(), [](std::int64_t rows) { return rows > 0; }));
}

/// The rows of all of them together.
double all_rows(const Kernel& kernel) {
  if (!kernel.rows.empty())
    return static_cast<double>(std::accumulate(kernel.rows.begin(), kernel.rows.end(), std::int64_t{0}));
  return static_cast<double>(kernel.rows_inner ? kernel.k : kernel.m) * static_cast<double>(kernel.count);
}

/// Of kernel.bytes, those that are proportional to rows. Forward an expert's weights are read however few its rows, and
/// all else is proportional to rows; for a gradient of weights the reads are proportional to rows, the writes are not.
double bytes_by_rows(const Kernel& kernel) {
  const auto n = static_cast<double>(kernel.n), element = static_cast<double>(element_bytes(kernel.precision));
  if (kernel.rows_inner) return all_rows(kernel) * (static_cast<double>(kernel.m) + n) * element;
  const double weights = groups_of(kernel) * static_cast<double>(kernel.k) * n * element;
  return std::max(0.0, static_cast<double>(kernel.bytes) - weights);
}

}  // namespace

std::int64_t launches_of(const Kernel& kernel) { return kernel.grouped && kernel.streams > 0 ? kernel.count : 1; }

std::int64_t row_alignment(const Kernel& kernel) {
  const auto lengths = static_cast<std::uint64_t>(std::gcd(kernel.along_m ? kernel.m : kernel.k, kernel.n));
  const std::int64_t elements = std::int64_t{1} << std::countr_zero(lengths);
  return elements * element_bytes(kernel.precision);
}

double traffic_of(const Kernel& kernel) {
  if (kernel.bytes > 0 || kernel.kind != Kernel::Kind::gemm) return static_cast<double>(kernel.bytes);
  const auto n = static_cast<double>(kernel.n);
  const auto other = static_cast<double>(kernel.rows_inner ? kernel.m : kernel.k);
  return (all_rows(kernel) * (other + n) + groups_of(kernel) * other * n) *
         static_cast<double>(element_bytes(kernel.precision));
}

Kernel with_rows(Kernel kernel, std::vector<std::int64_t> rows) {
  WEFT_EXPECT(kernel.grouped && rows.size() == static_cast<std::size_t>(kernel.count), "rows of {} of {} experts",
              rows.size(), kernel.count);
  const double even_rows = all_rows(kernel), even_groups = groups_of(kernel);
  const double bytes = static_cast<double>(kernel.bytes), by_rows = bytes_by_rows(kernel);
  kernel.rows = std::move(rows);
  if (kernel.bytes == 0) return kernel;
  kernel.bytes =
      std::llround((bytes - by_rows) * groups_of(kernel) / even_groups + by_rows * all_rows(kernel) / even_rows);
  return kernel;
}

namespace {

double seconds_of_traffic(const Device& device, double bytes, double fraction) {
  return bytes * 8 / (static_cast<double>(device.memory_bandwidth.bps()) * fraction);
}

double pieces(std::int64_t length, std::int64_t piece) { return static_cast<double>((length - 1) / piece + 1); }

/// Tiles of all GEMMs of a kernel; each expert's rows fill whole ones.
double tiles_of(const Kernel& kernel, std::int64_t tile_m, std::int64_t tile_n) {
  double along_rows = 0;
  if (kernel.rows.empty() || kernel.rows_inner) {
    along_rows = pieces(kernel.m, tile_m) * groups_of(kernel);
  } else {
    for (const std::int64_t rows : kernel.rows) along_rows += rows > 0 ? pieces(rows, tile_m) : 0;
  }
  return along_rows * pieces(kernel.n, tile_n);
}

double gemm_flops(const Device& device, const Kernel& kernel) {
  const auto product = [](std::int64_t a, std::int64_t b) { return static_cast<double>(a) * static_cast<double>(b); };
  if (!device.tiles && kernel.rows.empty()) return 2 * product(kernel.m, kernel.n) * product(kernel.k, kernel.count);
  if (!device.tiles) return 2 * all_rows(kernel) * product(kernel.rows_inner ? kernel.m : kernel.k, kernel.n);
  const Device::Tiles& tiles = *device.tiles;
  const double waves = std::ceil(tiles_of(kernel, tiles.m, tiles.n) / static_cast<double>(tiles.units));
  const double inner = kernel.rows_inner ? all_rows(kernel) / groups_of(kernel) : static_cast<double>(kernel.k);
  return 2 * waves * static_cast<double>(tiles.units) * product(tiles.m, tiles.n) * inner;
}

/// With all units of the device, as a library reckons, which knows nothing of what else runs there.
SharedWork on_the_whole_device(SharedWork work) {
  if (work.blocks > 0) work.units = std::exchange(work.blocks, 0);
  return work;
}

/// Tiles that would take as long if all units were busy all the time.
double full_tiles(const SharedWork& work, double tiles) {
  const auto units = static_cast<double>(work.units);
  if (work.blocks > 0) {  // as on the whole device, once for blocks that find a unit and once more for those that wait
    const auto blocks = static_cast<double>(work.blocks);
    return full_tiles(on_the_whole_device(work), tiles) * units / blocks * std::ceil(std::min(tiles, blocks) / units);
  }
  const double waves = tiles / units;
  return ((1 - work.even_share) * std::ceil(waves) + work.even_share * std::max(waves, 1.0)) * units;
}

double together(const SharedWork& work, double arithmetic, double traffic) {
  if (work.sharpness == 0) return std::max(arithmetic, traffic);
  // Relative to the larger one, so that powers of small numbers stay numbers.
  const double max = std::max(arithmetic, traffic);
  const double min = std::min(arithmetic, traffic);
  return max * std::pow(1 + std::pow(min / max, work.sharpness), 1 / work.sharpness);
}

double clock_of(const Device& device) { return device.one_by_one ? 1 : device.sustained->clock; }

/// What the rate of GEMMs of a precision is, relative to the rate that was measured. GEMMs of fp8 in blocks always add
/// up in two levels, and their rates were measured so. Matrix units that scale blocks of 32 by themselves do not need
/// that (NVIDIA, Transformer Engine, common/recipe/__init__.py: of all recipes, MXFP8BlockScaling has no choice).
double relative_rate(const Device& device, const Kernel& kernel) {
  if (kernel.precision == "mxfp8") return device.sustained->mxfp8;
  return kernel.split_accumulation && kernel.precision == "fp8" ? device.sustained->split_accumulation : 1;
}

double slowed(const Device& device, const SharedWork& work, double seconds) {
  constexpr double scale = 10e-3;
  const bool lasts = !device.one_by_one && device.sustained->clock < 1;  // then the clock has fallen already
  return work.slowing == 0 || lasts ? seconds : seconds * std::pow(1 + seconds / scale, work.slowing);
}

/// The mean length of a tile along k, its beginning and end included; longer where loads of narrow pieces slow its
/// loop.
double inner_length(const GemmRates& rates, const Kernel& kernel, double parts) {
  const bool of_16_bits = element_bytes(kernel.precision) == 2;
  const double speed = of_16_bits ? rates.speed_of_rows(row_alignment(kernel)) : 1;
  const auto whole = [&](std::int64_t k) {
    const double length = static_cast<double>(k) / parts;
    return length / speed + rates.inner_overhead.at(length);
  };
  if (kernel.rows.empty() || !kernel.rows_inner) return whole(kernel.k);
  double sum = 0;
  for (const std::int64_t rows : kernel.rows) sum += rows > 0 ? whole(rows) : 0;
  return sum / groups_of(kernel);
}

/// Seconds in which the loads of rows that fill the last tiles up go by. Experts' kernels load the rows of the next
/// expert there. Two neighbours along n share their loads by multicast if there are 1,024 rows and more and an even
/// number of whole tiles (NVIDIA/TensorRT-LLM, commit 3aa6b11d, cpp/include/tensorrt_llm/deep_gemm/jit_utils.cuh,
/// get_best_gemm_config).
double seconds_of_padding(const GemmRates& rates, const Kernel& kernel, const GemmRates::TileChoice& tile) {
  const bool one_kernel = kernel.streams == 0;
  if (rates.padding_bandwidth == Bandwidth() || (kernel.grouped && one_kernel)) return 0;
  const auto filled = [&](std::int64_t rows) {
    return rows == 0 ? 0 : pieces(rows, tile.m) * static_cast<double>(tile.m) - static_cast<double>(rows);
  };
  double rows = 0;
  if (kernel.rows.empty() || kernel.rows_inner) {
    rows = filled(kernel.m) * groups_of(kernel);
  } else {
    for (const std::int64_t expert : kernel.rows) rows += filled(expert);
  }
  const bool shared = kernel.m >= 1024 && (kernel.count == 1 || !one_kernel) && kernel.n % (2 * tile.n) == 0;
  const double loads = rows * pieces(kernel.n, tile.n) / (shared ? 2 : 1);
  const double bytes = loads * static_cast<double>(kernel.k) * static_cast<double>(element_bytes(kernel.precision));
  return bytes * 8 / static_cast<double>(rates.padding_bandwidth.bps());
}

/// Seconds of a GEMM cut into such tiles and, along k, into `splits` parts.
double seconds_in_tiles(const Device& device, const GemmRates& rates, const Kernel& kernel,
                        const GemmRates::TileChoice& tile, std::int64_t splits) {
  const auto parts = static_cast<double>(splits);
  const double tiles = tiles_of(kernel, tile.m, tile.n) * parts;
  const double flops = 2 * full_tiles(rates.work, tiles) * static_cast<double>(tile.m) * static_cast<double>(tile.n) *
                       inner_length(rates, kernel, parts);
  // Parts are written and read again, in 32 bits.
  const double results = kernel.rows_inner ? static_cast<double>(kernel.m) * groups_of(kernel) : all_rows(kernel);
  const double sums = splits == 1 ? 0 : 8 * parts * results * static_cast<double>(kernel.n);
  const double rate = device.peak.at(kernel.precision) * clock_of(device) * tile.peak_fraction;
  const double arithmetic = flops / (rate * relative_rate(device, kernel));
  const double seconds = together(rates.work, arithmetic + seconds_of_padding(rates, kernel, tile),
                                  seconds_of_traffic(device, traffic_of(kernel) + sums, rates.work.memory_fraction));
  return seconds + (splits == 1 ? 0 : rates.split_time.seconds());
}

/// The tile that deepseek-ai/DeepGEMM takes (commit 0b5d353d, jit_kernels/gemm.py, get_best_configs): of the widths
/// with the fewest waves the one that fills the last wave most, and of these the narrowest.
GemmRates::TileChoice chosen_tile(const GemmRates& rates, const Kernel& kernel) {
  constexpr std::int64_t few = 64, many = 128, min = 16, step = 8;
  const std::int64_t rows = kernel.m <= few ? few : many;
  const auto units = static_cast<double>(rates.work.units);
  double waves = std::numeric_limits<double>::infinity(), idle = 0;
  std::int64_t columns = min;
  for (std::int64_t width = min; width <= many; width += step) {
    const double tiles = tiles_of(kernel, rows, width);
    const double needed = std::ceil(tiles / units), left = needed * units - tiles;
    if (needed > waves || (needed == waves && left >= idle)) continue;
    waves = needed;
    idle = left;
    columns = width;
  }
  return {rows, columns, rates.columns->at(static_cast<double>(columns)) * (rows == few ? rates.few_rows : 1)};
}

const GemmRates& rates_of(const SustainedRates& sustained, const Kernel& kernel) {
  if (kernel.grouped && kernel.streams == 0 && sustained.grouped &&
      (kernel.precision == "bf16" || kernel.precision == "fp16"))
    return *sustained.grouped;
  if (kernel.grouped && kernel.streams == 0 && sustained.grouped_blocks && kernel.precision == "fp8_block")
    return *sustained.grouped_blocks;
  const auto other = sustained.other_gemms.find(kernel.precision == "mxfp8" ? "fp8" : kernel.precision);
  return other == sustained.other_gemms.end() ? sustained.gemms : other->second;
}

/// A group of one expert is a single GEMM of its rows.
Kernel without_group_of_one(Kernel kernel) {
  if (!kernel.grouped || kernel.count != 1) return kernel;
  if (!kernel.rows.empty()) (kernel.rows_inner ? kernel.k : kernel.m) = kernel.rows.front();
  kernel.rows.clear();
  kernel.grouped = false;
  return kernel;
}

/// How a library cuts a GEMM up.
struct Cut {
  GemmRates::TileChoice tile;
  std::int64_t splits = 1;
  double seconds = std::numeric_limits<double>::infinity();  ///< with all units
};

/// The best of the tiles and splits that there are, as a library that knows them all would choose.
Cut best_cut(const Device& device, const GemmRates& rates, const Kernel& kernel) {
  GemmRates known = rates;
  known.work = on_the_whole_device(rates.work);
  constexpr std::int64_t min_inner = 64;  // a part of k shorter than that is not worth a part
  Cut best;
  const auto consider = [&](const GemmRates::TileChoice& tile) {
    for (std::int64_t splits = 1; splits <= rates.max_splits; splits *= 2) {
      if (splits > 1 && kernel.k / splits < min_inner) continue;
      const double seconds = seconds_in_tiles(device, known, kernel, tile, splits);
      if (seconds < best.seconds) best = {tile, splits, seconds};
    }
  };
  if (rates.columns) consider(chosen_tile(known, kernel));
  for (const GemmRates::TileChoice& tile : rates.tiles) {
    consider(tile);
    if (tile.m != tile.n) consider({tile.n, tile.m, tile.peak_fraction});
  }
  return best;
}

double single_gemm(const Device& device, const Kernel& kernel) {
  if (all_rows(kernel) == 0) return 0;
  const GemmRates& rates = rates_of(*device.sustained, kernel);
  const Cut cut = best_cut(device, rates, kernel);
  const bool waits = rates.work.blocks > 0;
  return slowed(device, rates.work,
                waits ? seconds_in_tiles(device, rates, kernel, cut.tile, cut.splits) : cut.seconds);
}

/// The GEMM of one expert with so many rows, of which all others are left out.
Kernel of_one_expert(const Kernel& kernel, std::int64_t rows) {
  Kernel one = kernel;
  one.rows.clear();
  one.count = 1;
  one.grouped = false;
  (one.rows_inner ? one.k : one.m) = rows;
  if (kernel.bytes == 0) return one;
  const double by_rows = bytes_by_rows(kernel);
  one.bytes = std::llround((static_cast<double>(kernel.bytes) - by_rows) / groups_of(kernel) +
                           by_rows * static_cast<double>(rows) / all_rows(kernel));
  return one;
}

/// A GEMM for each expert, as many at a time as there are streams. A library that sees one GEMM cuts it as a single
/// one; when the last tiles of one do not fill the device, others' tiles do.
double gemms_in_streams(const Device& device, const Kernel& kernel) {
  const double launch = device.sustained->launch.seconds();
  double one_by_one = 0;
  if (kernel.rows.empty()) {
    const Kernel one = of_one_expert(kernel, kernel.rows_inner ? kernel.k : kernel.m);
    one_by_one = (single_gemm(device, one) + launch) * static_cast<double>(kernel.count);
  } else {
    for (const std::int64_t rows : kernel.rows)
      if (rows > 0) one_by_one += single_gemm(device, of_one_expert(kernel, rows)) + launch;
  }
  const GemmRates& rates = rates_of(*device.sustained, kernel);
  const auto mean = static_cast<std::int64_t>(std::llround(std::max(1.0, all_rows(kernel) / groups_of(kernel))));
  const Cut cut = best_cut(device, rates, of_one_expert(kernel, mean));
  const double shared = slowed(device, rates.work, seconds_in_tiles(device, rates, kernel, cut.tile, cut.splits));
  return std::max(shared, one_by_one / static_cast<double>(kernel.streams) - launch);
}

double sustained_gemm(const Device& device, const Kernel& given) {
  const Kernel kernel = without_group_of_one(given);
  if (all_rows(kernel) == 0) return 0;
  return kernel.grouped && kernel.streams > 0 ? gemms_in_streams(device, kernel) : single_gemm(device, kernel);
}

/// The rates of the library that the kernel names, or the first one's.
const AttentionRates* attention_rates(const Device& device, const Kernel& kernel) {
  if (kernel.kind != Kernel::Kind::attention || device.sustained->attention.empty()) return nullptr;
  for (const auto& [name, rates] : device.sustained->attention)
    if (name == kernel.library) return &rates;
  return &device.sustained->attention.front().second;
}

/// Seconds of fused attention. With a causal mask a tile of r queries and blocks of b keys sees (n + r + b) / 2 keys in
/// the mean, and the last one all of them.
double sustained_attention(const Device& device, const AttentionRates& rates, const Kernel& kernel) {
  constexpr std::int64_t block = 64;
  const auto rows = static_cast<double>(rates.rows);
  const double keys = pieces(kernel.n, block) * static_cast<double>(block);
  const double seen =
      kernel.causal ? std::min(keys, (static_cast<double>(kernel.n) + rows + static_cast<double>(block)) / 2) : keys;
  const double tiles = pieces(kernel.m, rates.rows) * static_cast<double>(kernel.count);
  const double mean_keys = static_cast<double>(kernel.n) * (kernel.causal ? 0.5 : 1);
  const double scores = static_cast<double>(kernel.m) * mean_keys * static_cast<double>(kernel.count);
  const double rate = device.peak.at(kernel.precision) * clock_of(device) *
                      rates.peak_fraction.at(static_cast<double>(kernel.k)) *
                      (kernel.backward ? rates.backward.at(mean_keys) : 1);
  const double score = kernel.flops / scores / rate;  // seconds, of all units together
  const auto overhead = static_cast<double>(rates.key_overhead);
  const bool waits = tiles > static_cast<double>(rates.work.units);  // fewer: the longest one counts
  const double shared = (waits ? full_tiles(rates.work, tiles) : tiles) * rows * (seen + overhead) * score;
  const double longest = rows * (keys + overhead) * score * static_cast<double>(rates.work.units) / rates.alone;
  const double traffic = seconds_of_traffic(device, static_cast<double>(kernel.bytes), rates.work.memory_fraction);
  return slowed(device, rates.work, together(rates.work, std::max(shared, longest), traffic));
}

double sustained_memory(const Device& device, const Kernel& kernel) {
  const auto& curve = device.sustained->bandwidth[static_cast<std::size_t>(kernel.traffic)];
  const auto bytes = static_cast<double>(kernel.bytes);
  return seconds_of_traffic(device, bytes, curve ? curve->at(bytes) : device.memory_fraction);
}

Time time_of(double seconds, Time launch) {
  seconds += static_cast<double>(launch.ps()) * 1e-12;
  return Time::from_ps(std::llround(std::min(seconds * 1e12, 0x1p62)));
}

/// In a long step, by the shape of the kernel.
Time sustained_time(const Device& device, const Kernel& kernel, double peak) {
  const Time launch = device.sustained->launch;
  if (kernel.kind == Kernel::Kind::gemm) return time_of(sustained_gemm(device, kernel), launch);
  if (const AttentionRates* rates = attention_rates(device, kernel))
    return time_of(sustained_attention(device, *rates, kernel), rates->launch);
  return time_of(std::max(kernel.flops / (peak * device.fused_fraction), sustained_memory(device, kernel)), launch);
}

}  // namespace

Time kernel_time(const Device& device, const Kernel& kernel) {
  const auto peak = device.peak.find(kernel.precision);
  WEFT_EXPECT(peak != device.peak.end(), "{} has no peak for '{}'", device.name, kernel.precision);
  if (device.in_a_step && device.sustained) return sustained_time(device, kernel, peak->second);
  double seconds = 0;
  if (kernel.kind == Kernel::Kind::gemm) {
    if (all_rows(kernel) == 0) return device.launch;
    seconds = std::max(gemm_flops(device, kernel) / (peak->second * device.gemm_fraction),
                       seconds_of_traffic(device, traffic_of(kernel), device.gemm_memory_fraction));
  } else {
    seconds = std::max(kernel.flops / (peak->second * device.fused_fraction),
                       seconds_of_traffic(device, static_cast<double>(kernel.bytes), device.memory_fraction));
  }
  return time_of(seconds, device.launch);
}

}  // namespace weft
