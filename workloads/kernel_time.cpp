// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/kernel_time.hpp"

#include <algorithm>
#include <cmath>

#include "support/contract.hpp"

namespace weft {
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

double matmul_bytes(const Kernel& kernel) {
  if (kernel.bytes > 0) return static_cast<double>(kernel.bytes);
  const auto m = static_cast<double>(kernel.m);
  const auto n = static_cast<double>(kernel.n);
  const auto k = static_cast<double>(kernel.k);
  return (m * k + k * n + m * n) * static_cast<double>(kernel.count) *
         static_cast<double>(element_bytes(kernel.precision));
}

}  // namespace

Time kernel_time(const Device& device, const Kernel& kernel) {
  const auto peak = device.peak.find(kernel.precision);
  WEFT_EXPECT(peak != device.peak.end(), "{} has no peak for '{}'", device.name, kernel.precision);
  double seconds = 0;
  if (kernel.kind == Kernel::Kind::matmul) {
    seconds = std::max(matmul_flops(device, kernel) / (peak->second * device.matmul_fraction),
                       seconds_of_traffic(device, matmul_bytes(kernel), device.matmul_memory_fraction));
  } else {
    seconds = std::max(kernel.flops / (peak->second * device.fused_fraction),
                       seconds_of_traffic(device, static_cast<double>(kernel.bytes), device.memory_fraction));
  }
  seconds += static_cast<double>(device.launch.ps()) * 1e-12;
  return Time::from_ps(std::llround(std::min(seconds * 1e12, 0x1p62)));
}

}  // namespace weft
