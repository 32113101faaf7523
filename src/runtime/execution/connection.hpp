// SPDX-License-Identifier: GPL-2.0-only
// The two ends of a collective's connections, with NCCL's credits.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "transport/messages/message.hpp"

namespace weft {

/// Names a connection at one of its ends.
struct ConnectionKey {
  std::uint32_t communicator = 0;
  std::uint32_t channel = 0;
  std::uint32_t peer = 0;  ///< rank at the other end
  friend auto operator<=>(const ConnectionKey&, const ConnectionKey&) = default;
};

/// Sending end. Lives across collectives, as NCCL's connections do.
struct SendConnection {
  std::uint32_t queue_pair = no_slot;  ///< the first of its queue pairs, which have neighbouring numbers
  std::uint32_t in_flight = 0;         ///< slices sent whose slot the receiver has not freed
  std::uint32_t communicator = 0;
  std::uint32_t peer = 0;  ///< rank at the other end
  std::uint32_t sent = 0;  ///< slices
  /// Numbers at the host of the messages whose slots are not free, oldest first, where slots are
  /// limited and causes are kept; few.
  std::unique_ptr<std::vector<std::uint32_t>> slots;
};

/// Receiving end. Slices that have arrived and wait for their step, oldest first.
class ReceiveConnection {
 public:
  struct Slice {
    Bytes bytes;
    std::uint32_t collective;
    std::uint32_t queue_pair;  ///< at the sender, for the credit
    std::uint32_t member = 0;  ///< index of the receiver in the communicator, if it is an aggregator
    Time arrived = Time();
  };

  bool empty() const { return head_ == arrived_.size(); }
  const Slice& front() const { return arrived_[head_]; }
  Slice pop() {
    const Slice slice = arrived_[head_++];
    if (head_ == arrived_.size()) {
      arrived_.clear();
      head_ = 0;
    }
    return slice;
  }
  /// For how long the sender of `slice`, which was taken at `now`, has waited because this rank was late: it had not
  /// begun with the call until `launched`, or waited for other ranks itself, in that call until now for `peers` ps.
  /// What it was told with earlier slices does not count again.
  Time late(Time now, const Slice& slice, Time launched, std::int64_t peers) {
    const std::int64_t told = taken_collective_ == slice.collective ? taken_peers_ : 0;
    const Time from = std::max(slice.arrived, taken_);
    const Time begun = std::max(from, launched);
    taken_ = now;
    taken_peers_ = peers;
    taken_collective_ = slice.collective;
    return begun - from + std::clamp(Time::from_ps(peers - told), Time(), now - begun);
  }
  /// A slice, or one of its `parts`, has arrived. Slices are taken in the order of their sending: `number` counts them,
  /// and those on other queue pairs may overtake. True if there are more to pop().
  bool arrive(std::uint32_t number, std::uint32_t parts, const Slice& slice) {
    if (parts == 1 && number == next_ && (early_ == nullptr || early_->empty())) {
      arrived_.push_back(slice);
      ++next_;
      return true;
    }
    if (early_ == nullptr) early_ = std::make_unique<std::map<std::uint32_t, Early>>();
    Slice begun = slice;
    begun.bytes = Bytes();
    Early& early = early_->try_emplace(number, Early{begun, parts}).first->second;
    early.slice.bytes += slice.bytes;
    early.slice.arrived = slice.arrived;
    --early.missing;
    const std::uint32_t before = next_;
    for (auto first = early_->begin(); first != early_->end() && first->first == next_ && first->second.missing == 0;
         first = early_->erase(first), ++next_)
      arrived_.push_back(first->second.slice);
    return next_ != before;
  }

 private:
  struct Early {
    Slice slice;
    std::uint32_t missing;
  };
  // There is one of these per connection, so its size counts: a linear all-to-all has one for each pair of ranks.
  Time taken_;  // the last slice, with late()
  std::int64_t taken_peers_ = 0;
  std::vector<Slice> arrived_;
  std::uint32_t head_ = 0;
  std::uint32_t next_ = 0;
  std::uint32_t taken_collective_ = 0;
  // Incomplete, or behind one that is missing; by number. None where slices arrive whole and in order.
  std::unique_ptr<std::map<std::uint32_t, Early>> early_;
};

}  // namespace weft
