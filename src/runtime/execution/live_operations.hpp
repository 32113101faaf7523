// SPDX-License-Identifier: GPL-2.0-only
// The operations of a rank between the moment when its program gave them and their end, by id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/execution/collective_run.hpp"
#include "runtime/execution/operation_queues.hpp"
#include "schedule/program/packed_operation.hpp"
#include "schedule/program/program.hpp"
#include "support/basics/contract.hpp"
#include "transport/messages/message.hpp"
#include "transport/messages/send_waits.hpp"
#include "units/time.hpp"

namespace weft {

/// Operations that wait for one: mostly one at most.
class Dependents {
 public:
  void add(std::uint64_t id) {
    if (first_ == none)
      first_ = id;
    else if (others_ == nullptr)
      others_ = std::make_unique<std::vector<std::uint64_t>>(1, id);
    else
      others_->push_back(id);
  }
  /// In the order of add().
  template <class Each>
  void for_each(Each&& each) const {
    if (first_ != none) each(first_);
    if (others_ == nullptr) return;
    for (const std::uint64_t id : *others_) each(id);
  }

 private:
  static constexpr std::uint64_t none = UINT64_MAX;
  std::uint64_t first_ = none;
  std::unique_ptr<std::vector<std::uint64_t>> others_;
};

/// What an operation needs to start and once it has started.
struct OperationDetails {
  Operation operation;
  std::uint32_t parts = 0;             ///< send: messages that have not been sent in full
  std::uint32_t queue_pair = 0;        ///< send: of its last message
  std::uint64_t message = no_message;  ///< send, recv: the last one
  SendTimes times;                     ///< of that, at the start
  Time start;
  Time sent;  ///< recv: when its message was
  std::unique_ptr<CollectiveRun> collective;
};

struct LiveOperation {
  OperationTurn turn;
  Time not_before;
  std::uint32_t unfinished = 0;  ///< dependencies
  std::uint32_t sequence = 0;    ///< send, recv: number among those of its peer and tag
  bool started = false;
  bool begun = false;       ///< it has what it needs: at its start, unless it has to ask for a processor
  std::uint64_t cause = 0;  ///< HostNetwork::cause() when it last waited for one less
  Dependents dependents;
  std::unique_ptr<Dependents> dependents_of_start;  ///< null: none
  std::unique_ptr<OperationDetails> details;        ///< null: packed

  const Operation& operation() const { return details->operation; }
  /// Takes the operation and keeps it in `details`.
  void keep(Operation& operation);
  /// Takes the operation, which may be that of `details`: these are gone until unpack(). One that has not started needs
  /// nothing else of them.
  void pack(Operation& operation, SharedTexts& texts);
  void unpack();
  /// A description of the operation and its wait, such as "operation 17 'grads' (line 7), recv of 4 KiB from rank 2,
  /// tag 7: no such message has come".
  std::string describe() const;

 private:
  std::string describe(const Operation& operation) const;
  Operation packed_operation() const;

  PackedOperation packed_;
  std::shared_ptr<const CollectiveCall> call_;  // of that
};

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
