// SPDX-License-Identifier: GPL-2.0-only
// In-band telemetry of packets under way: what each port on the way has written into the packet.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/congestion_control.hpp"
#include "transport/message.hpp"

namespace weft {

/// The records of one packet. Hops beyond `most` are not recorded (HPCC's header has room for 5; no topology here has
/// longer paths than this).
struct Telemetry {
  static constexpr std::uint32_t most = 10;
  std::uint32_t count = 0;
  std::uint32_t next = no_slot;  ///< of the free list
  std::array<HopTelemetry, most> hops;

  void add(const HopTelemetry& hop) {
    if (count < most) hops[count++] = hop;
  }
  std::span<const HopTelemetry> view() const { return {hops.data(), count}; }
};

/// Records by slot, with a free list. Slots are names within one process.
class TelemetryPool {
 public:
  std::uint32_t add() {
    std::uint32_t slot = free_;
    if (slot == no_slot) {
      slot = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      free_ = slots_[slot].next;
    }
    slots_[slot].count = 0;
    ++live_;
    return slot;
  }
  void release(std::uint32_t slot) {
    slots_[slot].next = free_;
    free_ = slot;
    --live_;
  }
  Telemetry& operator[](std::uint32_t slot) { return slots_[slot]; }
  std::uint64_t live() const { return live_; }

 private:
  std::vector<Telemetry> slots_;
  std::uint32_t free_ = no_slot;
  std::uint64_t live_ = 0;
};

}  // namespace weft
