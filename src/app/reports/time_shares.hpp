// SPDX-License-Identifier: GPL-2.0-only
// The one vocabulary of time: how a rank spends a run, and how long collectives take. docs/concepts/model.md defines
// the words.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "app/reports/call_times.hpp"
#include "app/running/simulation.hpp"
#include "results/tables/records.hpp"

namespace weft {

/// In ps. compute + exposed + waiting + idle is the whole time.
struct RankShares {
  std::int64_t compute = 0;  ///< a compute operation runs
  std::int64_t hidden = 0;   ///< part of compute: communication is in flight, too
  std::int64_t exposed =
      0;  ///< no compute operation runs, and communication that all its participants have entered does
  std::int64_t waiting = 0;  ///< neither, and communication is in flight that others have not entered
  std::int64_t idle = 0;     ///< the rest: nothing is in flight

  /// The time that a better schedule could use.
  std::int64_t bubble() const { return waiting + idle; }
};

/// Calls that are alike.
struct CallGroup {
  std::uint64_t calls = 0;       ///< that have ended
  std::int64_t min = INT64_MAX;  ///< ps, from the first rank's arrival to the end
  std::int64_t max = 0;
  double total = 0;
  double own = 0;            ///< ps, from the last rank's arrival to the end
  double bus_bandwidth = 0;  ///< GB/s, sum
  double mean(double sum) const { return calls > 0 ? sum / static_cast<double>(calls) : 0; }
};

struct CallGroupKey {
  std::string kind;
  std::string algorithm;
  std::uint32_t ranks = 0;
  std::int64_t stride = 0;  ///< from each rank of the communicator to the next; 0: not the same everywhere
  std::int64_t bytes = 0;   ///< -1: sizes beyond the first few thousand
  auto operator<=>(const CallGroupKey&) const = default;
};

struct RunShares {
  std::vector<RankShares> ranks;             ///< of this process, in the order of Runtime::rank_records()
  std::map<CallGroupKey, CallGroup> groups;  ///< all calls, on process 0
  std::vector<CallTimes> first_calls;        ///< the first thousand, on process 0
};

/// Collective, at the end of a run. `complete`: no operation is left undone.
RunShares shares_of_run(const Workload& workload, Simulation& simulation, Time end, bool complete);

/// Collective: of each job the mean of its ranks, the same on all processes; idle until the job's end.
std::vector<RankShares> shares_of_jobs(const std::vector<JobRecord>& jobs, const std::vector<RankRecord>& ranks,
                                       const std::vector<RankShares>& shares, const ProcessGroup& group);

}  // namespace weft
