// SPDX-License-Identifier: GPL-2.0-only
// Link-level flow control: pause frames of priority flow control (IEEE 802.1Q-2018 clause 36), and credits per virtual
// lane (InfiniBand Architecture Specification vol. 1, 7.9).
#pragma once

#include <cstdint>
#include <memory>

#include "fabric/local/local_network.hpp"
#include "fabric/packet/buffered_port.hpp"
#include "fabric/probes/pause_causes.hpp"
#include "transport/messages/packet.hpp"

namespace weft {

struct QueuedModel;

/// One object has the flow control of all ports of a process. It counts frames in bytes, without preamble and gap.
class LinkControl {
 public:
  LinkControl(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  /// A frame that came through `in_port` has left the memory of this node.
  void give_room(PortId in_port, LaneId lane, Bytes frame, Time now);
  /// The other end stops a class no longer.
  void unblock(PortId port_index, LaneId lane, Time now);

  // Priority flow control ---------------------------------------------------------------------------------------------
  /// An ingress queue of a switch is over its threshold, with a frame that is about to wait for `out`.
  void stop_sender(PortId in_port, LaneId lane, PortId out, Bytes frame, Time now);
  void send_pause(PortId port_index, Time now);
  bool refresh_pause(const NodeEvent& event);
  void read_pause(const NodeEvent& event);
  bool expire_pause(const NodeEvent& event);

  // Credits -----------------------------------------------------------------------------------------------------------
  /// Room at the other end for a frame of `lane`, taken; or the lane waits for it.
  bool takes_credit(PortId port_index, LaneId lane, Bytes frame, Time now);
  /// A frame that the link has lost takes no room.
  void give_back_credit(PortId port_index, LaneId lane, Bytes frame);
  void send_grant(PortId port_index, Time now);
  void read_grant(const NodeEvent& event);

  // What stopped whom -------------------------------------------------------------------------------------------------
  /// From here on it is counted. Before the run.
  void count_causes();
  bool watches_credits() const { return watches_credits_; }
  /// A frame has begun to wait for `out` at a switch. A host takes arriving frames at once.
  void note_credit_taken(PortId in_port, LaneId in_lane, PortId out, Bytes frame, Time now);
  /// And has left it.
  void note_credit_given(PortId in_port, LaneId in_lane, Bytes frame, Time now);

  /// The effect of a frame of this kind at the port where it ends.
  static NodeEvent event_of(PortId port_index, const Packet& frame, Time arrival);

  std::unique_ptr<PauseCauses> causes;  ///< null where they are not counted
  bool suspicious = false;              ///< a port has been paused for so long that there may be a deadlock

 private:
  PortId filling_output(PortId in_port, LaneId in_lane, PortId out, Bytes frame) const;
  void let_sender_resume(PortId in_port, LaneId lane, Time now);
  Time pause_time(PortId port) const;
  bool finds_credit(PortId port_index, LaneId lane, Bytes frame, Time now);
  void give_credit(PortId in_port, LaneId lane, Bytes frame, Time now);
  void send_link_frame(PortId port_index, Time now, Packet frame, Time later);
  bool watches_credits_ = false;  // they are among what is counted
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
