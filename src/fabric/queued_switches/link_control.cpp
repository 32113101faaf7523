// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <bit>

#include "fabric/queued/queued_hot.hpp"
#include "support/basics/contract.hpp"

namespace weft {

// Priority flow control -----------------------------------------------------------------------------------------------

// An ingress queue of this switch is over its threshold, with a frame that is about to wait for `out`.
void LinkControl::stop_sender(PortId in_port, LaneId lane, PortId out, Bytes frame, Time now) {
  PortState& ps = q_.state.ports[in_port];
  const std::uint32_t bit = lane.bit();
  if ((ps.stopped & bit) != 0) return;
  const std::uint32_t local = net_.nodes.of_port[in_port];
  q_.switches.stop_deferring(local);
  ++q_.state.deferred[local].stopped;
  ps.stopped |= bit;
  ps.tell_pause |= bit;
  q_.state.queue_of(in_port, lane).stopped_since = now;
  if (causes) causes->stopped(q_.state.queue_number(in_port, lane), filling_output(in_port, lane, out, frame), now);
  q_.ports.kick(in_port, now);
}

// The output for which most bytes of an ingress queue wait, `frame` more at `out`. The first one of several. Goes
// through the waiting packets of the switch: counting each packet would cost more, as senders are rarely stopped.
PortId LinkControl::filling_output(PortId in_port, LaneId in_lane, PortId out, Bytes frame) const {
  const QueuedState& state = q_.state;
  const LocalNode& node = net_.nodes.all[net_.nodes.of_port[in_port]];
  PortId fullest = out;
  Bytes max(-1);
  for (const PortId port : node.all_ports()) {
    Bytes bytes = port == out ? frame : Bytes();
    for (std::uint32_t rest = state.ports[port].occupied; rest != 0; rest &= rest - 1)
      state.queue_of(port, LaneId::first_of(rest)).queue.for_each([&](const QueuedPacket& waiting) {
        if (waiting.in_port == in_port && waiting.in_lane() == in_lane) bytes += waiting.frame_bytes();
      });
    if (bytes <= max) continue;
    max = bytes;
    fullest = port;
  }
  return fullest;
}

// An ingress queue of this switch, whose sender has been stopped, is short enough.
void LinkControl::let_sender_resume(PortId in_port, LaneId lane, Time now) {
  PortState& ps = q_.state.ports[in_port];
  const std::uint32_t bit = lane.bit();
  ps.stopped &= ~bit;
  --q_.state.deferred[net_.nodes.of_port[in_port]].stopped;
  ps.tell_pause |= bit;
  ClassQueue& counters = q_.state.queue_of(in_port, lane);
  counters.stopped += now - counters.stopped_since;
  if (causes) causes->resumed(q_.state.queue_number(in_port, lane), now);
  q_.ports.kick(in_port, now);
}

Time LinkControl::pause_time(PortId port) const {
  // Quanta of 512 bit times (IEEE 802.1Q 36.1.3.2).
  const auto bits = static_cast<unsigned __int128>(net_.parameters.fabric.pfc.quanta) * 512;
  const auto ps = bits * 1'000'000'000'000U / static_cast<std::uint64_t>(net_.outputs[port].rate.bps());
  // Longer ones are renewed long before.
  return Time::from_ps(
      static_cast<std::int64_t>(std::min(ps, static_cast<unsigned __int128>(Time::longest_wait().ps()))));
}

// One frame carries all classes whose state has changed.
void LinkControl::send_pause(PortId port_index, Time now) {
  QueuedState& state = q_.state;
  PortState& ps = state.ports[port_index];
  const std::uint32_t told = ps.tell_pause;
  ps.tell_pause = 0;
  Packet frame;
  frame.kind = PacketKind::pause;
  frame.psn = told & ps.stopped;
  frame.payload = static_cast<std::uint16_t>(told);
  send_link_frame(port_index, now, frame, net_.parameters.fabric.pfc.response);
  for (std::uint32_t rest = told & ps.stopped; rest != 0; rest &= rest - 1) {
    const LaneId lane = LaneId::first_of(rest);
    ClassQueue& queue = state.queue_of(port_index, lane);
    ++queue.pauses_sent;
    // Renewed after half of its time, so that it never expires.
    queue.refresh_at = now + std::max(Time::from_ps(1), pause_time(port_index) / 2);
    q_.events.add(net_.nodes.of_port[port_index], {queue.refresh_at, port_index, 0, NodeEvent::Kind::refresh, lane, 0});
  }
}

bool LinkControl::refresh_pause(const NodeEvent& event) {
  PortState& ps = q_.state.ports[event.port];
  ClassQueue& queue = q_.state.queue_of(event.port, event.lane);
  const std::uint32_t bit = event.lane.bit();
  if ((ps.stopped & bit) == 0 || queue.refresh_at != event.time) return false;
  if (event.time - queue.stopped_since >= net_.parameters.fabric.pfc.watchdog) suspicious = true;
  ps.tell_pause |= bit;
  q_.ports.kick(event.port, event.time);
  return true;
}

// The other end has sent a pause frame.
void LinkControl::read_pause(const NodeEvent& event) {
  QueuedState& state = q_.state;
  PortState& ps = state.ports[event.port];
  for (std::uint32_t rest = event.classes; rest != 0; rest &= rest - 1) {
    const LaneId lane = LaneId::first_of(rest);
    ClassQueue& queue = state.queue_of(event.port, lane);
    if (!lane.in(event.data)) {
      unblock(event.port, lane, event.time);
      continue;
    }
    ++queue.pauses_received;
    if (!lane.in(ps.blocked)) queue.paused_since = event.time;
    ps.blocked |= lane.bit();
    queue.paused_until = event.time + pause_time(event.port);
    q_.events.add(net_.nodes.of_port[event.port],
                  {queue.paused_until, event.port, 0, NodeEvent::Kind::expiry, lane, 0});
  }
  q_.ports.kick(event.port, event.time);
}

bool LinkControl::expire_pause(const NodeEvent& event) {
  const ClassQueue& queue = q_.state.queue_of(event.port, event.lane);
  if (queue.paused_until != event.time) return false;
  unblock(event.port, event.lane, event.time);
  q_.ports.kick(event.port, event.time);
  return true;
}

void LinkControl::unblock(PortId port_index, LaneId lane, Time now) {
  QueuedState& state = q_.state;
  PortState& ps = state.ports[port_index];
  if (!lane.in(ps.blocked)) return;
  ps.blocked &= ~(lane.bit());
  ClassQueue& queue = state.queue_of(port_index, lane);
  queue.paused += now - queue.paused_since;
  queue.paused_until = Time();
  const LocalNode& node = net_.nodes.all[net_.nodes.of_port[port_index]];
  if (node.host != no_slot) q_.nics.unhold(node, port_index, lane, now);
}

// Credits -------------------------------------------------------------------------------------------------------------

// There is space again for the frames of a sender that needs credits.
void LinkControl::give_credit(PortId in_port, LaneId lane, Bytes frame, Time now) {
  q_.state.queue_of(in_port, lane).room += static_cast<std::uint32_t>(frame.count());
  q_.state.ports[in_port].tell_credit |= lane.bit();
  q_.ports.kick(in_port, now);
}

bool LinkControl::finds_credit(PortId port_index, LaneId lane, Bytes frame, Time now) {
  QueuedState& state = q_.state;
  ClassQueue& queue = state.queue_of(port_index, lane);
  if (static_cast<std::int32_t>(queue.granted - queue.sent) < frame.count()) {
    state.ports[port_index].blocked |= lane.bit();
    queue.paused_since = now;
    return false;
  }
  queue.sent += static_cast<std::uint32_t>(frame.count());
  return true;
}

// A frame that the link has lost takes no space. InfiniBand's updates carry the sender's total, so that the other end
// accounts for lost frames (IBTA vol. 1, 7.9.4.2).
void LinkControl::give_back_credit(PortId port_index, LaneId lane, Bytes frame) {
  QueuedState& state = q_.state;
  if (!lane.in(state.ports[port_index].credited)) return;
  state.queue_of(port_index, lane).sent -= static_cast<std::uint32_t>(frame.count());
}

// An update carries the limit of one lane; it is never too late for an update, because limits only grow.
void LinkControl::send_grant(PortId port_index, Time now) {
  PortState& ps = q_.state.ports[port_index];
  const LaneId lane = LaneId::first_of(ps.tell_credit);
  ps.tell_credit &= ps.tell_credit - 1;
  Packet frame;
  frame.kind = PacketKind::grant;
  frame.lane = lane.value() & 0xfU;
  frame.psn = q_.state.queue_of(port_index, lane).room;
  send_link_frame(port_index, now, frame, Time());
}

void LinkControl::read_grant(const NodeEvent& event) {
  ClassQueue& queue = q_.state.queue_of(event.port, event.lane);
  if (static_cast<std::int32_t>(event.data - queue.granted) > 0) queue.granted = event.data;
  unblock(event.port, event.lane, event.time);
  q_.ports.kick(event.port, event.time);
}

// Both ----------------------------------------------------------------------------------------------------------------

// These frames end at the other end of the link, in its MAC: no queue, and not the latency of a switch. `later`: ps
// from the last bit to the effect.
void LinkControl::send_link_frame(PortId port_index, Time now, Packet frame, Time later) {
  OutputPort& port = net_.outputs[port_index];
  PortState& ps = q_.state.ports[port_index];
  if (net_.sampler.due(port, now)) net_.sampler.flush(port, now, q_.state.sampled_bytes(port, port_index));
  const auto [wire, busy] = net_.sizes.wire_time(port, frame);
  port.free_at = now + busy;
  port.busy += busy;
  ++ps.link_frames;
  ps.link_frame_bytes += wire;
  Time arrival = port.free_at + ps.propagation + later;
  if (q_.outages.any() && q_.outages.loses(port_index, now, port.free_at, Bytes())) {
    // Pauses expire. Credits are sent again and again (IBTA vol. 1, 7.9.4.1): as soon as the link works.
    const Time works_at = q_.outages.outage_end(port_index, now, port.free_at);
    if (frame.kind == PacketKind::pause || works_at == never) return;
    arrival = works_at + busy + ps.propagation;
  }
  if (!port.leaves_process())
    q_.events.add(port.peer_node, event_of(port.peer(), frame, arrival));
  else
    q_.departures.export_packet(port, frame, arrival);
}

NodeEvent LinkControl::event_of(PortId port_index, const Packet& frame, Time arrival) {
  const NodeEvent::Kind kind = frame.kind == PacketKind::pause   ? NodeEvent::Kind::pause
                               : frame.kind == PacketKind::grant ? NodeEvent::Kind::grant
                                                                 : NodeEvent::Kind::report;
  return {arrival, port_index, frame.psn, kind, lane_of(frame), frame.payload};
}

// What stopped whom ---------------------------------------------------------------------------------------------------

void LinkControl::count_causes() {
  const QueuedState& state = q_.state;
  if (!state.pauses && !state.credits) return;
  causes = std::make_unique<PauseCauses>(state.classes.size());
  watches_credits_ = state.credits;
  for (const PortId port : net_.nodes.ports())
    for (std::uint32_t rest = state.ports[port].credited; rest != 0; rest &= rest - 1)
      causes->give_credits(state.queue_number(port, LaneId::first_of(rest)), q_.build.input_buffer(port),
                           q_.build.largest_frame(port));
}

void LinkControl::note_credit_taken(PortId in_port, LaneId in_lane, PortId out, Bytes frame, Time now) {
  if (!in_lane.in(q_.state.ports[in_port].credited)) return;
  const std::size_t queue = q_.state.queue_number(in_port, in_lane);
  if (causes->waits(queue, frame)) causes->stopped(queue, filling_output(in_port, in_lane, out, Bytes()), now);
}

void LinkControl::note_credit_given(PortId in_port, LaneId in_lane, Bytes frame, Time now) {
  if (!in_lane.in(q_.state.ports[in_port].credited)) return;
  causes->leaves(q_.state.queue_number(in_port, in_lane), frame, now);
}

}  // namespace weft
