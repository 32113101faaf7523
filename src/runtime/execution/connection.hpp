// SPDX-License-Identifier: GPL-2.0-only
// The two ends of a collective's connections, with NCCL's credits.
#pragma once

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
  /// A slice, or one of its `parts`, has arrived. Slices are taken in the order of their sending: `number` counts them,
  /// and those on other queue pairs may overtake. True if there are more to pop().
  bool arrive(std::uint32_t number, std::uint32_t parts, const Slice& slice) {
    if (parts == 1 && number == next_ && early_.empty()) {
      arrived_.push_back(slice);
      ++next_;
      return true;
    }
    Early& early = early_.try_emplace(number, Early{{Bytes(), slice.collective, slice.queue_pair, slice.member}, parts})
                       .first->second;
    early.slice.bytes += slice.bytes;
    --early.missing;
    const std::uint32_t before = next_;
    for (auto first = early_.begin(); first != early_.end() && first->first == next_ && first->second.missing == 0;
         first = early_.erase(first), ++next_)
      arrived_.push_back(first->second.slice);
    return next_ != before;
  }

 private:
  struct Early {
    Slice slice;
    std::uint32_t missing;
  };
  std::vector<Slice> arrived_;
  std::size_t head_ = 0;
  std::uint32_t next_ = 0;
  std::map<std::uint32_t, Early> early_;  // incomplete, or behind one that is missing; by number
};

}  // namespace weft
