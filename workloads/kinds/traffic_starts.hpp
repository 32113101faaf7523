// SPDX-License-Identifier: GPL-2.0-only
// When the flows of synthetic traffic start.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/program/workload.hpp"
#include "support/documents/spec.hpp"
#include "units/time.hpp"

namespace weft {

/// Starting times of a source rank, in order, a function of (seed, source) only. At each of them the source issues all
/// its flows once.
class TrafficStarts {
 public:
  /// Reads `start`: a time, a list of times, or a map of a process: poisson, periodic or on_off
  /// (docs/reference/workload_kinds.md). Absent: once, at 0. `load` is the fraction of the host's port rate that the
  /// wire bytes of a source's flows take.
  static TrafficStarts read(const Spec& workload, const WorkloadContext& context);

  /// The progress of a source.
  struct Clock {
    Time time;                  ///< of the newest start
    std::uint64_t starts = 0;   ///< so far
    std::uint64_t periods = 0;  ///< on_off: on and off periods drawn so far
    Time on_until;              ///< on_off: end of the on period
  };
  /// Advances to the next start; false if there is none. `interval_ps` is that of the source's flows. Periodic: start n
  /// is n * interval. Poisson: the start before + an exponential gap, rounded to ps. On-off: an interval after the
  /// start before, if that is within the on period; else the beginning of the next one.
  bool next(Clock& clock, std::uint32_t source, double interval_ps) const;

  /// Mean time between starts of a source that puts `wire_bytes` on its port at each (on_off: within on periods). Unit:
  /// ps. Integer but for Poisson.
  double interval_ps(Bytes wire_bytes) const;
  /// Of a source: exactly, or where a time ends it, on average. 0: without an end.
  std::uint64_t expected_count(double interval_ps) const;
  /// Throws InputError at the workload's `start` if a source of these wire bytes would run beyond the range of Time.
  void require_range(Bytes wire_bytes, const Spec& workload) const;

 private:
  enum class Process : std::uint8_t { times, periodic, poisson, on_off };
  enum class Law : std::uint8_t { constant, exponential, pareto };

  void read_process(const Spec& map, bool endless);
  void read_periods(const Spec& map);
  Time period(double mean_ps, std::uint32_t source, std::uint64_t number) const;
  Time next_on_off(Clock& clock, std::uint32_t source, double interval_ps) const;

  Process process_ = Process::times;
  std::uint64_t count_ = 1;
  Time stop_ = Time::max();  // nothing starts then or later
  std::vector<Time> times_{Time()};
  Time interval_;  // 0 if a load was given
  double load_ = 0;
  Law law_ = Law::exponential;
  Time on_, off_;       // means
  double shape_ = 1.5;  // of Pareto's law
  std::int64_t rate_bps_ = 0;
  std::uint64_t seed_ = 1;
};

}  // namespace weft
