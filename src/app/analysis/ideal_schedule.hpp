// SPDX-License-Identifier: GPL-2.0-only
// The schedule of a workload on the ideal network: when every operation runs, what ranks wait for, the critical path.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/reports/time_shares.hpp"
#include "app/running/experiment.hpp"
#include "app/running/simulation.hpp"

namespace weft {

/// One operation that has been executed.
struct ScheduledOperation {
  std::uint64_t id = 0;
  Time start, end;
  /// When it could not be waiting for other ranks any more: the last member of a collective started, the message of a
  /// recv was sent. Not before `start`, but for messages that were sent before.
  Time ready;
  Operation::Kind kind = Operation::Kind::compute;
  bool host = false;
  Stream stream = Stream::none;
  std::string_view group;
  std::uint32_t call = no_collective;
  std::uint32_t peer = 0, tag = 0;
  bool takes_any = false;  ///< recv: of any rank or with any tag, so that nobody knows which send it met
  std::uint32_t after_begin = 0, after_count = 0;        ///< in ScheduledRank::after
  std::uint32_t partner_rank = 0, partner_position = 0;  ///< collective: the last to start; recv: the send
};

struct ScheduledRank {
  std::uint32_t rank = 0;
  double weight = 0;                           ///< ranks that it stands for
  std::vector<ScheduledOperation> operations;  ///< in program order
  std::vector<std::uint32_t> after;            ///< positions in `operations`
};

/// The chain of operations that determines when the run ends: each starts when the one before it ends.
struct CriticalPath {
  std::uint64_t operations = 0;
  Time compute;
  Time host;                                  ///< the host's work for what the device does then
  std::map<std::string, Time> communication;  ///< by group: collectives from their last member's start, and messages
  Time other;                                 ///< nothing of the chain runs: a start that was asked for
};

struct IdealSchedule {
  RunFacts facts;
  std::uint32_t computing = UINT32_MAX;  ///< ranks from this one on are storage, and no part of the means
  bool all_ranks = false;                ///< else the first rank of each kind stands for all of it
  std::vector<ScheduledRank> ranks;
  std::vector<RankShares> shares;   ///< of all ranks
  std::vector<RankRecord> records;  ///< of all ranks
  CriticalPath path;

  /// Mean over all ranks that compute, as a fraction of the run.
  double fraction(const std::function<std::int64_t(const RankShares&)>& part) const;
  const ScheduledRank* find(std::uint32_t rank) const;
};

/// Executes an experiment whose fidelity is ideal, in this process. Of all ranks if they have no more than a million
/// operations together, otherwise of the first of each kind and of `wanted`, operations are kept. Shows its progress
/// unless `quiet`. Throws InputError if it comes to a halt.
IdealSchedule make_ideal_schedule(Experiment& experiment, ProcessGroup& group, std::uint64_t operations,
                                  const std::vector<std::uint32_t>& wanted, bool quiet);

}  // namespace weft
