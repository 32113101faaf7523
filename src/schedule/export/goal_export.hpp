// SPDX-License-Identifier: GPL-2.0-only
// A workload written out as a GOAL schedule (docs/reference/traces.md).
#pragma once

#include <cstdint>
#include <string>

#include "schedule/program/workload.hpp"

namespace weft {

struct GoalExport {
  std::string file;        ///< text, or binary if it ends in .bin
  std::string experiment;  ///< its file, for errors
  bool steps = false;      ///< resolve collectives into sends and recvs
};

/// How many operations of each kind have been written.
struct GoalCounts {
  std::uint64_t calcs = 0, sends = 0, recvs = 0;
};

/// Writes the schedules of all ranks, one rank after another. Throws InputError (without a file) if the workload has
/// what a schedule cannot say, and EnvironmentError if the file cannot be written.
GoalCounts export_goal(const Workload& workload, const GoalExport& wanted);

}  // namespace weft
