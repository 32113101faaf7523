// SPDX-License-Identifier: GPL-2.0-only
// Ports with queues by class: when they are served, and which class sends next.
#pragma once

#include <cstdint>

#include "fabric/local/local_network.hpp"
#include "fabric/packet/buffered_port.hpp"

namespace weft {

struct QueuedModel;

/// A port sends when it is free, the other end of the link agrees, and something waits.
class QueuedPorts {
 public:
  QueuedPorts(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  /// Sees to it that the port is looked at no later than at `time`.
  void look_again(PortId port_index, Time time);
  /// An event of the port has occurred; false if it is out of date.
  bool look_at(PortId port_index, Time now);
  /// There may be a packet to send: now, or when the port is free.
  void kick(PortId port_index, Time now);
  /// Works out the departures of a deferring port before a time.
  void catch_up(PortId port_index, Time before);
  /// The first of a queue, if the other end of the link has room.
  bool send_waiting(PortId port_index, LaneId lane, Time now);
  /// Time until everything that waits now has left.
  Time load(PortId port, Time now) const;
  /// A packet has begun to wait: the port's longest queue may be this one.
  void note_peak(PortId port, Time now);

  // Which class is next -----------------------------------------------------------------------------------------------
  /// Of those that are ready, bit per class.
  LaneId choose_lane(PortId port_index, std::uint32_t ready);
  /// The class shares the link, and another one that does is ready, too.
  bool competes(std::uint32_t ready, LaneId lane) const;
  /// The scheduler learns which queues have become empty.
  void tell_emptied(PortId port_index);

  void tell_message(PortId port_index, LaneId lane, const Packet& last, Time now);

 private:
  bool has_work(PortId port_index) const;
  bool send_next(PortId port_index, Time now);
  bool send_first(PortId port_index, Time now);
  void look_by_event(PortId port_index, Time time);
  LaneId choose_sharing(PortId port_index, std::uint32_t ready);
  void leave_queue(PortId port_index, LaneId lane, Time now);
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
