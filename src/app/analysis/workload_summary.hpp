// SPDX-License-Identifier: GPL-2.0-only
// What `weft workload` prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/ideal_schedule.hpp"
#include "schedule/program/program_counts.hpp"

namespace weft {

struct WorkloadSummary {
  const Experiment* experiment = nullptr;
  std::optional<WorkloadReport> report;
  ProgramCounts counts;                     ///< of all steps
  const IdealSchedule* schedule = nullptr;  ///< nothing if it was not executed
  std::vector<std::uint32_t> ranks;         ///< that the user asked for, or the first of each kind

  std::uint32_t steps() const { return report ? report->steps : 1; }
};

std::string workload_text(const WorkloadSummary& summary);
std::string workload_json(const WorkloadSummary& summary);

}  // namespace weft
