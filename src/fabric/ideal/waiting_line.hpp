// SPDX-License-Identifier: GPL-2.0-only
// A port at which messages wait for each other, known by when it is free.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "units/time.hpp"

namespace weft {

/// Gives each message the first free time of a port, in the order of requests: a message with work w that arrives at
/// `a` at the earliest takes w of what is free from then on, also between others, as a server does that never waits
/// while there is work. So a message that has taken long to arrive is not served after others that have overtaken it as
/// if it arrived with them. Of the times between others the latest `max` are remembered; older ones count as taken.
class WaitingLine {
 public:
  /// When the work is done.
  Time serve(Time from, Time work) {
    Time done = from;
    std::size_t at = count_;
    while (at > 0 && gaps_[at - 1].end > from) --at;
    while (at < count_ && work > Time()) {
      Gap& gap = gaps_[at];
      const Time begin = std::max(gap.begin, from);
      const Time taken = std::min(work, gap.end - begin);
      work -= taken;
      done = begin + taken;
      const Gap rest{done, gap.end};
      if (begin > gap.begin) {
        gap.end = begin;
        ++at;
        if (rest.end > rest.begin) insert(at, rest);
      } else if (rest.end > rest.begin) {
        gap = rest;
      } else {
        remove(at);
      }
    }
    if (work == Time()) return done;
    if (from > free_) insert(count_, {free_, from});
    free_ = std::max(free_, from) + work;
    return free_;
  }

 private:
  struct Gap {
    Time begin;
    Time end;
  };
  static constexpr std::size_t max = 8;

  void insert(std::size_t at, const Gap& gap) {
    if (count_ == max) {
      if (at == 0) return;
      remove(0);
      --at;
    }
    const auto place = gaps_.begin() + static_cast<std::ptrdiff_t>(at);
    std::copy_backward(place, gaps_.begin() + static_cast<std::ptrdiff_t>(count_),
                       gaps_.begin() + static_cast<std::ptrdiff_t>(count_ + 1));
    *place = gap;
    ++count_;
  }
  void remove(std::size_t at) {
    std::copy(gaps_.begin() + static_cast<std::ptrdiff_t>(at + 1), gaps_.begin() + static_cast<std::ptrdiff_t>(count_),
              gaps_.begin() + static_cast<std::ptrdiff_t>(at));
    --count_;
  }

  Time free_;
  std::size_t count_ = 0;
  std::array<Gap, max> gaps_;  // disjoint, in order
};

}  // namespace weft
