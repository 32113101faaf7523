// SPDX-License-Identifier: GPL-2.0-only
// Pending ns-3 events in an order that is a function of the model alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace ns3 {
class EventImpl;
}

namespace weft {

/// Where an event stands in the order of execution. Times in ns-3's current resolution.
struct EventKey {
  std::int64_t time = 0;       ///< when it runs
  std::int64_t scheduled = 0;  ///< when it was scheduled
  std::uint64_t sequence = 0;  ///< how many events `source` had scheduled before it
  std::uint32_t source = 0;    ///< context (node id) of the event that scheduled it

  friend bool operator<(const EventKey& a, const EventKey& b) {
    return std::tie(a.time, a.scheduled, a.source, a.sequence) < std::tie(b.time, b.scheduled, b.source, b.sequence);
  }
};

/// A 4-ary heap of events, each in a slot whose number is valid until the event leaves the queue: so "is it still
/// pending?" and removal need no search. Does not own the events.
class EventQueue {
 public:
  struct Event {
    ns3::EventImpl* impl = nullptr;
    std::uint32_t context = 0;
    std::int64_t time = 0;
  };

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  /// Time of the first event; the queue is not empty.
  std::int64_t next_time() const { return heap_.front().key.time; }
  /// Returns the slot.
  std::uint32_t insert(const EventKey& key, ns3::EventImpl* impl, std::uint32_t context);
  /// Take the first event out; the queue is not empty.
  Event pop();
  /// Is `impl`, inserted for `time` in `slot`, still in the queue? Any arguments are allowed. A later event in the same
  /// slot is told apart by its `impl`, as long as the caller keeps the earlier one alive (an ns3::EventId does).
  bool holds(std::uint32_t slot, const ns3::EventImpl* impl, std::int64_t time) const;
  /// Take out the event in `slot`, which is in the queue.
  void erase(std::uint32_t slot);

 private:
  struct Entry {
    EventKey key;
    std::uint32_t slot = 0;
  };
  struct Slot {
    Event event;
    std::size_t position = 0;  // in heap_
  };
  void place(std::size_t position, const Entry& entry);
  void sift_up(std::size_t position, const Entry& entry);
  void sift_down(std::size_t position, const Entry& entry);
  void remove_at(std::size_t position);

  std::vector<Entry> heap_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
};

}  // namespace weft
