// SPDX-License-Identifier: GPL-2.0-only
// The program of a rank as a GOAL schedule: computations, sends and recvs alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "schedule/program/workload.hpp"

namespace weft {

/// Source or tag of a recv that takes any: -1.
constexpr std::uint32_t goal_export_any = 0xffffffffU;

/// One operation of a rank's schedule.
struct GoalStatement {
  Operation::Kind kind = Operation::Kind::compute;
  std::uint8_t cpu = 0;
  std::uint8_t nic = 0;
  std::uint32_t peer = 0;
  std::uint32_t tag = 0;
  std::int64_t size = 0;                 ///< bytes, or nanoseconds
  std::vector<std::uint32_t> requires_;  ///< positions of others in the schedule, ascending: they have to have ended
  std::vector<std::uint32_t> irequires;  ///< the same: they have to have begun
};

/// Tags and NICs of what collectives are resolved into: for each communicator and channel a pair of its own, behind
/// those of the program's own messages.
class GoalNames {
 public:
  /// Goes through the programs of all ranks and all calls. Throws InputError if there are not so many tags.
  GoalNames(const Workload& workload, const std::string& experiment);
  std::uint32_t tag(const CollectiveCall& call, std::uint32_t channel) const;
  std::uint8_t nic(const CollectiveCall& call, std::uint32_t channel) const;

 private:
  std::uint32_t first_tag_ = 0;
  std::uint32_t first_nic_ = 0;
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> channels_;  // communicator -> first, count
};

/// The schedule of one rank, in memory. Streams of a program that takes operations in order become dependencies, and so
/// does the order of collectives in a communicator. Collectives are resolved into the sends and recvs of their steps,
/// slice by slice, with the times of handling them; credits are left out: GOAL has none. Times are rounded to
/// nanoseconds. `names`: null if collectives are not to be resolved. Throws InputError, with the file of the
/// experiment, for what a schedule cannot say.
std::vector<GoalStatement> lower_to_goal(const Workload& workload, std::uint32_t rank, const GoalNames* names,
                                         const std::string& experiment);

}  // namespace weft
