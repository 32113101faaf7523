// SPDX-License-Identifier: GPL-2.0-only
#include "app/reports/time_shares.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "schedule/collective/collective.hpp"
#include "support/system/sorted_records.hpp"

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
                     counted_bytes(call)};
    if (groups.size() >= max_groups && !groups.contains(key)) key.bytes = -1;
    CallGroup& group = groups[key];
    const std::int64_t time = times.end - times.first;
    ++group.calls;
    group.min = std::min(group.min, time);
    group.max = std::max(group.max, time);
    group.total += static_cast<double>(time);
    group.own += static_cast<double>(times.end - times.last);
    if (time > 0)
      group.bus_bandwidth += static_cast<double>(counted_bytes(call)) / static_cast<double>(time) * 1e3 *
                             bus_bandwidth_factor(call.kind, communicator.size());
  }

 private:
  const Workload& workload_;
  std::map<std::uint32_t, std::int64_t> strides_;
};

/// Spans rank after rank, each rank's in order; those that touch or overlap are one.
class SpansByRank {
 public:
  explicit SpansByRank(const SortedRecords<RankSpan>& spans) : spans_(spans) { more_ = spans_.next(next_); }

  /// The next one of `rank`, or false. Ranks in ascending order.
  bool next(std::uint32_t rank, TimeSpan& span) {
    while (more_ && next_.rank < rank) more_ = spans_.next(next_);
    if (!more_ || next_.rank != rank) return false;
    span = {next_.begin, next_.end};
    while ((more_ = spans_.next(next_)) && next_.rank == rank && next_.begin <= span.end)
      span.end = std::max(span.end, next_.end);
    return true;
  }

 private:
  SortedRecords<RankSpan>::Cursor spans_;
  RankSpan next_;
  bool more_ = false;
};

/// How much of a rank's spans both have. `next_a`, `next_b`: the next span, in order and apart, or false.
template <class NextA, class NextB>
std::int64_t common_time(NextA&& next_a, NextB&& next_b) {
  TimeSpan a, b;
  bool more = next_a(a) && next_b(b);
  std::int64_t sum = 0;
  while (more) {
    sum += std::max<std::int64_t>(0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
    more = a.end < b.end ? next_a(a) : next_b(b);
  }
  return sum;
}

/// Times of this process's ranks in collectives from the arrival of the last member on.
class CollectiveTransfers {
 public:
  CollectiveTransfers(const Workload& workload, const std::vector<RankTransfers>& ranks, const CollectiveLog& log,
                      Time end, bool complete)
      : workload_(workload), ranks_(ranks), parts_(log.parts()), end_(end.ps()), complete_(complete) {
    more_ = parts_.next(part_);
  }

  void add(std::uint64_t first, std::span<const CallTimes> times) {
    for (; more_ && part_.collective < first + times.size(); more_ = parts_.next(part_))
      add(part_.collective, times[part_.collective - first], part_.rank, part_.start, part_.end);
    for (const RankTransfers& rank : ranks_)
      for (const auto& [call, start] : rank.under_way)
        if (call >= first && call < first + times.size()) add(call, times[call - first], rank.rank, start, end_);
  }

  /// The exposed time of each rank of `ranks`, after the last add(). `undecided`: their spans taken before, sorted.
  std::vector<std::int64_t> exposed(const SortedRecords<RankSpan>& undecided) {
    transferring_.sort();
    SpansByRank transferring(transferring_), taken(undecided);
    std::vector<std::size_t> order(ranks_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return ranks_[a].rank < ranks_[b].rank; });
    std::vector<std::int64_t> result(ranks_.size());
    for (const std::size_t i : order) {
      const RankTransfers& rank = ranks_[i];
      auto rest = rank.undecided.begin();
      const auto next_undecided = [&](TimeSpan& span) {
        if (taken.next(rank.rank, span)) return true;
        if (rest == rank.undecided.end()) return false;
        span = *rest++;
        return true;
      };
      const auto next_transfer = [&](TimeSpan& span) { return transferring.next(rank.rank, span); };
      result[i] = rank.transferring + common_time(next_transfer, next_undecided);
    }
    return result;
  }

 private:
  void add(std::uint32_t call, const CallTimes& times, std::uint32_t rank, std::int64_t start, std::int64_t end) {
    if (!complete_ && times.entered < workload_.call(call).communicator->size()) return;
    const std::int64_t from = std::max(start, times.last);
    if (from < end) transferring_.add({rank, from, end});
  }

  const Workload& workload_;
  const std::vector<RankTransfers>& ranks_;
  CollectiveLog::PartCursor parts_;
  CollectivePart part_;
  bool more_ = false;
  SortedRecords<RankSpan> transferring_;
  std::int64_t end_;
  bool complete_;
};

}  // namespace

RunShares shares_of_run(const Workload& workload, Simulation& simulation, Time end, bool complete) {
  RunShares result;
  Runtime& runtime = simulation.runtime();
  RunRecords& written = runtime.records();
  written.collectives.sort();
  written.undecided.sort();
  const std::vector<RankTransfers> ranks = runtime.rank_transfers(end);
  CollectiveTransfers transfers(workload, ranks, written.collectives, end, complete);
  CallGroups groups(workload);
  const bool sums_up = simulation.group().rank() == 0;
  for_all_calls(simulation.group(), workload.call_count(), written.collectives, ranks,
                [&](std::uint64_t first, std::span<const CallTimes> times) {
                  transfers.add(first, times);
                  for (std::size_t i = 0; sums_up && i < times.size(); ++i) {
                    if (first + i < first_calls) result.first_calls.push_back(times[i]);
                    groups.add(static_cast<std::uint32_t>(first + i), times[i], result.groups);
                  }
                });
  const std::vector<RankRecord> records = runtime.rank_records(end);
  const std::vector<std::int64_t> exposed = transfers.exposed(written.undecided);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const RankRecord& row = records[i];
    result.ranks.push_back(
        {row.compute, row.communication - row.exposed, exposed[i], row.exposed - exposed[i], row.idle});
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
