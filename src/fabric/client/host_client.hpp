// SPDX-License-Identifier: GPL-2.0-only
// Callbacks of the fabric into the software of a host.
#pragma once

#include <cstdint>

#include "transport/messages/message.hpp"
#include "units/time.hpp"

namespace weft {

/// Callbacks in simulated time, on the MPI process that owns the host. They may post messages, credits and timers of
/// the same host. Virtual calls are per message, not per packet.
class HostClient {
 public:
  virtual ~HostClient() = default;
  virtual void on_timer(NodeId host, Time now, std::uint64_t token) = 0;
  /// The last byte of a message is here.
  virtual void on_message(NodeId host, Time now, const Message& message) = 0;
  /// A message posted with a completion token is acknowledged (with `ack: none`: its last bit has left the NIC).
  virtual void on_sent(NodeId host, Time now, std::uint64_t token) = 0;
  /// The receiver at the other end of `queue_pair` has freed one buffer slot, and was `late` to do so.
  virtual void on_credit(NodeId host, Time now, std::uint32_t queue_pair, Time late) = 0;
};

}  // namespace weft
