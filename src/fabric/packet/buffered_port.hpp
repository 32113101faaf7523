// SPDX-License-Identifier: GPL-2.0-only
// Ports with queues: what a port knows beyond OutputPort where packets wait in priorities, buffers end, or links pause.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "fabric/packet/packet_queue.hpp"
#include "fabric/scheduling/port_scheduler.hpp"
#include "transport/congestion_control/telemetry.hpp"
#include "transport/messages/packet.hpp"
#include "units/bytes.hpp"
#include "units/lane_id.hpp"
#include "units/port_id.hpp"
#include "units/time.hpp"

namespace weft {

class SharedBuffer;

/// A packet in an output queue; its time is that of its arrival there.
struct QueuedPacket {
  Packet packet;
  PortId in_port;           ///< by which it came; none at the host that made it
  std::uint32_t frame = 0;  ///< framed()

  /// Bytes of a frame, below 2^24, without preamble and gap, and the class by which it arrived.
  static std::uint32_t framed(Bytes bytes, LaneId in_lane) {
    return static_cast<std::uint32_t>(bytes.count()) | in_lane.value() << 24;
  }
  Bytes frame_bytes() const { return Bytes(frame & 0xffffffU); }
  LaneId in_lane() const { return LaneId(frame >> 24); }
};
/// The class of a packet at a port.
inline LaneId lane_of(const Packet& packet) { return LaneId(packet.lane); }
constexpr std::size_t queue_block = 512;  ///< bytes: twelve packets
using OutputBlocks = Blocks<QueuedPacket, queue_block>;

/// The traffic classes of a fabric, most urgent first. A packet's lane is its position here.
struct ClassPlan {
  static constexpr std::size_t max = max_classes;

  std::uint32_t count = 3;
  PerLane<std::uint8_t> priority = {6, 3, 0};  ///< IEEE 802.1Q number, for people and frames
  LaneId control = LaneId(0);
  LaneId data = LaneId(1);       ///< first lane of RDMA data
  std::uint32_t data_lanes = 1;  ///< virtual lanes of routing
  LaneId other = LaneId(2);
  std::uint32_t lossless = 0;  ///< bit per class: link-level flow control
  /// Classes that share the link by a discipline of scheduling, bit per class; the others are strict. All data lanes
  /// are in, or none.
  std::uint32_t shared = 0;
  PerLane<std::int64_t> weight = {};  ///< of those

  /// Lanes are the ones before it.
  LaneId end() const { return LaneId(count); }
  bool is_data(LaneId lane) const { return lane - data < data_lanes; }
};

/// One class at one port: the output queue, and the counters of both directions. What each packet touches comes first,
/// in a cache line of its own.
struct alignas(64) ClassQueue {
  BlockQueue<QueuedPacket, queue_block> queue;
  Bytes bytes;  ///< frames that wait
  Bytes peak;
  std::uint64_t packets = 0;  ///< sent
  Bytes frame_bytes;
  Bytes mark_floor = Bytes::max();  ///< bytes that wait up to which nothing is marked
  // Sending side of credits: frame bytes sent, and up to where the other end has room, both modulo 2^32.
  std::uint32_t sent = 0;
  std::uint32_t granted = 0;

  // Receiving side: up to where this end has room.
  std::uint32_t room = 0;
  Time paused_until;   ///< as the last pause frame said
  Time paused_since;   ///< the other end has stopped this class here
  Time stopped_since;  ///< this end has stopped the other
  Time refresh_at;     ///< the other end is to be told again
  // Counters
  Time paused;  ///< time during which the other end had stopped it
  Time stopped;
  std::uint32_t pauses_received = 0;
  std::uint32_t pauses_sent = 0;
  std::uint64_t marked = 0;   ///< ECN
  std::uint64_t dropped = 0;  ///< did not find room on their way to this queue
  std::uint64_t trimmed = 0;
};

/// State that the classes of a port share. The same order as above: a switch in whose memory there is room touches the
/// first line alone (PortEpoch), and with telemetry the second one, too.
struct alignas(64) PortState {
  static constexpr Time never = Time::max();

  std::uint32_t occupied = 0;    ///< classes with packets in their queue
  std::uint32_t blocked = 0;     ///< classes that the other end has stopped, or has no room for
  std::uint32_t tell_pause = 0;  ///< classes whose stop or go is still to be told
  std::uint32_t emptied = 0;     ///< classes whose queues have become empty since the scheduler was asked
  bool of_host = false;
  bool deferred = false;  ///< in the list of its switch: DeferredPorts
  // Of the link: classes that pause frames stop, and classes that take credits.
  std::uint8_t pausing = 0;
  std::uint8_t credited = 0;
  std::uint32_t first_queue = 0;   ///< that of class 0 in the switch's packet memory
  Time event_at = never;           ///< the event that looks at this port next
  Time header_time = never;        ///< of cut-through: until a switch at the other end knows where a packet goes
  ClassQueue* classes = nullptr;   ///< [plan.count] of this port
  SharedBuffer* memory = nullptr;  ///< of the switch; null where that has no limit
  Time queue_time;                 ///< serialisation of all that waits

  Bytes wire_bytes;               ///< sent, link-control frames left out, where telemetry tells them
  Bytes link_frame_bytes;         ///< pause frames and credit updates sent
  std::uint32_t stopped = 0;      ///< classes that this end has stopped at the other
  std::uint32_t tell_credit = 0;  ///< classes whose new room is still to be told
  PortLabel label;                ///< of the port in telemetry
  std::uint64_t lost = 0;         ///< packets that the link has lost
  std::uint64_t link_frames = 0;  ///< pause frames and credit updates sent
  Time in_after;                  ///< from the last bit of a packet at the other end to this node's output
  Time propagation;               ///< towards the other end

  /// `time`: 0 where the other end wants all of a packet.
  void set_header_time(Time time) { header_time = time > Time() ? time : never; }
  /// No packet waits, and the other end has stopped no class.
  bool is_idle() const { return (occupied | blocked | tell_pause | tell_credit) == 0; }
};
static_assert(sizeof(PortState) == 128);

/// An event at a node other than the arrival of a packet. Events are ordered by time, then by kind.
struct NodeEvent {
  enum class Kind : std::uint8_t {
    pause,      ///< a pause frame has been read; data: classes to stop, classes: those it speaks of
    grant,      ///< a credit update has been read; data: the new limit of `lane`
    report,     ///< a report of a queue takes effect; data: its bytes, classes: which of those of the other end
    expiry,     ///< the pause of `lane` may end
    refresh,    ///< the other end is still stopped: tell it again
    link,       ///< a link changes; data: number in the schedule
    pacing,     ///< queue pair `data` may send again
    timeout,    ///< of queue pair `data`
    credit,     ///< the credits of `data`, a position in ReliableHost::credits, may have been lost
    pull,       ///< a host may ask for a packet
    control,    ///< timer of the congestion control of queue pair `data`
    port_free,  ///< the port may send
    reporting,  ///< queues that have changed are to be reported
  };
  Time time;
  PortId port;
  std::uint32_t data = 0;
  Kind kind = Kind::port_free;
  LaneId lane;
  std::uint16_t classes = 0;
};

}  // namespace weft
