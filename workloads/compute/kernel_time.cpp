// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/compute/kernel_time.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/contract.hpp"

namespace weft {

double traffic_of(const Kernel& kernel) {
  if (kernel.bytes > 0 || kernel.kind == Kernel::Kind::memory) return static_cast<double>(kernel.bytes);
  const auto m = static_cast<double>(kernel.m);
  const auto n = static_cast<double>(kernel.n);
  const auto k = static_cast<double>(kernel.k);
  return (m * k + k * n + m * n) * static_cast<double>(kernel.count) *
         static_cast<double>(element_bytes(kernel.precision));
}

namespace {

double seconds_of_traffic(const Device& device, double bytes, double fraction) {
  return bytes * 8 / (static_cast<double>(device.memory_bandwidth.bps()) * fraction);
}

double matmul_flops(const Device& device, const Kernel& kernel) {
  const auto product = [](std::int64_t a, std::int64_t b) { return static_cast<double>(a) * static_cast<double>(b); };
  if (!device.tiles) return 2 * product(kernel.m, kernel.n) * product(kernel.k, kernel.count);
  const Device::Tiles& tiles = *device.tiles;
  const auto pieces = [](std::int64_t length, std::int64_t piece) {
    return static_cast<double>(length / piece + (length % piece != 0 ? 1 : 0));
  };
  const double waves = std::ceil(pieces(kernel.m, tiles.m) * pieces(kernel.n, tiles.n) *
                                 static_cast<double>(kernel.count) / static_cast<double>(tiles.units));
  return 2 * waves * static_cast<double>(tiles.units) * product(tiles.m, tiles.n) * static_cast<double>(kernel.k);
}

/// Seconds of a product cut into such tiles and, along k, into `splits` parts.
double seconds_in_tiles(const Device& device, const Kernel& kernel, std::int64_t tile_m, std::int64_t tile_n,
                        double fraction, std::int64_t splits) {
  const SustainedRates& rates = *device.sustained;
  const auto pieces = [](std::int64_t length, std::int64_t piece) {
    return static_cast<double>((length - 1) / piece + 1);
  };
  const auto units = static_cast<double>(rates.units);
  const auto parts = static_cast<double>(splits);
  const double tiles = pieces(kernel.m, tile_m) * pieces(kernel.n, tile_n) * static_cast<double>(kernel.count) * parts;
  const double length = static_cast<double>(kernel.k) / parts;
  const double inner = length + rates.inner_overhead.at(length);
  const double flops =
      2 * std::ceil(tiles / units) * units * static_cast<double>(tile_m) * static_cast<double>(tile_n) * inner;
  // Parts are written and read again, in 32 bits.
  const double sums = splits == 1 ? 0
                                  : 8 * parts * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
                                        static_cast<double>(kernel.count);
  return std::max(flops / (device.peak.at(kernel.precision) * fraction),
                  seconds_of_traffic(device, traffic_of(kernel) + sums, rates.matmul_memory_fraction));
}

/// The best of the tiles and splits that there are, as a library that knows them all would choose.
double sustained_matmul(const Device& device, const Kernel& kernel) {
  const SustainedRates& rates = *device.sustained;
  constexpr std::int64_t least_inner = 64;  // a part of k shorter than that is not worth a part
  double best = std::numeric_limits<double>::infinity();
  const auto consider = [&](std::int64_t m, std::int64_t n, double fraction) {
    for (std::int64_t splits = 1; splits <= rates.most_splits; splits *= 2)
      if (splits == 1 || kernel.k / splits >= least_inner)
        best = std::min(best, seconds_in_tiles(device, kernel, m, n, fraction, splits));
  };
  for (const SustainedRates::TileChoice& tile : rates.tiles) {
    consider(tile.m, tile.n, tile.peak_fraction);
    if (tile.m != tile.n) consider(tile.n, tile.m, tile.peak_fraction);
  }
  return best;
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
  const double seconds = kernel.kind == Kernel::Kind::matmul ? sustained_matmul(device, kernel)
                                                             : std::max(kernel.flops / (peak * device.fused_fraction),
                                                                        sustained_memory(device, kernel));
  return time_of(seconds, device.sustained->launch);
}

}  // namespace

Time kernel_time(const Device& device, const Kernel& kernel) {
  const auto peak = device.peak.find(kernel.precision);
  WEFT_EXPECT(peak != device.peak.end(), "{} has no peak for '{}'", device.name, kernel.precision);
  if (device.in_a_step && device.sustained) return sustained_time(device, kernel, peak->second);
  double seconds = 0;
  if (kernel.kind == Kernel::Kind::matmul) {
    seconds = std::max(matmul_flops(device, kernel) / (peak->second * device.matmul_fraction),
                       seconds_of_traffic(device, traffic_of(kernel), device.matmul_memory_fraction));
  } else {
    seconds = std::max(kernel.flops / (peak->second * device.fused_fraction),
                       seconds_of_traffic(device, static_cast<double>(kernel.bytes), device.memory_fraction));
  }
  return time_of(seconds, device.launch);
}

}  // namespace weft
