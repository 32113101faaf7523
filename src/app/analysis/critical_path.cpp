// SPDX-License-Identifier: GPL-2.0-only
#include "app/analysis/critical_path.hpp"

#include <algorithm>
#include <optional>

namespace weft {
namespace {

/// One rank's operations in the order of their ends, created on demand.
class ByEnd {
 public:
  explicit ByEnd(const ScheduledRank& rank) : rank_(rank) {}

  /// An operation that ended last, no later than `time`, and before the one at `position` started; none if there is
  /// none. Of several the one furthest down the program.
  std::optional<std::uint32_t> before(Time time, std::uint32_t position) {
    if (order_.empty()) sort();
    auto at = std::upper_bound(order_.begin(), order_.end(), time,
                               [this](Time t, std::uint32_t i) { return t < rank_.operations[i].end; });
    while (at != order_.begin()) {
      --at;
      // One without duration that started with it may have been after it.
      if (*at != position && (rank_.operations[*at].start < time || *at < position)) return *at;
    }
    return std::nullopt;
  }

 private:
  void sort() {
    for (std::uint32_t i = 0; i < rank_.operations.size(); ++i) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
      return rank_.operations[a].end < rank_.operations[b].end;
    });
  }
  const ScheduledRank& rank_;
  std::vector<std::uint32_t> order_;
};

class Walk {
 public:
  explicit Walk(const IdealSchedule& schedule) : schedule_(schedule) {
    for (const ScheduledRank& rank : schedule.ranks) by_end_.emplace_back(rank);
  }

  CriticalPath run() {
    find_last();
    std::uint64_t left = 1;  // no chain is longer than all operations, unless time stands still
    for (const ScheduledRank& rank : schedule_.ranks) left += rank.operations.size();
    bool more = any_;
    while (more && left-- > 0) {
      take();
      more = go_back();
    }
    path_.other += time_;
    return path_;
  }

 private:
  const ScheduledOperation& here() const { return schedule_.ranks[rank_].operations[position_]; }

  void find_last() {
    for (std::uint32_t r = 0; r < schedule_.ranks.size(); ++r)
      for (std::uint32_t i = 0; i < schedule_.ranks[r].operations.size(); ++i) {
        const Time end = schedule_.ranks[r].operations[i].end;
        if (any_ && end <= time_) continue;
        any_ = true;
        rank_ = r;
        position_ = i;
        time_ = end;
      }
    path_.other = schedule_.facts.simulated - time_;  // ACKs and credits after the last operation
  }

  /// The operation ends at time_; moves to the time at which it began to matter.
  void take() {
    ++path_.operations;
    const ScheduledOperation& one = here();
    if (one.kind == Operation::Kind::compute) {
      (one.host ? path_.host : path_.compute) += time_ - one.start;
      time_ = one.start;
      return;
    }
    const bool other = one.kind != Operation::Kind::send && one.end > one.start && one.ready <= time_ &&
                       (one.partner_rank != rank_ || one.partner_position != position_) &&
                       (one.kind == Operation::Kind::recv || one.ready > one.start);
    const Time from = other ? one.ready : one.start;
    path_.communication[one.group.empty() ? "other" : std::string(one.group)] += time_ - from;
    time_ = from;
    if (!other) return;
    rank_ = one.partner_rank;
    position_ = schedule_.ranks[one.partner_rank].operations.empty() ? 0 : one.partner_position;
  }

  /// Moves to the operation for which this one, which starts at time_, has waited.
  bool go_back() {
    if (time_ == Time()) return false;
    const ScheduledRank& rank = schedule_.ranks[rank_];
    const ScheduledOperation& one = here();
    for (std::uint32_t a = 0; a < one.after_count; ++a) {
      const std::uint32_t before = rank.after[one.after_begin + a];
      if (rank.operations[before].end != time_) continue;
      position_ = before;
      return true;
    }
    for (std::uint32_t before = position_; before-- > 0;) {
      const ScheduledOperation& other = rank.operations[before];
      if (other.stream != one.stream || one.stream == Stream::none) continue;
      if (other.end != time_) break;
      position_ = before;
      return true;
    }
    const auto before = by_end_[rank_].before(time_, position_);
    if (!before) return false;
    path_.other += time_ - rank.operations[*before].end;
    time_ = rank.operations[*before].end;
    position_ = *before;
    return true;
  }

  const IdealSchedule& schedule_;
  std::vector<ByEnd> by_end_;
  CriticalPath path_;
  bool any_ = false;
  std::uint32_t rank_ = 0, position_ = 0;
  Time time_;
};

}  // namespace

CriticalPath critical_path(const IdealSchedule& schedule) { return Walk(schedule).run(); }

}  // namespace weft
