// SPDX-License-Identifier: GPL-2.0-only
// Switches whose ports have queues by class: memory for arriving packets, and the order of events in an epoch.
#pragma once

#include <cstdint>

#include "fabric/local/local_network.hpp"
#include "fabric/packet/arrival_order.hpp"
#include "transport/messages/packet.hpp"

namespace weft {

struct QueuedModel;

/// Arrivals in the order of time, and events before each. Ports that concern no other one defer (DeferredPorts).
class QueuedSwitch {
 public:
  QueuedSwitch(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  void run(std::uint32_t local, Time end);
  /// A sender is about to be stopped: from here on it counts when memory is given back. All ports have been caught up
  /// with.
  void stop_deferring(std::uint32_t local);
  /// The port has something to send after the epoch.
  void defer(PortId port);
  /// Works out the departures of a plain port that defers, before a time.
  void send_deferred(PortId port, Time before);
  /// A packet arrives at an output, in the order of time.
  void enqueue(const LocalNode& node, PortId out, Packet& packet, PortId in_port, LaneId in_lane, Time now);
  /// No mechanism observes ports in the order of time, which would need events.
  bool may_defer() const;

 private:
  bool has_room_for_all(const LocalNode& node, const ArrivalOrder& arrivals) const;
  void send_by_port(std::uint32_t local, const ArrivalOrder& arrivals, Time end);
  void send_arrivals(std::uint32_t local, std::span<const Arrival> arrivals);
  bool make_room(const LocalNode& node, PortId out, Packet& packet, PortId in_port, LaneId in_lane, Time now,
                 WireTime& size);
  bool pass(PortId out, Packet& packet, PortId in_port, LaneId in_lane, Time now, WireTime size);
  void wait(PortId out, Packet& packet, PortId in_port, LaneId in_lane, Time now, WireTime size);
  bool pass_at_once(PortId out, Packet& packet, PortId in_port, Time now);
  bool needs_no_room(PortId in_port, LaneId lane, Bytes frame) const;
  bool find_room(const LocalNode& node, PortId out, const Packet& packet, PortId in_port, LaneId in_lane, Time now,
                 Bytes frame);
  void drop(PortId out, const Packet& packet);
  void trim(PortId out, Packet& packet);
  void receive_adaptively(const LocalNode& node, const Arrival& came);
  void fetch_queues_beyond(const LocalNode& node, std::span<const std::uint16_t> routes) const;
  void fetch_queues_beyond(const LocalNode& node, const ArrivalOrder& order) const;
  void run_events(std::uint32_t local, Time before);
  void run_deferred(std::uint32_t local, Time end);
  void catch_up_all(std::uint32_t local, Time before);
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
