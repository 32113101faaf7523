// SPDX-License-Identifier: GPL-2.0-only
// In-band telemetry of packets under way: what each port on the way has written into the packet.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "fabric/packet/fetching.hpp"
#include "transport/congestion_control/congestion_control.hpp"
#include "transport/messages/message.hpp"

namespace weft {

/// What goes with a packet to another process: the first `count` hops, and zeros.
struct TelemetryRecord {
  static constexpr std::uint32_t max_hops = max_telemetry_hops;
  std::uint32_t count = 0;
  std::uint32_t reserved = 0;
  std::array<HopTelemetry, max_hops> hops{};
};
static_assert(std::is_trivially_copyable_v<TelemetryRecord>);

/// Records of packets by slot, with a free list. Slots are names within one process.
///
/// Of many packets under way the records lie anywhere in memory, and each hop writes into another one: so a hop is half
/// a cache line, of which it touches no other, and how many hops a record has stands apart, close together. Nobody sets
/// to zero what no hop has written.
class TelemetryPool {
 public:
  static constexpr std::uint32_t max_hops = TelemetryRecord::max_hops;

  std::uint32_t add() {
    if (free_ == no_slot) grow();
    const std::uint32_t slot = free_;
    free_ = hops_of(slot)[0].directed_link;
    counts_[slot] = 0;
    ++live_;
    return slot;
  }
  void release(std::uint32_t slot) {
    hops_of(slot)[0].directed_link = free_;
    free_ = slot;
    --live_;
  }
  void add_hop(std::uint32_t slot, const HopTelemetry& hop) {
    const std::uint8_t count = counts_[slot];
    if (count == max_hops) [[unlikely]]
      return;
    hops_of(slot)[count] = hop;
    counts_[slot] = count + 1;
  }
  std::span<const HopTelemetry> hops(std::uint32_t slot) const { return {hops_of(slot), counts_[slot]}; }
  /// Asks for the memory of the next hop, and of those that there are.
  void fetch_next(std::uint32_t slot) const { fetch_line(hops_of(slot) + counts_[slot]); }
  void fetch_all(std::uint32_t slot) const { fetch(hops_of(slot), hops_of(slot) + counts_[slot]); }

  // To another process ------------------------------------------------------------------------------------------------
  TelemetryRecord take(std::uint32_t slot) {
    TelemetryRecord record;
    record.count = counts_[slot];
    std::copy_n(hops_of(slot), record.count, record.hops.begin());
    release(slot);
    return record;
  }
  std::uint32_t add(const TelemetryRecord& record) {
    const std::uint32_t slot = add();
    counts_[slot] = static_cast<std::uint8_t>(record.count);
    std::copy_n(record.hops.begin(), record.count, hops_of(slot));
    return slot;
  }

  std::uint64_t live() const { return live_; }
  std::uint64_t memory_bytes() const { return counts_.capacity() + chunks_.size() * sizeof(Chunk); }

 private:
  static constexpr std::uint32_t chunk_records = 64;
  struct alignas(64) Chunk {
    std::byte hops[chunk_records * max_hops * sizeof(HopTelemetry)];
  };
  static_assert(std::is_trivially_default_constructible_v<Chunk>);

  HopTelemetry* hops_of(std::uint32_t slot) const {
    return reinterpret_cast<HopTelemetry*>(chunks_[slot / chunk_records]->hops) + slot % chunk_records * max_hops;
  }
  [[gnu::noinline]] void grow() {
    const auto first = static_cast<std::uint32_t>(counts_.size());
    chunks_.push_back(std::make_unique_for_overwrite<Chunk>());
    counts_.resize(first + chunk_records);
    for (std::uint32_t i = 0; i < chunk_records; ++i)
      hops_of(first + i)[0].directed_link = i + 1 < chunk_records ? first + i + 1 : no_slot;
    free_ = first;
  }

  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<std::uint8_t> counts_;  // [slots] hops that are recorded
  std::uint32_t free_ = no_slot;      // the next free one stands in the record, where the link of its first hop does
  std::uint64_t live_ = 0;
};

}  // namespace weft
