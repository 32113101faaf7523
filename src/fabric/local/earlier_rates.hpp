// SPDX-License-Identifier: GPL-2.0-only
// What ports have done at a rate that they no longer have.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "fabric/packet/port.hpp"
#include "units/time.hpp"

namespace weft {

/// Ports count work in time, and their present rate turns that into bytes. Where a failure changes the rate, what was
/// before is kept here in bytes. Nothing is looked up per packet.
class EarlierRates {
 public:
  /// The port has another rate from `now` on; `waiting`: bytes on the wire of what waits behind the packet being sent,
  /// which goes on at the old rate.
  void change(OutputPort& port, Time now, std::int64_t waiting) {
    Earlier& earlier = of_link_[port.directed_link];
    const std::int64_t before = bytes(port.peak_backlog, port.rate_bps);
    const std::int64_t here = unsent(port, now) + waiting;
    earlier = {port.free_at, port.free_at > now ? rate(port) : 0, std::max({earlier.peak, before, here})};
    port.peak_backlog = Time();
  }
  /// Bytes that the port has begun to send, or has committed itself to, and that have not left at `time`.
  std::int64_t unsent(const OutputPort& port, Time time) const {
    return bytes(std::max(Time(), port.free_at - time), rate(port));
  }
  /// What the port is sending it sends at a rate that it no longer has.
  bool sends_at_old_rate(const OutputPort& port, Time now) const {
    return port.free_at > now && rate(port) != port.rate_bps;
  }
  /// While it does: `waiting`, the work behind that packet, has grown.
  void note_peak(const OutputPort& port, Time now, Time waiting) {
    std::int64_t& peak = of_link_.at(port.directed_link).peak;
    peak = std::max(peak, unsent(port, now) + bytes(waiting, port.rate_bps));
  }
  /// Bytes of the longest queue at earlier rates; 0: there were none.
  std::int64_t peak(std::uint32_t directed_link) const {
    const auto found = of_link_.find(directed_link);
    return found == of_link_.end() ? 0 : found->second.peak;
  }

 private:
  struct Earlier {
    Time until;  // a packet that ends then was sent at `rate_bps`
    std::int64_t rate_bps = 0;
    std::int64_t peak = 0;
  };
  static std::int64_t bytes(Time work, std::int64_t rate_bps) {
    return static_cast<std::int64_t>(static_cast<__int128>(work.ps()) * rate_bps / 8'000'000'000'000);
  }
  std::int64_t rate(const OutputPort& port) const {
    if (of_link_.empty()) [[likely]]
      return port.rate_bps;
    const auto found = of_link_.find(port.directed_link);
    const bool old = found != of_link_.end() && found->second.rate_bps > 0 && found->second.until == port.free_at;
    return old ? found->second.rate_bps : port.rate_bps;
  }
  std::map<std::uint32_t, Earlier> of_link_;
};

}  // namespace weft
