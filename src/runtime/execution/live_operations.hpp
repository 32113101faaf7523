// SPDX-License-Identifier: GPL-2.0-only
// The operations of a rank that have not ended, by id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "runtime/execution/live_operation.hpp"
#include "support/basics/contract.hpp"

namespace weft {

/// Each operation is looked up several times. Ids ascend, and those of operations that are here at the same time are
/// close to each other, so that an id's low bits are a good place in a table. An operation keeps its address.
class LiveOperations {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// nullptr: the operation has ended.
  LiveOperation* find(std::uint64_t id) {
    const std::size_t at = place_of(id);
    return places_[at].slot == nowhere ? nullptr : &slots_[places_[at].slot];
  }
  LiveOperation& at(std::uint64_t id) {
    LiveOperation* const found = find(id);
    WEFT_EXPECT(found != nullptr, "operation {} has ended", id);
    return *found;
  }
  LiveOperation& add(std::uint64_t id, LiveOperation&& operation) {
    if (2 * (size_ + 1) > places_.size()) grow();
    Place& place = places_[place_of(id)];
    WEFT_EXPECT(place.slot == nowhere, "operation {} is here already", id);
    if (free_.empty()) {
      place = {id, static_cast<std::uint32_t>(slots_.size())};
      slots_.push_back(std::move(operation));
    } else {
      place = {id, free_.back()};
      free_.pop_back();
      slots_[place.slot] = std::move(operation);
    }
    ++size_;
    return slots_[place.slot];
  }
  void erase(std::uint64_t id) {
    std::size_t hole = place_of(id);
    const std::uint32_t slot = places_[hole].slot;
    WEFT_EXPECT(slot != nowhere, "operation {} has ended", id);
    slots_[slot] = LiveOperation();
    free_.push_back(slot);
    --size_;
    // Those that follow without a gap move up, unless that is before their own place (linear probing).
    for (std::size_t next = after(hole); places_[next].slot != nowhere; next = after(next)) {
      const std::size_t own = places_[next].id & mask();
      if (((next - own) & mask()) < ((next - hole) & mask())) continue;
      places_[hole] = places_[next];
      hole = next;
    }
    places_[hole].slot = nowhere;
  }
  template <class Each>
  void for_each(const Each& each) const {
    for (const Place& place : places_)
      if (place.slot != nowhere) each(slots_[place.slot]);
  }

 private:
  static constexpr std::uint32_t nowhere = UINT32_MAX;
  struct Place {
    std::uint64_t id = 0;
    std::uint32_t slot = nowhere;
  };
  std::size_t mask() const { return places_.size() - 1; }
  std::size_t after(std::size_t place) const { return (place + 1) & mask(); }
  /// Where it is, or would be.
  std::size_t place_of(std::uint64_t id) const {
    std::size_t at = id & mask();
    while (places_[at].slot != nowhere && places_[at].id != id) at = after(at);
    return at;
  }
  void grow() {
    std::vector<Place> old(2 * places_.size());
    old.swap(places_);
    for (const Place& place : old)
      if (place.slot != nowhere) places_[place_of(place.id)] = place;
  }

  std::vector<Place> places_ = std::vector<Place>(16);  // at most half of them are taken; a power of two
  std::deque<LiveOperation> slots_;                     // a deque: they keep their addresses
  std::vector<std::uint32_t> free_;                     // slots
  std::size_t size_ = 0;
};

}  // namespace weft
