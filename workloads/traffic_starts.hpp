// SPDX-License-Identifier: GPL-2.0-only
// When the flows of synthetic traffic start.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "schedule/workload.hpp"
#include "support/spec.hpp"
#include "units/time.hpp"

namespace weft {

/// Starting times of a source rank, in order, a function of (seed, source) only. At each of them the source issues all
/// its flows once.
class TrafficStarts {
 public:
  enum class Process : std::uint8_t { times, periodic, poisson };

  /// Reads `start`: a time, a list of times, or {process: poisson|periodic, load: 0.8 | interval: 1 us, count: N}.
  /// Absent: once, at 0. `load` is the fraction of the host's port rate that the wire bytes of a source's flows take.
  static TrafficStarts read(const Spec& workload, const WorkloadContext& context);

  std::uint64_t count() const { return count_; }
  /// Mean time between starts of a source that puts `wire_bytes` on its port at each. Unit: ps. Periodic: integer.
  double interval_ps(Bytes wire_bytes) const;
  /// Start number `index`; `previous` is the one before (0 for the first). Periodic: index * interval. Poisson:
  /// previous + an exponential gap, rounded to ps.
  Time at(std::uint64_t index, Time previous, std::uint32_t source, double interval_ps) const;
  /// Throws InputError at the workload's `start` if a source of these wire bytes would run beyond the range of Time.
  void require_range(Bytes wire_bytes, const Spec& workload) const;

 private:
  void read_process(const Spec& map);

  Process process_ = Process::times;
  std::uint64_t count_ = 1;
  std::vector<Time> times_{Time()};
  Time interval_;  ///< 0 if a load was given
  double load_ = 0;
  std::int64_t rate_bps_ = 0;
  std::uint64_t seed_ = 1;
};

}  // namespace weft
