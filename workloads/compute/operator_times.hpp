// SPDX-License-Identifier: GPL-2.0-only
// Times of kernels: measured ones where there are any, and otherwise those of the device's model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "support/documents/spec.hpp"
#include "workloads/compute/kernel_time.hpp"
#include "workloads/reading/device.hpp"

namespace weft {

/// A CSV file of measured operators (docs/reference/compute_times.md). First line: names of columns, any of
/// kernel (gemm or memory), m, n, k, count, bytes, precision, and time with its unit; `kernel` and `time` must be
/// there. Lines that are empty or begin with # are left out.
class MeasuredOperators {
 public:
  MeasuredOperators() = default;
  /// Throws InputError with file:line.
  static MeasuredOperators load(const std::string& path);
  /// The same from text; `name` is the name of the file in messages.
  static MeasuredOperators parse(const std::string& text, const std::string& name);

  bool empty() const { return times_.empty(); }
  std::size_t size() const { return times_.size(); }
  /// The time of exactly this kernel: a GEMM of the same m, n, k and count, another kernel of the same bytes; of the
  /// same precision, or of a line without one.
  std::optional<Time> find(const Kernel& kernel) const;

 private:
  using Key = std::tuple<Kernel::Kind, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::string>;
  friend class OperatorFileReader;
  static Key key_of(const Kernel& kernel, const std::string& precision);
  std::map<Key, Time> times_;
};

/// What communication beside a kernel takes of the device, if not the device's own number of units.
struct UnitsBeside {
  std::int64_t units = 0;
  bool left_free = false;  ///< the kernel leaves them free at all times; else it starts as if they were its own
};

class OperatorTimes {
 public:
  explicit OperatorTimes(Device device, MeasuredOperators measured = {})
      : device_(std::move(device)), measured_(std::move(measured)) {}

  const Device& device() const { return device_; }
  /// From now on kernels are taken to be parts of a long step (SustainedRates).
  void in_a_step() {
    device_.in_a_step = true;
    rest_ = beside_communication(device_);
  }
  /// As measured, else kernel_time().
  Time of(const Kernel& kernel) const;
  /// The same while collectives of the device are under way: with what they leave of it (beside_communication()), at
  /// least what of() gives. Zero: nothing is known of this kernel; slowdown_beside_communication() holds.
  Time beside(const Kernel& kernel) const;
  Time of(const Kernel& kernel, const UnitsBeside& communication) const;
  Time beside(const Kernel& kernel, const UnitsBeside& communication) const;
  bool is_measured(const Kernel& kernel) const { return measured_.find(kernel).has_value(); }
  /// Kernels that of() was called for and that were not measured, each once ("gemm 64 x 128 x 256, bf16"); empty
  /// without a file of measurements.
  std::vector<std::string> missing() const { return {missing_.begin(), missing_.end()}; }

 private:
  Device device_;
  std::optional<Device> rest_;  // what collectives leave of it, in a step
  MeasuredOperators measured_;
  mutable std::set<std::string> missing_;  // for people; changes no result
};

/// The keys `device` and, optionally, `rates` (`best`, `single` by shape, or `sustained` as inside a long step) and
/// `operators` of a map; paths start at `directory`. Throws InputError.
OperatorTimes read_operator_times(const Spec& map, const std::string& directory);

/// A kernel: {m, n, k, count, grouped, precision} (m a list of rows of each expert if grouped), {bytes, flops, traffic,
/// precision} or {attention, bytes, precision}; the precision is the device's first if not given. Finishes the map.
/// Throws InputError.
Kernel read_kernel(const Spec& map, const Device& device);

}  // namespace weft
