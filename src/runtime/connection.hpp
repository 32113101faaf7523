// SPDX-License-Identifier: GPL-2.0-only
// The two ends of a collective's connections, with NCCL's credits.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "transport/message.hpp"

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
  std::uint32_t queue_pair = no_slot;
  std::uint32_t in_flight = 0;  ///< slices sent whose slot the receiver has not freed
  std::uint32_t communicator = 0;
  std::uint32_t peer = 0;  ///< rank at the other end
};

/// Receiving end. Slices that have arrived and wait for their step, oldest first.
struct ReceiveConnection {
  struct Slice {
    std::int64_t bytes;
    std::uint32_t collective;
    std::uint32_t queue_pair;  ///< at the sender, for the credit
  };
  std::vector<Slice> arrived;
  std::size_t head = 0;

  bool empty() const { return head == arrived.size(); }
  Slice pop() {
    const Slice slice = arrived[head++];
    if (head == arrived.size()) {
      arrived.clear();
      head = 0;
    }
    return slice;
  }
};

}  // namespace weft
