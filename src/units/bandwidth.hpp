// SPDX-License-Identifier: GPL-2.0-only
// Link and port rates, and the exact time that data takes on them.
#pragma once

#include <compare>
#include <cstdint>

#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// A data rate. Unit: bit/s, signed 64 bit.
class Bandwidth {
 public:
  constexpr Bandwidth() = default;
  static constexpr Bandwidth from_bps(std::int64_t bps) { return Bandwidth(bps); }
  static constexpr Bandwidth from_gbps(std::int64_t gbps) { return Bandwidth(gbps * 1'000'000'000); }

  constexpr std::int64_t bps() const { return bps_; }

  friend constexpr auto operator<=>(Bandwidth, Bandwidth) = default;

 private:
  constexpr explicit Bandwidth(std::int64_t bps) : bps_(bps) {}
  std::int64_t bps_ = 0;
};

/// Time to put `amount` on a wire of `rate`: ceil(8e12 * bytes / bps) ps in 128-bit arithmetic, so that a link
/// never beats its rate and no size overflows; Time::limit() if it is longer than that. Requires rate > 0.
constexpr Time serialization_time(Bytes amount, Bandwidth rate) {
  const auto bits_ps = static_cast<unsigned __int128>(amount.count()) * 8 * 1'000'000'000'000U;
  const auto bps = static_cast<unsigned __int128>(rate.bps());
  const auto ps = (bits_ps + bps - 1) / bps;
  const auto max = static_cast<unsigned __int128>(Time::limit().ps());
  return ps < max ? Time::from_ps(static_cast<std::int64_t>(ps)) : Time::limit();
}

/// What a wire of `rate` sends in `time`, whole bytes: floor(bps * ps / 8e12). Requires that it fits into 63 bits.
constexpr Bytes bytes_sent_in(Time time, Bandwidth rate) {
  return Bytes(static_cast<std::int64_t>(static_cast<__int128>(time.ps()) * rate.bps() / 8'000'000'000'000));
}
/// The same with the byte that has been begun: rounded up.
constexpr Bytes bytes_begun_in(Time time, Bandwidth rate) {
  const __int128 bits_ps = static_cast<__int128>(time.ps()) * rate.bps();
  return Bytes(static_cast<std::int64_t>((bits_ps + 7'999'999'999'999) / 8'000'000'000'000));
}

}  // namespace weft
