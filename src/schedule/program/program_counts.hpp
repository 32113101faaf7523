// SPDX-License-Identifier: GPL-2.0-only
// Operations and bytes of a workload, summed up without executing anything.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "schedule/program/workload.hpp"

namespace weft {

/// Of all ranks and steps.
struct OperationCount {
  std::uint64_t operations = 0;  ///< a collective once per member
  double bytes = 0;              ///< sent, with the flags of protocols
  double size = 0;               ///< asked for: of messages, and of a collective its size, once per member
  double flops = 0;
  double seconds = 0;  ///< compute time
  void add(const OperationCount& other);
};

struct ProgramCounts {
  /// What operations are summed up by: "compute", "all_reduce", ..., "send", "recv"; and Operation::phase, group,
  /// operator_name.
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  enum Part : std::size_t { kind, phase, group, operator_name };

  std::map<Key, OperationCount> counts;
  std::vector<Time> compute;              ///< [kind of ranks] of one rank
  std::vector<std::uint64_t> operations;  ///< [kind of ranks] of one rank

  /// Sums by one part of the key; an empty text becomes "other".
  std::map<std::string, OperationCount> by(Part part) const;
  OperationCount sum() const;
};

/// Walks the program of the first rank of each kind, and counts it for all ranks of the kind. Bytes of a collective are
/// those of its steps, of all members if they are no more than 64, otherwise of 16 of them scaled up. With uneven
/// routing, the first communicator of each kind stands for all.
ProgramCounts count_programs(const Workload& workload);

/// Bytes that all members of a call send.
double bytes_of_call(const CollectiveCall& call);

}  // namespace weft
