// SPDX-License-Identifier: GPL-2.0-only
// Credits of collectives: a slot in the buffer of a receiver is free.
#pragma once

#include <cstdint>

#include "fabric/local/local_network.hpp"
#include "fabric/packet/buffered_port.hpp"
#include "transport/messages/packet.hpp"

namespace weft {

struct QueuedModel;

/// On a network that can lose credits they are counted, and sent again until they are acknowledged (GivenCredits).
class SlotCredits {
 public:
  SlotCredits(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  void send(const LocalNode& node, const Packet& credit, Time now);
  void receive(const LocalNode& node, PortId port_index, const Packet& packet);
  void receive_ack(const LocalNode& node, const Packet& packet);
  bool time_out(const LocalNode& node, const NodeEvent& event);

 private:
  PortId push(const LocalNode& node, Packet credit, Time now);
  void push_counted(const LocalNode& node, std::uint32_t position, Time now);
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
