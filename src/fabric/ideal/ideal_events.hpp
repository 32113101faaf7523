// SPDX-License-Identifier: GPL-2.0-only
// The pending events of the ideal network, in order.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "units/time.hpp"

namespace weft {

/// One pending event. Events of one time are ordered by `order` and `number`, which no two of them share both unless it
/// does not matter which is first.
struct IdealEvent {
  Time time;             ///< not negative
  std::uint64_t order;   ///< kind << 56 | place
  std::uint64_t number;  ///< among those of one place
  std::uint64_t what;
  bool operator>(const IdealEvent& other) const {
    return order != other.order ? order > other.order : number > other.number;
  }
};

/// A radix heap (Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path problem", Journal of the ACM
/// 37(2), 1990, doi:10.1145/77600.77615): new events are never before the time of the last one that was taken. An event
/// lies in the bucket of the highest bit in which its time differs from that; it moves to lower buckets now and then,
/// never up, and a move is a copy. Only those of one time are ever compared with each other: they are sorted together.
class IdealEvents {
 public:
  IdealEvents() { min_.fill(none); }

  bool empty() const { return filled_ == 0; }
  /// Time of the first event, or Time::max().
  Time next_time() const { return empty() ? none : min_[static_cast<std::size_t>(std::countr_zero(filled_))]; }
  void push(const IdealEvent& event) {
    const std::size_t bucket = bucket_of(event.time);
    if (bucket > 0) return add(bucket, event);
    // Beside those of this time that have been put in order; these are few.
    late_.push_back(event);
    std::push_heap(late_.begin(), late_.end(), std::greater<>());
    filled_ |= 1;
    min_[0] = event.time;
  }
  /// Requires !empty().
  IdealEvent pop() {
    if ((filled_ & 1) == 0) come_to(static_cast<std::size_t>(std::countr_zero(filled_)));
    std::vector<IdealEvent>& now = buckets_[0];
    IdealEvent event;
    if (head_ < now.size() && (late_.empty() || late_.front() > now[head_])) {
      event = now[head_++];
    } else {
      std::pop_heap(late_.begin(), late_.end(), std::greater<>());
      event = late_.back();
      late_.pop_back();
    }
    if (head_ == now.size() && late_.empty()) {
      now.clear();
      head_ = 0;
      forget(0);
    }
    return event;
  }
  std::size_t memory_bytes() const {
    std::size_t bytes = 0;
    for (const auto& bucket : buckets_) bytes += bucket.capacity() * sizeof(IdealEvent);
    return bytes;
  }

 private:
  static constexpr Time none = Time::max();
  static constexpr std::size_t count = 64;

  std::size_t bucket_of(Time time) const {
    return static_cast<std::size_t>(
        std::bit_width(static_cast<std::uint64_t>(time.ps()) ^ static_cast<std::uint64_t>(last_.ps())));
  }
  void add(std::size_t bucket, const IdealEvent& event) {
    buckets_[bucket].push_back(event);
    filled_ |= std::uint64_t{1} << bucket;
    min_[bucket] = std::min(min_[bucket], event.time);
  }
  void forget(std::size_t bucket) {
    filled_ &= ~(std::uint64_t{1} << bucket);
    min_[bucket] = none;
  }
  /// The first event is in `bucket`: its time becomes the last one, and the bucket's events move down.
  void come_to(std::size_t bucket) {
    last_ = min_[bucket];
    moving_.swap(buckets_[bucket]);
    forget(bucket);
    for (const IdealEvent& event : moving_) add(bucket_of(event.time), event);
    moving_.clear();
    moving_.swap(buckets_[bucket]);
    put_in_order(buckets_[0]);
  }

  /// Hosts that act alike, one after another, have pushed theirs in order, or in two ordered rows: a ring closes.
  static void put_in_order(std::vector<IdealEvent>& events) {
    const auto before = [](const IdealEvent& a, const IdealEvent& b) { return b > a; };
    const auto row = std::is_sorted_until(events.begin(), events.end(), before);
    if (row == events.end()) return;
    if (std::is_sorted_until(row, events.end(), before) == events.end())
      std::inplace_merge(events.begin(), row, events.end(), before);
    else
      std::sort(events.begin(), events.end(), before);
  }

  Time last_;
  std::size_t head_ = 0;      // of bucket 0: those before have been taken
  std::uint64_t filled_ = 0;  // bit b: bucket b has events
  std::array<Time, count> min_;
  std::array<std::vector<IdealEvent>, count> buckets_;
  std::vector<IdealEvent> moving_;
  std::vector<IdealEvent> late_;  // heap: of the last time, pushed since
};

}  // namespace weft
