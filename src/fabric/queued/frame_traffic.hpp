// SPDX-License-Identifier: GPL-2.0-only
// Ethernet frames of other software on the hosts: they queue at the host's port beside its RDMA traffic, and from there
// on are packets like any others.
#pragma once

#include <cstdint>
#include <memory>

#include "fabric/frames/frame_header.hpp"
#include "fabric/frames/frame_table.hpp"
#include "fabric/local/local_network.hpp"
#include "transport/messages/packet.hpp"
#include "units/lane_id.hpp"
#include "units/time.hpp"

namespace weft {

struct QueuedModel;

class FrameTraffic {
 public:
  FrameTraffic(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  /// From here on hosts can send frames.
  FrameTable& carry();
  /// Queue a frame at an owned host. False if the host's transmit queue is full, or the frame is too long.
  bool send(const FrameHeader& header, Time now, const ns3::Ptr<ns3::Packet>& frame);
  /// A frame is on its last link: from here on ns-3 holds it, and the lean packet that arrives is empty.
  void hand_up(PortId in_port, Packet& packet, Time arrival);
  /// A host with frames in its queues sends one packet or frame.
  bool send_beside(const LocalNode& node, PortId port_index, Time now);

  std::unique_ptr<FrameTable> table;  ///< null where hosts send no frames

 private:
  LaneId lane_of_priority(std::uint8_t priority) const;
  bool choose_beside(const LocalNode& node, PortId port_index, Time now);
  bool send_of_data_class(const LocalNode& node, PortId port_index, Time now);
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
