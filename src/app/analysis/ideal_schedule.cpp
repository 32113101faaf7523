// SPDX-License-Identifier: GPL-2.0-only
#include "app/analysis/ideal_schedule.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "app/analysis/critical_path.hpp"
#include "app/running/run_progress.hpp"
#include "support/basics/contract.hpp"

namespace weft {
namespace {

constexpr std::uint64_t max_kept_operations = 1'000'000;

/// The ranks whose operations are kept.
std::vector<std::uint32_t> ranks_to_keep(const Workload& workload, bool all, const std::vector<std::uint32_t>& wanted) {
  std::vector<std::uint32_t> ranks;
  if (all) {
    for (std::uint32_t r = 0; r < workload.ranks(); ++r) ranks.push_back(r);
    return ranks;
  }
  ranks = wanted;
  for (std::uint32_t k = 0; k < workload.kind_count(); ++k) ranks.push_back(workload.first_of_kind(k).value());
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

/// The rank's program once more, beside the rows of what was executed, which are in ascending order of their ids.
ScheduledRank join(const Workload& workload, std::uint32_t rank, const OperationRecord* row,
                   const OperationRecord* end) {
  ScheduledRank result;
  result.rank = rank;
  std::vector<std::uint64_t> ids;
  const auto program = workload.program(Rank(rank));
  for (Operation operation; program->next(operation); operation = Operation()) {
    WEFT_EXPECT(row != end && row->rank == rank && row->operation == operation.id, "rank {} operation {}", rank,
                operation.id);
    ScheduledOperation one;
    one.id = operation.id;
    one.start = one.ready = Time::from_ps(row->start);
    one.end = Time::from_ps(row->end);
    one.kind = operation.kind;
    one.host = operation.worker != Worker::device;
    one.stream = operation.stream;
    one.group = operation.group;
    if (operation.call) one.call = operation.call->id;
    one.peer = operation.peer.value();
    one.tag = operation.tag;
    one.takes_any = operation.any_source || operation.any_tag;
    one.after_begin = static_cast<std::uint32_t>(result.after.size());
    for (const std::uint64_t after : operation.after)
      result.after.push_back(static_cast<std::uint32_t>(std::lower_bound(ids.begin(), ids.end(), after) - ids.begin()));
    one.after_count = static_cast<std::uint32_t>(result.after.size()) - one.after_begin;
    result.operations.push_back(one);
    ids.push_back(operation.id);
    ++row;
  }
  return result;
}

/// Finds for each collective its last member, and for each recv its send.
class Partners {
 public:
  Partners(const Workload& workload, IdealSchedule& schedule) : workload_(workload), schedule_(schedule) {}

  void find() {
    for (std::uint32_t r = 0; r < schedule_.ranks.size(); ++r) collect(r);
    for (std::uint32_t r = 0; r < schedule_.ranks.size(); ++r) join(r);
  }

 private:
  using Position = std::pair<std::uint32_t, std::uint32_t>;              // in schedule_.ranks, in its operations
  using Lane = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // sender, receiver, tag

  ScheduledOperation& at(Position position) { return schedule_.ranks[position.first].operations[position.second]; }
  /// Ranks that do the same send the same messages.
  std::uint32_t name(std::uint32_t rank) const { return schedule_.all_ranks ? rank : workload_.kind_of(Rank(rank)); }
  bool stands_for_all(std::uint32_t r) const { return schedule_.ranks[r].weight > 0; }

  void collect(std::uint32_t r) {
    const auto& operations = schedule_.ranks[r].operations;
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      const ScheduledOperation& one = operations[i];
      if (one.kind == Operation::Kind::collective) {
        const auto [last, fresh] = last_.try_emplace(one.call, r, i);
        if (!fresh && at(last->second).start < one.start) last->second = {r, i};
      } else if (one.kind == Operation::Kind::send && stands_for_all(r)) {
        sends_[{name(schedule_.ranks[r].rank), name(one.peer), one.tag}].emplace_back(r, i);
      }
    }
  }

  void join(std::uint32_t r) {
    std::map<Lane, std::size_t> received;
    for (ScheduledOperation& one : schedule_.ranks[r].operations) {
      Position partner{r, 0};
      if (one.kind == Operation::Kind::collective) {
        partner = last_.at(one.call);
      } else if (one.kind == Operation::Kind::recv && !one.takes_any) {
        const Lane lane{name(one.peer), name(schedule_.ranks[r].rank), one.tag};
        const auto found = sends_.find(lane);
        const std::size_t number = received[lane]++;
        if (found == sends_.end() || number >= found->second.size()) continue;
        partner = found->second[number];
      } else {
        continue;
      }
      one.ready = at(partner).start;
      one.partner_rank = partner.first;
      one.partner_position = partner.second;
    }
  }

  const Workload& workload_;
  IdealSchedule& schedule_;
  std::unordered_map<std::uint32_t, Position> last_;  // by call
  std::map<Lane, std::vector<Position>> sends_;
};

}  // namespace

double IdealSchedule::fraction(const std::function<std::int64_t(const RankShares&)>& part) const {
  double sum = 0;
  for (std::uint32_t rank = 0; rank < computing; ++rank) sum += static_cast<double>(part(shares[rank]));
  return facts.simulated == Time() ? 0 : sum / computing / static_cast<double>(facts.simulated.ps());
}

const ScheduledRank* IdealSchedule::find(std::uint32_t rank) const {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank,
                                   [](const ScheduledRank& one, std::uint32_t number) { return one.rank < number; });
  return at == ranks.end() || at->rank != rank ? nullptr : &*at;
}

IdealSchedule make_ideal_schedule(Experiment& experiment, ProcessGroup& group, std::uint64_t operations,
                                  const std::vector<std::uint32_t>& wanted, bool quiet) {
  const Workload& workload = *experiment.workload;
  IdealSchedule schedule;
  schedule.computing = workload.ranks() - workload.storage_ranks();
  schedule.all_ranks = operations <= max_kept_operations;
  const std::vector<std::uint32_t> kept = ranks_to_keep(workload, schedule.all_ranks, wanted);
  experiment.output.operations = {true, kept};
  experiment.output.messages.every = 0;
  Simulation simulation(experiment, group, EngineChoice::weft);
  RunProgress progress(experiment, simulation, !quiet);
  schedule.facts = simulation.run([&progress](Time now) {
    progress.update(now);
    return Simulation::Look::go_on;
  });
  progress.finish();
  if (schedule.facts.cut_short || simulation.unfinished_ranks() > 0)
    throw InputError(SourceLine{experiment.path, 0},
                     schedule.facts.cut_short
                         ? "simulation.until ends the run before the workload ends; expected a later time"
                         : "the workload comes to a halt with unfinished operations; `weft run` says which");
  schedule.records = simulation.runtime().rank_records(schedule.facts.simulated);
  const RunShares shares = shares_of_run(workload, simulation, schedule.facts.simulated, !schedule.facts.outlived);
  schedule.shares.resize(schedule.records.size());
  for (std::size_t i = 0; i < schedule.records.size(); ++i) schedule.shares[schedule.records[i].rank] = shares.ranks[i];
  std::sort(schedule.records.begin(), schedule.records.end(),
            [](const RankRecord& a, const RankRecord& b) { return a.rank < b.rank; });
  std::vector<OperationRecord> rows = std::move(simulation.runtime().records().operations);
  std::sort(rows.begin(), rows.end(), [](const OperationRecord& a, const OperationRecord& b) {
    return std::pair(a.rank, a.operation) < std::pair(b.rank, b.operation);
  });
  const OperationRecord* at = rows.data();
  const OperationRecord* const end = rows.data() + rows.size();
  for (const std::uint32_t rank : kept) {
    schedule.ranks.push_back(join(workload, rank, at, end));
    at += schedule.ranks.back().operations.size();
    const std::uint32_t kind = workload.kind_of(Rank(rank));
    const bool first = workload.first_of_kind(kind).value() == rank;
    schedule.ranks.back().weight = schedule.all_ranks ? 1 : first ? workload.ranks_of_kind(kind) : 0;
  }
  Partners(workload, schedule).find();
  schedule.path = critical_path(schedule);
  return schedule;
}

}  // namespace weft
