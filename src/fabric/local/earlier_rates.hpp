// SPDX-License-Identifier: GPL-2.0-only
// The work of ports at rates that they no longer have.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "fabric/packet/port.hpp"
#include "units/bandwidth.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// Ports count work in time, and their present rate turns that into bytes. Where a failure changes the rate, what was
/// before is kept here in bytes. Nothing is looked up per packet.
class EarlierRates {
 public:
  /// The port has another rate from `now` on; `waiting`: bytes on the wire of what waits behind the packet being sent,
  /// which goes on at the old rate.
  void change(OutputPort& port, Time now, Bytes waiting) {
    Earlier& earlier = of_link_[port.directed_link];
    const Bytes before = bytes_sent_in(port.peak_backlog, port.rate);
    const Bytes here = unsent(port, now) + waiting;
    earlier = {port.free_at, port.free_at > now ? rate(port) : Bandwidth(), std::max({earlier.peak, before, here})};
    port.peak_backlog = Time();
  }
  /// Bytes that the port has begun to send, or has committed itself to, and that have not left at `time`.
  Bytes unsent(const OutputPort& port, Time time) const {
    return bytes_sent_in(std::max(Time(), port.free_at - time), rate(port));
  }
  /// True while the port sends a packet at a rate that it no longer has.
  bool sends_at_old_rate(const OutputPort& port, Time now) const {
    return port.free_at > now && rate(port) != port.rate;
  }
  /// While it does: `waiting`, the work behind that packet, has grown.
  void note_peak(const OutputPort& port, Time now, Time waiting) {
    Bytes& peak = of_link_.at(port.directed_link).peak;
    peak = std::max(peak, unsent(port, now) + bytes_sent_in(waiting, port.rate));
  }
  /// Bytes of the longest queue at earlier rates; 0: there were none.
  Bytes peak(std::uint32_t directed_link) const {
    const auto found = of_link_.find(directed_link);
    return found == of_link_.end() ? Bytes() : found->second.peak;
  }

 private:
  struct Earlier {
    Time until;  // a packet that ends then was sent at `rate`
    Bandwidth rate;
    Bytes peak;
  };
  Bandwidth rate(const OutputPort& port) const {
    if (of_link_.empty()) [[likely]]
      return port.rate;
    const auto found = of_link_.find(port.directed_link);
    const bool old = found != of_link_.end() && found->second.rate > Bandwidth() && found->second.until == port.free_at;
    return old ? found->second.rate : port.rate;
  }
  std::map<std::uint32_t, Earlier> of_link_;
};

}  // namespace weft
