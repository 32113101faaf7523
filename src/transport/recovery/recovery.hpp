// SPDX-License-Identifier: GPL-2.0-only
// Recovery of lost packets in a reliable connection.
#pragma once

#include <cstdint>

#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

enum class Recovery : std::uint8_t {
  go_back_n,         ///< the receiver drops what comes after a gap; the sender starts again at the gap
  selective_repeat,  ///< the receiver keeps it; the sender repeats what is missing (IRN)
  go_back_0,         ///< both start the message again (early RoCE NICs)
};

/// Rules of all reliable connections of a fabric.
struct RecoveryRules {
  Recovery kind = Recovery::go_back_n;
  /// Without progress for so long, the oldest packet counts as lost. Two values as Mittal et al., "Revisiting network
  /// support for RDMA", SIGCOMM 2018, section 4.1, doi:10.1145/3230543.3230557: the low one with at most `few` packets
  /// in flight.
  Time timeout = Time::from_us(320);
  Time timeout_low = Time::from_us(100);
  /// Both are those of a network with this round trip: in the article's, the longest path has six links of 2 us. A
  /// connection with a longer round trip has longer timers by the difference. Time::max(): timers are as they were set.
  Time timed_for = Time::from_us(24);
  std::uint32_t few = 3;
  /// Selective repeat: a packet counts as lost when one that was sent so many packets later has arrived. 1 where
  /// packets of a connection keep their order.
  std::uint32_t reordering = 1;
  std::uint32_t ack_interval = 1;  ///< packets per cumulative ACK; the last of a message is acknowledged at once
  /// An ACK covers packets that are all marked, or all not, so that the sender can count marked bytes whatever the ACK
  /// interval (Alizadeh et al., "Data center TCP", SIGCOMM 2010, section 3.2, doi:10.1145/1851182.1851192).
  bool separate_marks = false;

  /// By how much the timers of a connection are longer.
  Time longer_by(Time round_trip) const { return round_trip > timed_for ? round_trip - timed_for : Time(); }
  bool keeps_gaps() const { return kind == Recovery::selective_repeat; }
};

}  // namespace weft
