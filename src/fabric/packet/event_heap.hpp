// SPDX-License-Identifier: GPL-2.0-only
// The next events of a node, other than arrivals of packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/packet/buffered_port.hpp"

namespace weft {

/// A binary heap of a node's events, the earliest first, and among those of one time by kind, port, lane and data.
///
/// Most events cause exactly one later event. So the running event keeps its place, the next pushed event takes this
/// place, and only if none was pushed it is removed at the end: take(), any number of push(), done().
///
/// Events are three words, copied word by word: processors hand a value over from a store to a load that follows soon
/// only if the load is not the wider one.
class EventHeap {
 public:
  bool empty() const { return items_.empty(); }
  /// Of the first event, as the following.
  Time time() const { return items_.front().time; }
  /// Time of the first event, or never.
  Time next() const { return items_.empty() ? Time::max() : time(); }
  NodeEvent::Kind kind() const { return static_cast<NodeEvent::Kind>(items_.front().order >> 40); }
  PortId port() const { return PortId(static_cast<std::uint32_t>(items_.front().order >> 8)); }
  NodeEvent front() const {
    const Item& item = items_.front();
    return {item.time,
            port(),
            static_cast<std::uint32_t>(item.detail >> 16),
            kind(),
            LaneId(static_cast<std::uint8_t>(item.order)),
            static_cast<std::uint16_t>(item.detail)};
  }

  /// The first event happens now.
  void take() { taken_ = true; }
  /// An event that is in no heap would be the first one.
  bool precedes(const NodeEvent& event) const { return items_.empty() || before(item_of(event), items_.front()); }
  void push(const NodeEvent& event) {
    const Item item = item_of(event);
    if (taken_) {
      taken_ = false;
      sink(0, item);
    } else {
      items_.emplace_back();
      rise(items_.size() - 1, item);
    }
  }
  /// What take() has taken has happened.
  void done() {
    if (!taken_) return;
    taken_ = false;
    const Item last = items_.back();
    items_.pop_back();
    if (!items_.empty()) sink(0, last);
  }
  /// Address of the first event, or null. For prefetching.
  const void* memory() const { return items_.empty() ? nullptr : items_.data(); }
  std::uint64_t memory_bytes() const { return items_.capacity() * sizeof(Item); }

 private:
  struct Item {
    Time time;
    std::uint64_t order = 0;   // kind, port, lane
    std::uint64_t detail = 0;  // data, classes
  };
  static Item item_of(const NodeEvent& event) {
    return {event.time,
            static_cast<std::uint64_t>(event.kind) << 40 | std::uint64_t{event.port.value()} << 8 | event.lane.value(),
            std::uint64_t{event.data} << 16 | event.classes};
  }
  static bool before(const Item& a, const Item& b) {
    if (a.time != b.time) [[likely]]
      return a.time < b.time;
    return a.order != b.order ? a.order < b.order : a.detail < b.detail;
  }
  void put(std::size_t at, const Item& item) {
    items_[at].time = item.time;
    items_[at].order = item.order;
    items_[at].detail = item.detail;
  }
  void sink(std::size_t at, const Item& item) {
    const std::size_t size = items_.size();
    for (std::size_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && before(items_[child + 1], items_[child])) ++child;
      if (!before(items_[child], item)) break;
      put(at, items_[child]);
      at = child;
    }
    put(at, item);
  }
  void rise(std::size_t at, const Item& item) {
    while (at > 0 && before(item, items_[(at - 1) / 2])) {
      put(at, items_[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    put(at, item);
  }

  std::vector<Item> items_;
  bool taken_ = false;
};

}  // namespace weft
