// SPDX-License-Identifier: GPL-2.0-only
// The receiving half of a host's NIC.
#pragma once

#include <cstdint>

#include "fabric/local/local_network.hpp"
#include "fabric/packet/buffered_port.hpp"
#include "fabric/queued/rdma_host.hpp"
#include "transport/messages/packet.hpp"
#include "transport/recovery/reliable_receiver.hpp"

namespace weft {

struct QueuedModel;

/// Answers data packets, hands messages to the software of the host, and sends the pulls of receivers that ask for
/// packets.
class NicReceiver {
 public:
  NicReceiver(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  void receive(const LocalNode& node, PortId port_index, const Packet& packet);
  bool send_pull(const LocalNode& node, const NodeEvent& event);

 private:
  void acknowledge_before(const LocalNode& node, PortId port_index, const Packet& packet,
                          const ReliableReceiver::Answer& answer);
  Packet& answer_with(PacketKind kind, const LocalNode& node, PortId port_index, const Packet& packet,
                      const ReliableReceiver::Answer& answer);
  void receive_data(const LocalNode& node, PortId port_index, const Packet& packet);
  void note_data(const LocalNode& node, PortId port_index, const Packet& packet);
  ReceiverControl& pulls_of(const LocalNode& node, PortId port_index, const Packet& packet);
  static ReceiverControl& next_to_pull(const NicPort& nic);
  void watch_pulls(const LocalNode& node, PortId port_index, Time now);
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
