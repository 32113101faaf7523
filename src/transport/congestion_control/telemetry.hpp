// SPDX-License-Identifier: GPL-2.0-only
// In-band telemetry: what a port writes into a packet that it sends.
#pragma once

#include <algorithm>
#include <cstdint>

#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// What telemetry says of a port: which one it is, and its rate.
class PortLabel {
 public:
  static constexpr unsigned bits = 28;
  static constexpr std::uint32_t max_rates = 256;

  PortLabel() = default;
  explicit constexpr PortLabel(std::uint32_t value) : value_(value) {}
  /// `rate`: its position in AckEvent::rates.
  constexpr PortLabel(std::uint32_t directed_link, std::uint32_t rate)
      : value_(rate << link_bits | (directed_link & link_mask)) {}

  /// Only a network of more than half a million links has ports whose labels are the same by chance. A sender would
  /// have to meet two of them in turn at the same hop, and would then compare counters of different ports once.
  bool is_same_port(PortLabel other) const { return ((value_ ^ other.value_) & link_mask) == 0; }
  std::uint32_t rate() const { return value_ >> link_bits; }
  std::uint32_t value() const { return value_; }

 private:
  static constexpr unsigned link_bits = 20;
  static constexpr std::uint32_t link_mask = (1U << link_bits) - 1;
  std::uint32_t value_ = 0;
};

/// One direction of a link as in-band telemetry sees it at the moment at which the data packet leaves it: 16 bytes,
/// four share a cache line. As in HPCC's header (Li et al., SIGCOMM 2019, figure 7: 8 bytes) times and counts are
/// stored modulo a power of two, so that only what has changed between two packets can be read.
class HopTelemetry {
 public:
  /// Between the ACKs of packets whose telemetry is compared: 69 ms, half of the time that is told, because packets do
  /// not take the same time. 64 GiB, the bytes that are told, leave a port of 8 Tb/s in that time.
  static constexpr Time max_gap = Time::from_ps(std::int64_t{1} << 36);

  HopTelemetry() = default;
  /// `time`: when the packet's transmission began. `transmitted`: on the wire by this port before the packet.
  /// `queued`: wire bytes that wait behind the packet; 64 MiB less one if there are more.
  HopTelemetry(Time time, Bytes transmitted, Bytes queued, PortLabel port)
      : time_and_queue_(static_cast<std::uint64_t>(time.ps()) << queue_bits |
                        std::min(static_cast<std::uint64_t>(queued.count()), max_queue)),
        transmitted_and_port_(static_cast<std::uint64_t>(transmitted.count()) << PortLabel::bits | port.value()) {}

  Time elapsed_since(const HopTelemetry& before) const {
    return Time::from_ps(
        static_cast<std::int64_t>((time_and_queue_ & ~max_queue) - (before.time_and_queue_ & ~max_queue)) >>
        queue_bits);
  }
  Bytes transmitted_since(const HopTelemetry& before) const {
    return Bytes(static_cast<std::int64_t>(
        ((transmitted_and_port_ & ~port_mask) - (before.transmitted_and_port_ & ~port_mask)) >> PortLabel::bits));
  }
  Bytes queued() const { return Bytes(static_cast<std::int64_t>(time_and_queue_ & max_queue)); }
  void set_rate(std::uint32_t rate) {
    transmitted_and_port_ = (transmitted_and_port_ & ~port_mask) | PortLabel(port().value(), rate).value();
  }
  PortLabel port() const { return PortLabel(static_cast<std::uint32_t>(transmitted_and_port_ & port_mask)); }

 private:
  static constexpr unsigned queue_bits = 26;
  static constexpr std::uint64_t max_queue = (std::uint64_t{1} << queue_bits) - 1;
  static constexpr std::uint64_t port_mask = (std::uint64_t{1} << PortLabel::bits) - 1;

  std::uint64_t time_and_queue_;        // 38 bits of the time in ps, and the bytes
  std::uint64_t transmitted_and_port_;  // 36 bits of the bytes, and the label
};
static_assert(sizeof(HopTelemetry) == 16);
/// Hops beyond these are not recorded (HPCC's header has room for 5; no topology here has longer paths than this).
constexpr std::uint32_t max_telemetry_hops = 10;

}  // namespace weft
