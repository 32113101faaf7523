// SPDX-License-Identifier: GPL-2.0-only
// The receiving halves of a host's connections.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "support/basics/random.hpp"
#include "units/bytes.hpp"
#include "units/id.hpp"

namespace weft {

/// Receive state of one connection.
struct ReceiverState {
  std::uint64_t key = 0;  ///< sender host << 32 | sender's queue pair
  std::uint32_t expected_psn = 0;
  bool used = false;
  Bytes message_bytes;  ///< of the message that is arriving
  std::uint64_t message_packets = 0;
};

/// Open-addressing table by (sender, queue pair). One probe per *delivered* packet (not per hop): a real NIC finds its
/// connection context by the destination QP number in the same way. Iterated only for results, which sort.
template <class State>
class ReceiverTable {
 public:
  State& find(NodeId source, std::uint32_t queue_pair) {
    const std::uint64_t key = std::uint64_t{source.value()} << 32 | queue_pair;
    if (last_ < slots_.size() && slots_[last_].used && slots_[last_].key == key) return slots_[last_];
    if ((count_ + 1) * 2 > slots_.size()) grow();
    std::size_t at = place(key);
    while (slots_[at].used && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    if (!slots_[at].used) {
      slots_[at].used = true;
      slots_[at].key = key;
      ++count_;
    }
    last_ = at;
    return slots_[at];
  }

  /// The entry that was found last, for prefetching.
  const State* latest() const { return slots_.data() + last_; }

  /// In no order that means anything.
  template <class Action>
  void for_each(Action&& action) const {
    for (const State& state : slots_)
      if (state.used) action(state);
  }

 private:
  std::size_t place(std::uint64_t key) const { return mix64(key) & (slots_.size() - 1); }
  void grow() {
    std::vector<State> old;
    old.swap(slots_);
    slots_.resize(old.empty() ? 4 : old.size() * 2);
    for (State& state : old) {
      if (!state.used) continue;
      std::size_t at = place(state.key);
      while (slots_[at].used) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = std::move(state);
    }
  }

  std::vector<State> slots_;
  std::size_t count_ = 0;
  std::size_t last_ = 0;
};

}  // namespace weft
