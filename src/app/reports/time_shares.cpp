// SPDX-License-Identifier: GPL-2.0-only
#include "app/reports/time_shares.hpp"

#include <algorithm>
#include <cmath>

#include "schedule/collective/collective.hpp"

namespace weft {
namespace {

constexpr std::size_t max_groups = 10'000;
constexpr std::size_t first_calls = 1000;

std::int64_t stride_of(const Communicator& communicator) {
  if (communicator.size() < 2) return 0;
  const auto at = [&](std::uint32_t index) { return std::int64_t{communicator.rank(index).value()}; };
  const std::int64_t stride = at(1) - at(0);
  for (std::uint32_t i = 2; i < communicator.size(); ++i)
    if (at(i) - at(i - 1) != stride) return 0;
  return stride;
}

/// Sums up calls; a communicator's stride is found once.
class CallGroups {
 public:
  explicit CallGroups(const Workload& workload) : workload_(workload) {}

  void add(std::uint32_t id, const CallTimes& times, std::map<CallGroupKey, CallGroup>& groups) {
    const CollectiveCall call = workload_.call(id);
    const Communicator& communicator = *call.communicator;
    if (times.finished < communicator.size()) return;
    const auto [stride, fresh] = strides_.try_emplace(communicator.id(), 0);
    if (fresh) stride->second = stride_of(communicator);
    CallGroupKey key{std::string(to_text(call.kind)), call.algorithm, communicator.size(), stride->second,
                     call.size.count()};
    if (groups.size() >= max_groups && !groups.contains(key)) key.bytes = -1;
    CallGroup& group = groups[key];
    const std::int64_t time = times.end - times.first;
    ++group.calls;
    group.least = std::min(group.least, time);
    group.most = std::max(group.most, time);
    group.total += static_cast<double>(time);
    group.own += static_cast<double>(times.end - times.last);
    if (time > 0)
      group.bus_bandwidth += static_cast<double>(call.size.count()) / static_cast<double>(time) * 1e3 *
                             bus_bandwidth_factor(call.kind, communicator.size());
  }

 private:
  const Workload& workload_;
  std::map<std::uint32_t, std::int64_t> strides_;
};

/// How much of `spans`, which are in order and apart, is covered by `transfers`.
std::int64_t covered_by(const std::vector<TimeSpan>& spans, std::vector<TimeSpan>& transfers) {
  std::sort(transfers.begin(), transfers.end(), [](const TimeSpan& a, const TimeSpan& b) { return a.begin < b.begin; });
  std::int64_t sum = 0, until = 0;  // everything before is counted
  auto span = spans.begin();
  for (const TimeSpan& transfer : transfers) {
    const std::int64_t from = std::max(transfer.begin, until);
    while (span != spans.end() && span->end <= from) ++span;
    for (auto at = span; at != spans.end() && at->begin < transfer.end; ++at)
      sum += std::max<std::int64_t>(0, std::min(at->end, transfer.end) - std::max(at->begin, from));
    until = std::max(until, transfer.end);
  }
  return sum;
}

/// Times of this process's ranks in collectives from the arrival of the last member on.
class CollectiveTransfers {
 public:
  CollectiveTransfers(const Workload& workload, std::vector<RankTransfers> ranks,
                      const std::vector<CollectivePart>& parts, Time end, bool complete)
      : workload_(workload), ranks_(std::move(ranks)), spans_(ranks_.size()), end_(end.ps()), complete_(complete) {
    for (const CollectivePart& part : parts) parts_.push_back(&part);
    std::sort(parts_.begin(), parts_.end(), [](const CollectivePart* a, const CollectivePart* b) {
      return std::pair(a->collective, a->rank) < std::pair(b->collective, b->rank);
    });
    for (std::size_t i = 0; i < ranks_.size(); ++i) place_[ranks_[i].rank] = i;
    part_ = parts_.begin();
  }

  const std::vector<const CollectivePart*>& parts() const { return parts_; }
  const std::vector<RankTransfers>& ranks() const { return ranks_; }

  void add(std::uint64_t first, std::span<const CallTimes> times) {
    for (; part_ != parts_.end() && (*part_)->collective < first + times.size(); ++part_)
      add((*part_)->collective, times[(*part_)->collective - first], place_.at((*part_)->rank), (*part_)->start,
          (*part_)->end);
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      for (const auto& [call, start] : ranks_[i].under_way)
        if (call >= first && call < first + times.size()) add(call, times[call - first], i, start, end_);
  }

  std::int64_t exposed(std::size_t i) { return ranks_[i].transferring + covered_by(ranks_[i].undecided, spans_[i]); }

 private:
  void add(std::uint32_t call, const CallTimes& times, std::size_t rank, std::int64_t start, std::int64_t end) {
    if (!complete_ && times.entered < workload_.call(call).communicator->size()) return;
    const std::int64_t from = std::max(start, times.last);
    if (from < end) spans_[rank].push_back({from, end});
  }

  const Workload& workload_;
  std::vector<RankTransfers> ranks_;
  std::vector<const CollectivePart*> parts_;
  std::vector<const CollectivePart*>::const_iterator part_;
  std::map<std::uint32_t, std::size_t> place_;  // of a rank in ranks_
  std::vector<std::vector<TimeSpan>> spans_;
  std::int64_t end_;
  bool complete_;
};

}  // namespace

RunShares shares_of_run(const Workload& workload, Simulation& simulation, Time end, bool complete) {
  RunShares result;
  Runtime& runtime = simulation.runtime();
  CollectiveTransfers transfers(workload, runtime.rank_transfers(end), runtime.records().collectives, end, complete);
  CallGroups groups(workload);
  const bool sums_up = simulation.group().rank() == 0;
  for_all_calls(simulation.group(), workload.call_count(), transfers.parts(), transfers.ranks(),
                [&](std::uint64_t first, std::span<const CallTimes> times) {
                  transfers.add(first, times);
                  for (std::size_t i = 0; sums_up && i < times.size(); ++i) {
                    if (first + i < first_calls) result.first_calls.push_back(times[i]);
                    groups.add(static_cast<std::uint32_t>(first + i), times[i], result.groups);
                  }
                });
  const std::vector<RankRecord> records = runtime.rank_records(end);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const RankRecord& row = records[i];
    const std::int64_t exposed = transfers.exposed(i);
    result.ranks.push_back({row.compute, row.communication - row.exposed, exposed, row.exposed - exposed, row.idle});
  }
  return result;
}

std::vector<RankShares> shares_of_jobs(const std::vector<JobRecord>& jobs, const std::vector<RankRecord>& ranks,
                                       const std::vector<RankShares>& shares, const ProcessGroup& group) {
  std::vector<RankShares> result(jobs.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto job = std::upper_bound(jobs.begin(), jobs.end(), ranks[i].rank, [](std::uint32_t rank, const auto& one) {
      return rank < one.first_rank + one.ranks;
    });
    RankShares& sum = result[static_cast<std::size_t>(job - jobs.begin())];
    sum.compute += shares[i].compute;
    sum.hidden += shares[i].hidden;
    sum.exposed += shares[i].exposed;
    sum.waiting += shares[i].waiting;
  }
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    for (std::int64_t* part : {&result[j].compute, &result[j].hidden, &result[j].exposed, &result[j].waiting})
      *part = static_cast<std::int64_t>(group.sum(static_cast<std::uint64_t>(*part))) / jobs[j].ranks;
    result[j].idle = jobs[j].time() - result[j].compute - result[j].exposed - result[j].waiting;
  }
  return result;
}

}  // namespace weft
