// SPDX-License-Identifier: GPL-2.0-only
// Explicit congestion notification: which packets of a queue are marked.
#pragma once

#include <cstdint>

#include "fabric/local/local_network.hpp"
#include "transport/messages/packet.hpp"

namespace weft {

struct ClassQueue;
struct QueuedModel;

/// Calls the marking discipline if the queue is longer than its floor. Queues in bytes.
class PacketMarking {
 public:
  PacketMarking(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  /// Only switches of the network mark: RFC 3168 and IEEE 802.1Q give a mark to routers and bridges. Packets that wait
  /// in a host or inside a server (GPU, NVSwitch, PCIe switch, NIC) are its own; NVLink and PCI Express have no marks.
  void build();
  /// `came`: to its queue, in which `bytes` wait beside it.
  void mark(PortId port, const ClassQueue& queue, Packet& packet, Bytes bytes, Time came, Time now);

 private:
  void mark_beyond_floor(PortId port, Packet& packet, Bytes queue, Time came, Time now);
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
