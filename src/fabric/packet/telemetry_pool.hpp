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
#include "support/basics/contract.hpp"
#include "support/system/huge_pages.hpp"
#include "transport/congestion_control/congestion_control.hpp"
#include "transport/messages/message.hpp"

namespace weft {

/// The record that travels with a packet to another process: the first `count` hops, and zeros.
struct TelemetryRecord {
  static constexpr std::uint32_t max_hops = max_telemetry_hops;
  std::uint32_t count = 0;
  std::uint32_t reserved = 0;
  std::array<HopTelemetry, max_hops> hops{};
};
static_assert(std::is_trivially_copyable_v<TelemetryRecord>);

/// Records of packets by handle, with a free list. A handle says where its record is and how many hops are in it; it is
/// a name within one process.
///
/// Of many packets under way the records lie anywhere in memory, and each hop writes into another one: so a hop is half
/// a cache line, of which it touches no other, and how many there are travels with the packet. Nobody sets to zero what
/// no hop has written, and records lie in huge pages.
class TelemetryPool {
 public:
  static constexpr std::uint32_t max_hops = TelemetryRecord::max_hops;

  std::uint32_t add() {
    if (free_ == no_slot) grow();
    const std::uint32_t handle = free_;
    free_ = hops_of(handle)[0].directed_link;
    ++live_;
    return handle;
  }
  void release(std::uint32_t handle) {
    handle -= count_of(handle);
    hops_of(handle)[0].directed_link = free_;
    free_ = handle;
    --live_;
  }
  void add_hop(std::uint32_t& handle, const HopTelemetry& hop) {
    if (count_of(handle) == max_hops) [[unlikely]]
      return;
    hops_of(handle)[count_of(handle)] = hop;
    ++handle;
  }
  std::span<const HopTelemetry> hops(std::uint32_t handle) const { return {hops_of(handle), count_of(handle)}; }
  /// Prefetches the memory of the next hop, and of the existing ones.
  void fetch_next(std::uint32_t handle) const { fetch_line(hops_of(handle) + count_of(handle)); }
  void fetch_all(std::uint32_t handle) const { fetch(hops_of(handle), hops_of(handle) + count_of(handle)); }

  // To another process ------------------------------------------------------------------------------------------------
  TelemetryRecord take(std::uint32_t handle) {
    TelemetryRecord record;
    record.count = count_of(handle);
    std::copy_n(hops_of(handle), record.count, record.hops.begin());
    release(handle);
    return record;
  }
  std::uint32_t add(const TelemetryRecord& record) {
    const std::uint32_t handle = add();
    std::copy_n(record.hops.begin(), record.count, hops_of(handle));
    return handle + record.count;
  }

  std::uint64_t live() const { return live_; }
  std::uint64_t memory_bytes() const { return chunks_.size() * sizeof(Chunk); }

 private:
  // As many as fill a huge page: of a page that a chunk filled in part, the kernel would clear the rest in vain.
  static constexpr std::uint32_t chunk_records = huge_page / (max_hops * sizeof(HopTelemetry));
  static constexpr std::uint32_t places = 16;  // a handle is 16 times the number of its record, and hops
  static_assert(max_hops < places - 1, "no handle is no_slot");
  struct alignas(64) Chunk {
    std::byte hops[chunk_records * max_hops * sizeof(HopTelemetry)];
  };
  static_assert(std::is_trivially_default_constructible_v<Chunk>);

  struct Free {
    void operator()(Chunk* chunk) const { HugeAllocator<Chunk>().deallocate(chunk, 1); }
  };

  static constexpr std::uint32_t count_of(std::uint32_t handle) { return handle % places; }
  HopTelemetry* hops_of(std::uint32_t handle) const {
    const std::uint32_t record = handle / places;
    return reinterpret_cast<HopTelemetry*>(chunks_[record / chunk_records]->hops) + record % chunk_records * max_hops;
  }
  [[gnu::noinline]] void grow() {
    const auto first = static_cast<std::uint32_t>(chunks_.size()) * chunk_records;
    WEFT_EXPECT(first < no_slot / places - chunk_records, "{} telemetry records are held", live_);
    chunks_.push_back(std::unique_ptr<Chunk, Free>(HugeAllocator<Chunk>().allocate(1)));
    for (std::uint32_t i = 0; i < chunk_records; ++i)
      hops_of((first + i) * places)[0].directed_link = i + 1 < chunk_records ? (first + i + 1) * places : no_slot;
    free_ = first * places;
  }

  std::vector<std::unique_ptr<Chunk, Free>> chunks_;
  std::uint32_t free_ = no_slot;  // the next free one stands in the record, where the link of its first hop does
  std::uint64_t live_ = 0;
};

}  // namespace weft
