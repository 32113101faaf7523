// SPDX-License-Identifier: GPL-2.0-only
// In-band telemetry of packets under way: what each port on the way has written into the packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "transport/congestion_control.hpp"
#include "transport/message.hpp"

namespace weft {

/// The records of one packet. Hops beyond `most` are not recorded (HPCC's header has room for 5; no topology here has
/// longer paths than this).
struct Telemetry {
  static constexpr std::uint32_t most = 10;
  std::uint32_t count;
  std::uint32_t next;  ///< of the free list
  /// HopTelemetry, the first `count` of them: nobody sets the others to zero, for most paths are shorter.
  alignas(HopTelemetry) std::byte hops[most * sizeof(HopTelemetry)];

  void add(const HopTelemetry& hop) {
    if (count < most) reinterpret_cast<HopTelemetry*>(hops)[count++] = hop;
  }
  /// Before it goes to another process: what is there from before stays here.
  void clear_rest() { std::memset(hops + count * sizeof(HopTelemetry), 0, (most - count) * sizeof(HopTelemetry)); }
  std::span<const HopTelemetry> view() const { return {reinterpret_cast<const HopTelemetry*>(hops), count}; }
};
static_assert(std::is_trivially_copyable_v<Telemetry> && std::is_trivially_default_constructible_v<Telemetry>);

/// Records by slot, with a free list. Slots are names within one process. Records stay where they are.
class TelemetryPool {
 public:
  std::uint32_t add() {
    if (free_ == no_slot) grow();
    const std::uint32_t slot = free_;
    Telemetry& record = (*this)[slot];
    free_ = record.next;
    record.count = 0;
    ++live_;
    return slot;
  }
  void release(std::uint32_t slot) {
    (*this)[slot].next = free_;
    free_ = slot;
    --live_;
  }
  Telemetry& operator[](std::uint32_t slot) { return chunks_[slot / chunk][slot % chunk]; }
  std::uint64_t live() const { return live_; }

 private:
  static constexpr std::uint32_t chunk = 64;

  [[gnu::noinline]] void grow() {
    const auto first = static_cast<std::uint32_t>(chunks_.size() * chunk);
    chunks_.push_back(std::make_unique_for_overwrite<Telemetry[]>(chunk));
    for (std::uint32_t i = 0; i < chunk; ++i) chunks_.back()[i].next = i + 1 < chunk ? first + i + 1 : no_slot;
    free_ = first;
  }

  std::vector<std::unique_ptr<Telemetry[]>> chunks_;
  std::uint32_t free_ = no_slot;
  std::uint64_t live_ = 0;
};

}  // namespace weft
