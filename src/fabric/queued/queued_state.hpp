// SPDX-License-Identifier: GPL-2.0-only
// The state of ports with queues by class, and of their switches. Plain data: the parts of QueuedModel work on it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/load_balancing/load_balancing.hpp"
#include "fabric/marking/queue_marking.hpp"
#include "fabric/packet/buffered_port.hpp"
#include "fabric/packet/event_heap.hpp"
#include "fabric/packet/port.hpp"
#include "fabric/packet/shared_buffer.hpp"
#include "fabric/packet/telemetry_pool.hpp"
#include "fabric/parameters/switch_parameters.hpp"
#include "fabric/probes/depth_histogram.hpp"
#include "fabric/queued/rdma_host.hpp"
#include "fabric/scheduling/port_scheduler.hpp"
#include "routing/algorithm/routing_algorithm.hpp"
#include "transport/congestion_control/congestion_control.hpp"
#include "transport/recovery/recovery.hpp"

namespace weft {

/// What switches know about each other's queues, if routing needs it: `slots` is above 0 then.
struct ReportedQueues {
  std::uint32_t slots = 0;  ///< most queues that a node reports
  Time interval;
  Time delay;                         ///< beyond a frame's on the link
  std::vector<QueueReports> of_node;  ///< [local nodes] what it reports
  std::vector<bool> pending;          ///< [local nodes] an event will report
  PerPort<std::vector<Bytes>> told;   ///< [local ports] in the last report
  std::vector<Bytes> heard;           ///< [local ports][slots] as the other end has last told
};

/// Ports of a switch that have something to send. While the switch stops none of its senders, a port that sends
/// concerns no other one: what it gives back to the memory is looked at by those alone that find little room. So its
/// departures are worked out when a packet comes to that port, when the memory runs short, or at the end of the epoch,
/// without any event. See decision 13.
struct DeferredPorts {
  std::vector<PortId> ports;  ///< in no order
  Time next = Time::max();    ///< the first time at which one of them is to be looked at, after an epoch
  std::uint32_t stopped = 0;  ///< classes of ports whose sender this switch has stopped
  bool on = false;            ///< else ports are looked at by events, in the order of time
};

struct QueuedState {
  // Settings of the experiment
  bool routes_one_by_one = false;  ///< where a packet goes depends on the moment
  bool window_limits = false;      ///< that of the network, beside the congestion control's
  bool spreads = false;            ///< packets of a connection are routed by more than the connection
  bool marks_at_arrival = false;
  bool marks_at_departure = false;
  bool marks_passing = false;       ///< also packets that wait in no queue
  bool watches_departures = false;  ///< faults: each packet that leaves is looked at
  bool defers = false;              ///< switches work out departures when somebody looks: DeferredPorts
  bool plain = false;               ///< and beside memory, pauses, marks and telemetry nothing concerns a packet there
  ClassPlan plan;
  RecoveryRules rules;
  Services services;
  Bytes largest_frame;
  std::uint32_t bypass = 0;               ///< classes that no limit concerns, bit per class
  bool finite = false;                    ///< there may be no room for a packet
  bool limited = false;                   ///< switches have a packet memory of limited size
  bool pauses = false;                    ///< some links do
  bool credits = false;                   ///< some links have them
  bool loses_credits = false;             ///< those of collectives may get lost, in queues or on links
  std::vector<FlowControl> flow_control;  ///< [link classes]
  Bytes queue_limit = Bytes::max();

  PerPort<std::vector<PortState>> ports;  ///< [local ports]
  std::vector<ClassQueue> classes;        ///< [local ports][plan.count]
  std::vector<DepthHistogram> depths;     ///< [local ports][plan.count], empty unless they are kept
  /// [local ports][plan.count], empty if nothing is marked; null at hosts.
  std::vector<std::unique_ptr<QueueMarker>> markers;
  PerPort<std::vector<std::unique_ptr<PortScheduler>>> schedulers;  ///< [local ports], empty if no classes share links
  OutputBlocks blocks;
  std::vector<std::uint32_t> buffer_of;                    ///< [local nodes] -> buffers, or no_slot
  std::vector<SharedBuffer> buffers;                       ///< [local switches], empty if memory is unlimited
  std::vector<EventHeap> events;                           ///< [local nodes]
  std::vector<DeferredPorts> deferred;                     ///< [local nodes], of switches
  std::vector<RdmaHost> hosts;                             ///< [hosts of this process]
  std::vector<std::unique_ptr<SwitchBalancer>> balancers;  ///< [local nodes], empty if switches do not choose
  TelemetryPool telemetry;
  ReportedQueues reports;
  std::uint64_t dropped = 0;  ///< packets for which there was no room

  /// Sent by a port, link-control frames included; `overhead`: of each frame.
  Bytes wire_bytes(PortId port, Bytes overhead) const {
    Bytes bytes = ports[port].link_frame_bytes;
    for (LaneId lane; lane < plan.end(); ++lane) {
      const ClassQueue& queue = queue_of(port, lane);
      bytes += queue.frame_bytes + static_cast<std::int64_t>(queue.packets) * overhead;
    }
    return bytes;
  }
  /// The packet memory of a switch; null where that has no limit.
  const SharedBuffer* buffer_at(std::uint32_t local) const {
    return buffers.empty() ? nullptr : &buffers[buffer_of[local]];
  }
  std::size_t queue_number(PortId port, LaneId lane) const { return port.value() * plan.count + lane.value(); }
  ClassQueue& queue_of(PortId port, LaneId lane) { return ports[port].classes[lane.value()]; }
  const ClassQueue& queue_of(PortId port, LaneId lane) const { return ports[port].classes[lane.value()]; }
  /// A packet begins to wait. `in_port`: the port by which it arrived; none: its room is returned to no sender.
  void append(PortState& port, LaneId lane, const Packet& packet, PortId in_port, LaneId in_lane, Bytes frame) {
    ClassQueue& queue = port.classes[lane.value()];
    QueuedPacket& waiting = queue.queue.extend(blocks);
    waiting.packet = packet;
    waiting.in_port = in_port;
    waiting.frame = QueuedPacket::framed(frame, in_lane);
    queue.bytes += frame;
    queue.peak = std::max(queue.peak, queue.bytes);
    port.occupied |= lane.bit();
  }
  /// The first packet of a class leaves its queue. It stays where it is until the node is done.
  QueuedPacket& take_first(PortState& port, LaneId lane) {
    ClassQueue& queue = port.classes[lane.value()];
    QueuedPacket& first = queue.queue.front();
    queue.queue.pop(blocks);
    queue.bytes -= first.frame_bytes();
    if (queue.queue.empty()) {
      port.occupied &= ~(lane.bit());
      port.emptied |= lane.bit();
    }
    return first;
  }
  /// Control traffic is exempt from all limits, so that lossless traffic never depends on lossy traffic.
  bool is_bypass(LaneId lane) const { return lane.in(bypass); }
  /// Bytes of frames that wait at a port.
  Bytes queued_bytes(PortId port) const {
    Bytes bytes;
    for (std::uint32_t lanes = ports[port].occupied; lanes != 0; lanes &= lanes - 1)
      bytes += queue_of(port, LaneId::first_of(lanes)).bytes;
    return bytes;
  }
  /// The same as series tell it. A link that cuts packets into frames of its own carries other bytes than those of the
  /// network's frames: what they are follows from their time.
  Bytes sampled_bytes(const OutputPort& port, PortId number) const {
    if (!port.framed) [[likely]]
      return queued_bytes(number);
    return bytes_sent_in(ports[number].queue_time, port.rate);
  }
  /// Sum over the packets that wait for a port.
  template <class Of>
  auto waiting_at(PortId port, const Of& of) const {
    decltype(of(Packet())) sum{};
    for (LaneId lane; lane < plan.end(); ++lane)
      queue_of(port, lane).queue.for_each([&](const QueuedPacket& waiting) { sum += of(waiting.packet); });
    return sum;
  }
  /// Total time for which the other end has stopped a class until now.
  Time paused_time(PortId port, LaneId lane, Time now) const {
    const ClassQueue& queue = queue_of(port, lane);
    const bool stopped = lane.in(ports[port].blocked);
    return queue.paused + (stopped ? now - queue.paused_since : Time());
  }
  /// Arrival time of the packet that has waited longest at a port, among the heads of its queues; `now` if none waits.
  Time oldest_wait(PortId port, Time now) const {
    Time oldest = now;
    for (std::uint32_t lanes = ports[port].occupied; lanes != 0; lanes &= lanes - 1)
      oldest = std::min(oldest, queue_of(port, LaneId::first_of(lanes)).queue.front().packet.time);
    return oldest;
  }
  /// The depth of a queue is about to change.
  void note_depth(PortId port, LaneId lane, Time now) {
    if (depths.empty()) [[likely]]
      return;
    depths[queue_number(port, lane)].hold(queue_of(port, lane).bytes, now);
  }
};

}  // namespace weft
