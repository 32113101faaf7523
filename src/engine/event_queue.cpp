// SPDX-License-Identifier: GPL-2.0-only
// A 4-ary heap of pending ns-3 events.
#include "engine/event_queue.hpp"

#include <algorithm>

namespace weft {
namespace {
constexpr std::size_t arity = 4;  // shallower than a binary heap; the children of a node are neighbours in memory
}

std::uint32_t EventQueue::insert(const EventKey& key, ns3::EventImpl* impl, std::uint32_t context) {
  std::uint32_t slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  slots_[slot].event = {impl, context, key.time};
  heap_.emplace_back();
  sift_up(heap_.size() - 1, {key, slot});
  return slot;
}

EventQueue::Event EventQueue::pop() {
  const Event event = slots_[heap_.front().slot].event;
  remove_at(0);
  return event;
}

bool EventQueue::holds(std::uint32_t slot, const ns3::EventImpl* impl, std::int64_t time) const {
  return impl != nullptr && slot < slots_.size() && slots_[slot].event.impl == impl && slots_[slot].event.time == time;
}

void EventQueue::erase(std::uint32_t slot) { remove_at(slots_[slot].position); }

void EventQueue::place(std::size_t position, const Entry& entry) {
  heap_[position] = entry;
  slots_[entry.slot].position = position;
}

void EventQueue::sift_up(std::size_t position, const Entry& entry) {
  while (position > 0) {
    const std::size_t parent = (position - 1) / arity;
    if (!(entry.key < heap_[parent].key)) break;
    place(position, heap_[parent]);
    position = parent;
  }
  place(position, entry);
}

void EventQueue::sift_down(std::size_t position, const Entry& entry) {
  for (;;) {
    const std::size_t first = arity * position + 1;
    if (first >= heap_.size()) break;
    std::size_t min = first;
    const std::size_t end = std::min(first + arity, heap_.size());
    for (std::size_t child = first + 1; child < end; ++child) {
      if (heap_[child].key < heap_[min].key) min = child;
    }
    if (!(heap_[min].key < entry.key)) break;
    place(position, heap_[min]);
    position = min;
  }
  place(position, entry);
}

void EventQueue::remove_at(std::size_t position) {
  const std::uint32_t slot = heap_[position].slot;
  slots_[slot].event = {};
  free_slots_.push_back(slot);
  const Entry last = heap_.back();
  heap_.pop_back();
  if (position == heap_.size()) return;
  if (position > 0 && last.key < heap_[(position - 1) / arity].key) {
    sift_up(position, last);
  } else {
    sift_down(position, last);
  }
}

}  // namespace weft
