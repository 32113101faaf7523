// SPDX-License-Identifier: GPL-2.0-only
// Time whose reason is not known yet, of a rank or of a collective with several lanes.
#pragma once

#include <cstdint>
#include <utility>

#include "support/basics/time_parts.hpp"

namespace weft {

/// At each moment every lane of a collective either handles a slice or waits. Of a span, `handling` gets the share of
/// the lanes that handled; the share of the lanes that waited stays open until a wait ends, whose reason it gets.
/// Shares are rounded down to whole ps, and what they leave stays open, so that all parts add up to the time.
class OpenWaits {
 public:
  void pass(std::int64_t ps) { fresh_ += ps; }
  /// During the time since the last call `busy` of `lanes` handled slices.
  void settle(TimeParts& parts, std::uint32_t busy, std::uint32_t lanes) {
    const std::int64_t handled =
        busy >= lanes ? fresh_ : static_cast<std::int64_t>(static_cast<__int128>(fresh_) * busy / lanes);
    parts[TimePart::handling] += handled;
    waits_ += fresh_ - handled;
    fresh_ = 0;
  }
  std::int64_t open() const { return fresh_ + waits_; }
  std::int64_t take() { return std::exchange(fresh_, 0) + std::exchange(waits_, 0); }
  /// The time since the last call of settle() or take() alone.
  std::int64_t take_fresh() { return std::exchange(fresh_, 0); }

 private:
  std::int64_t fresh_ = 0;  // ps since the last call of settle()
  std::int64_t waits_ = 0;  // ps of waits before that
};

/// The reason `why` (runtime/books/explanation.hpp) of a wait of `wait` ps, in the same shares for `open` ps.
template <class Why>
TimeParts parts_of_wait(const Why& why, std::int64_t wait, std::int64_t open) {
  TimeParts parts;
  const bool whole = wait <= 0 || wait == open;
  why.add_to(parts, whole ? open : wait);
  if (!whole) parts.scale(wait, open);
  return parts;
}

}  // namespace weft
