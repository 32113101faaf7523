// SPDX-License-Identifier: GPL-2.0-only
// In-band telemetry of packets under way: what each port on the way has written into the packet.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "fabric/packet/fetching.hpp"
#include "support/basics/contract.hpp"
#include "support/system/huge_pages.hpp"
#include "transport/congestion_control/telemetry.hpp"
#include "transport/messages/message.hpp"
#include "units/bandwidth.hpp"

namespace weft {

/// The record that travels with a packet to another process, where rates have other positions: the first `count` hops,
/// and zeros.
struct TelemetryRecord {
  static constexpr std::uint32_t max_hops = max_telemetry_hops;
  std::uint32_t count = 0;
  std::uint32_t reserved = 0;
  std::array<HopTelemetry, max_hops> hops{};
  std::array<Bandwidth, max_hops> rates{};
};
static_assert(std::is_trivially_copyable_v<TelemetryRecord>);

/// Records of packets by handle, with a free list. A handle says where its record is and how many hops are in it; it is
/// a name within one process.
///
/// Of many packets under way the records lie anywhere in memory, and each hop writes into another one. So how many hops
/// there are travels with the packet, six of them lie in two cache lines, and nobody writes what no hop has written.
class TelemetryPool {
 public:
  static constexpr std::uint32_t max_hops = TelemetryRecord::max_hops;

  TelemetryPool() = default;
  TelemetryPool(const TelemetryPool&) = delete;
  TelemetryPool& operator=(const TelemetryPool&) = delete;
  ~TelemetryPool() { give_back(); }

  std::uint32_t add() {
    ++live_;
    if (free_ == no_slot) [[unlikely]]
      return add_fresh();
    const std::uint32_t handle = free_;
    std::memcpy(&free_, record_of(handle), sizeof(free_));
    return handle;
  }
  void release(std::uint32_t handle) {
    handle -= count_of(handle);
    std::memcpy(record_of(handle), &free_, sizeof(free_));
    free_ = handle;
    --live_;
  }
  void add_hop(std::uint32_t& handle, const HopTelemetry& hop) {
    if (count_of(handle) == max_hops) [[unlikely]]
      return;
    *next_of(handle) = hop;
    ++handle;
  }
  std::span<const HopTelemetry> hops(std::uint32_t handle) const { return {hops_of(handle), count_of(handle)}; }
  /// Prefetches the memory of the next hop, and of the existing ones.
  void fetch_next(std::uint32_t handle) const { fetch_line(next_of(handle)); }
  void fetch_all(std::uint32_t handle) const { fetch(hops_of(handle), next_of(handle)); }

  // Rates -------------------------------------------------------------------------------------------------------------
  /// By PortLabel::rate().
  std::span<const Bandwidth> rates() const { return rates_; }
  PortLabel label_of(std::uint32_t directed_link, Bandwidth rate) { return {directed_link, position_of(rate)}; }

  // To another process ------------------------------------------------------------------------------------------------
  TelemetryRecord take(std::uint32_t handle) {
    TelemetryRecord record;
    record.count = count_of(handle);
    std::copy_n(hops_of(handle), record.count, record.hops.begin());
    for (std::uint32_t h = 0; h < record.count; ++h) record.rates[h] = rates_[record.hops[h].port().rate()];
    release(handle);
    return record;
  }
  std::uint32_t add(const TelemetryRecord& record) {
    const std::uint32_t handle = add();
    for (std::uint32_t h = 0; h < record.count; ++h) {
      HopTelemetry hop = record.hops[h];
      hop.set_rate(position_of(record.rates[h]));
      hops_of(handle)[h] = hop;
    }
    return handle + record.count;
  }

  std::uint64_t live() const { return live_; }
  std::uint64_t memory_bytes() const { return capacity_ * record_bytes; }

 private:
  static constexpr std::size_t record_bytes = max_hops * sizeof(HopTelemetry);
  static constexpr std::uint32_t places = 16;  // a handle is 16 times the number of its record, and hops
  static_assert(max_hops < places - 1, "no handle is no_slot");
  static_assert(std::is_trivially_default_constructible_v<HopTelemetry>);

  static constexpr std::uint32_t count_of(std::uint32_t handle) { return handle % places; }
  std::byte* record_of(std::uint32_t handle) const { return memory_ + handle / places * record_bytes; }
  HopTelemetry* hops_of(std::uint32_t handle) const { return reinterpret_cast<HopTelemetry*>(record_of(handle)); }
  HopTelemetry* next_of(std::uint32_t handle) const { return hops_of(handle) + count_of(handle); }

  std::uint32_t position_of(Bandwidth rate) {
    const auto found = std::find(rates_.begin(), rates_.end(), rate);  // of a few
    if (found != rates_.end()) [[likely]]
      return static_cast<std::uint32_t>(found - rates_.begin());
    WEFT_EXPECT(rates_.size() < PortLabel::max_rates, "links have more than {} rates", PortLabel::max_rates);
    rates_.push_back(rate);
    return static_cast<std::uint32_t>(rates_.size() - 1);
  }
  [[gnu::noinline]] std::uint32_t add_fresh() {
    if (used_ == capacity_) grow();
    return used_++ * places;
  }
  void grow() {
    const std::uint32_t capacity = std::max(std::uint32_t{64}, 2 * capacity_);
    WEFT_EXPECT(capacity <= no_slot / places, "{} telemetry records are held", live_);
    std::byte* memory = HugeAllocator<std::byte>().allocate(capacity * record_bytes);
    if (used_ > 0) std::memcpy(memory, memory_, used_ * record_bytes);
    give_back();
    memory_ = memory;
    capacity_ = capacity;
  }
  void give_back() {
    if (memory_ != nullptr) HugeAllocator<std::byte>().deallocate(memory_, capacity_ * record_bytes);
  }

  std::byte* memory_ = nullptr;  // [capacity_][record_bytes], of which no one has written to those after used_
  std::uint32_t capacity_ = 0;
  std::uint32_t used_ = 0;
  std::uint32_t free_ = no_slot;  // the next free one stands at the beginning of the record
  std::uint64_t live_ = 0;
  std::vector<Bandwidth> rates_;
};

}  // namespace weft
