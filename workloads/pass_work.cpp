// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/pass_work.hpp"

#include <utility>

#include "workloads/reading.hpp"

namespace weft {

Work::Work(const PassSetup& setup) : Work(setup, setup.description->precision) {}

Work::Work(const PassSetup& setup, std::string products)
    : setup_(setup), products_(std::move(products)), activations_(activation_precision(*setup.description)) {}

void Work::matmul(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count) {
  Kernel kernel;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.count = count;
  kernel.flops =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(count);
  kernel.precision = products_;
  if (products_ != activations_) {
    using Wide = unsigned __int128;
    const auto read = static_cast<Wide>(m + n) * static_cast<Wide>(k) * static_cast<Wide>(element_bytes(products_));
    const auto written = static_cast<Wide>(m) * static_cast<Wide>(n) * static_cast<Wide>(element_bytes(activations_));
    kernel.bytes = saturated((read + written) * static_cast<Wide>(count)).count();
  }
  add(kernel);
}

void Work::memory(std::int64_t elements) { memory_bytes(bytes_of(elements, 1, element_bytes(activations_))); }

void Work::memory_bytes(Bytes bytes, double flops) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::memory;
  kernel.bytes = bytes.count();
  kernel.flops = flops;
  kernel.precision = activations_;
  add(kernel);
}

Segment Work::segment(std::string_view what) const {
  Segment result;
  result.what = what;
  result.duration = time_;
  result.flops = flops_;
  return result;
}

void Work::add(const Kernel& kernel) {
  time_ += setup_.times->of(kernel);
  flops_ += kernel.flops;
}

}  // namespace weft
