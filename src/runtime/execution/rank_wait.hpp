// SPDX-License-Identifier: GPL-2.0-only
// What a rank waits for, to be told when no rank moves any more.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace weft {

/// A rank; or an aggregator in one collective and channel, since it serves all that it has at the same time.
struct Waiter {
  std::uint32_t rank = 0;
  std::uint32_t call = none;
  std::uint32_t channel = none;
  static constexpr std::uint32_t none = 0xffffffffU;
  auto operator<=>(const Waiter&) const = default;
};

/// One that waits for another one, and in which operation.
struct RankWait {
  Waiter waiter;
  Waiter awaited;
  std::uint32_t call = Waiter::none;  ///< the collective in which it waits, if it is one
  std::string text;                   ///< one line
};

}  // namespace weft
