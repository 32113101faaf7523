// SPDX-License-Identifier: GPL-2.0-only
// Link-level flow control: pause frames of priority flow control (IEEE 802.1Q-2018 clause 36), and credits per virtual
// lane (InfiniBand Architecture Specification vol. 1, 7.9).
#include <algorithm>

#include "fabric/network/buffered_state.hpp"
#include "fabric/network/fabric.hpp"
#include "fabric/network/fabric_hot.hpp"
#include "fabric/probes/pause_causes.hpp"
#include "support/contract.hpp"

namespace weft {

// Priority flow control ----------------------------------------------------------------------------------------------

// An ingress queue of this switch is over its threshold, with a frame that is about to wait for `out`.
void Fabric::stop_sender(std::uint32_t in_port, std::uint8_t lane, std::uint32_t out, std::int64_t frame,
                         std::int64_t now) {
  PortState& ps = buffered_->ports[in_port];
  const std::uint32_t bit = 1U << lane;
  if ((ps.stopped & bit) != 0) return;
  const std::uint32_t local = local_of_port_[in_port];
  stop_deferring(local);
  ++buffered_->deferred[local].stopped;
  ps.stopped |= bit;
  ps.tell_pause |= bit;
  buffered_->queue_of(in_port, lane).stopped_since = now;
  if (pause_causes_)
    pause_causes_->stopped(buffered_->queue_number(in_port, lane), filling_output(in_port, lane, out, frame), now);
  kick(in_port, now);
}

// An ingress queue of this switch, whose sender has been stopped, is short enough.
void Fabric::let_sender_resume(std::uint32_t in_port, std::uint8_t lane, std::int64_t now) {
  PortState& ps = buffered_->ports[in_port];
  const std::uint32_t bit = 1U << lane;
  ps.stopped &= ~bit;
  --buffered_->deferred[local_of_port_[in_port]].stopped;
  ps.tell_pause |= bit;
  ClassQueue& counters = buffered_->queue_of(in_port, lane);
  counters.stopped += now - counters.stopped_since;
  if (pause_causes_) pause_causes_->resumed(buffered_->queue_number(in_port, lane), now);
  kick(in_port, now);
}

std::int64_t Fabric::pause_time(std::uint32_t port) const {
  // Quanta of 512 bit times (IEEE 802.1Q 36.1.3.2).
  const auto bits = static_cast<unsigned __int128>(parameters_.fabric.pfc.quanta) * 512;
  const auto ps = bits * 1'000'000'000'000U / static_cast<std::uint64_t>(outputs_[port].rate_bps);
  // Longer ones are told again long before.
  return static_cast<std::int64_t>(std::min(ps, static_cast<unsigned __int128>(Time::longest_wait().ps())));
}

// One frame tells of all classes of which there is something to tell.
void Fabric::send_pause(std::uint32_t port_index, std::int64_t now) {
  BufferedState& state = *buffered_;
  PortState& ps = state.ports[port_index];
  const std::uint32_t told = ps.tell_pause;
  ps.tell_pause = 0;
  Packet frame;
  frame.kind = PacketKind::pause;
  frame.psn = told & ps.stopped;
  frame.payload = static_cast<std::uint16_t>(told);
  send_link_frame(port_index, now, frame, parameters_.fabric.pfc.response.ps());
  for (std::uint32_t rest = told & ps.stopped; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint8_t>(std::countr_zero(rest));
    ClassQueue& queue = state.queue_of(port_index, lane);
    ++queue.pauses_sent;
    // Told again at half of its time, so that it never ends by itself.
    queue.refresh_at = now + std::max<std::int64_t>(1, pause_time(port_index) / 2);
    add_event(local_of_port_[port_index], {queue.refresh_at, port_index, 0, NodeEvent::Kind::refresh, lane, 0});
  }
}

bool Fabric::refresh_pause(const NodeEvent& event) {
  PortState& ps = buffered_->ports[event.port];
  ClassQueue& queue = buffered_->queue_of(event.port, event.lane);
  const std::uint32_t bit = 1U << event.lane;
  if ((ps.stopped & bit) == 0 || queue.refresh_at != event.time) return false;
  if (event.time - queue.stopped_since >= parameters_.fabric.pfc.watchdog.ps()) suspicious_ = true;
  ps.tell_pause |= bit;
  kick(event.port, event.time);
  return true;
}

// The other end has sent a pause frame.
void Fabric::read_pause(const NodeEvent& event) {
  BufferedState& state = *buffered_;
  PortState& ps = state.ports[event.port];
  for (std::uint32_t rest = event.classes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint8_t>(std::countr_zero(rest));
    ClassQueue& queue = state.queue_of(event.port, lane);
    if ((event.data >> lane & 1U) == 0) {
      unblock(event.port, lane, event.time);
      continue;
    }
    ++queue.pauses_received;
    if ((ps.blocked >> lane & 1U) == 0) queue.paused_since = event.time;
    ps.blocked |= 1U << lane;
    queue.paused_until = event.time + pause_time(event.port);
    add_event(local_of_port_[event.port], {queue.paused_until, event.port, 0, NodeEvent::Kind::expiry, lane, 0});
  }
  kick(event.port, event.time);
}

bool Fabric::expire_pause(const NodeEvent& event) {
  const ClassQueue& queue = buffered_->queue_of(event.port, event.lane);
  if (queue.paused_until != event.time) return false;
  unblock(event.port, event.lane, event.time);
  kick(event.port, event.time);
  return true;
}

void Fabric::unblock(std::uint32_t port_index, std::uint8_t lane, std::int64_t now) {
  BufferedState& state = *buffered_;
  PortState& ps = state.ports[port_index];
  if ((ps.blocked >> lane & 1U) == 0) return;
  ps.blocked &= ~(1U << lane);
  ClassQueue& queue = state.queue_of(port_index, lane);
  queue.paused += now - queue.paused_since;
  queue.paused_until = 0;
  const Node& node = nodes_[local_of_port_[port_index]];
  if (node.host != no_slot) nic_unhold(node, port_index, lane, now);
}

// Credits ------------------------------------------------------------------------------------------------------------

// There is room again for the frames of a sender that needs credits.
void Fabric::give_credit(std::uint32_t in_port, std::uint8_t lane, std::int64_t frame, std::int64_t now) {
  buffered_->queue_of(in_port, lane).room += static_cast<std::uint32_t>(frame);
  buffered_->ports[in_port].tell_credit |= 1U << lane;
  kick(in_port, now);
}

bool Fabric::finds_credit(std::uint32_t port_index, std::uint32_t lane, std::int64_t frame, std::int64_t now) {
  BufferedState& state = *buffered_;
  ClassQueue& queue = state.queue_of(port_index, lane);
  if (static_cast<std::int32_t>(queue.granted - queue.sent) < frame) {
    state.ports[port_index].blocked |= 1U << lane;
    queue.paused_since = now;
    return false;
  }
  queue.sent += static_cast<std::uint32_t>(frame);
  return true;
}

// A frame that the link has lost takes no room. InfiniBand's updates carry what the sender has sent in all, so that the
// other end makes up for what it has not seen (IBTA vol. 1, 7.9.4.2).
void Fabric::give_back_credit(std::uint32_t port_index, std::uint32_t lane, std::int64_t frame) {
  BufferedState& state = *buffered_;
  if ((state.ports[port_index].credited >> lane & 1U) == 0) return;
  state.queue_of(port_index, lane).sent -= static_cast<std::uint32_t>(frame);
}

// An update tells the limit of one lane; it is never too late for one, because limits only grow.
void Fabric::send_grant(std::uint32_t port_index, std::int64_t now) {
  PortState& ps = buffered_->ports[port_index];
  const auto lane = static_cast<std::uint8_t>(std::countr_zero(ps.tell_credit));
  ps.tell_credit &= ps.tell_credit - 1;
  Packet frame;
  frame.kind = PacketKind::grant;
  frame.lane = lane & 0xfU;
  frame.psn = buffered_->queue_of(port_index, lane).room;
  send_link_frame(port_index, now, frame, 0);
}

void Fabric::read_grant(const NodeEvent& event) {
  ClassQueue& queue = buffered_->queue_of(event.port, event.lane);
  if (static_cast<std::int32_t>(event.data - queue.granted) > 0) queue.granted = event.data;
  unblock(event.port, event.lane, event.time);
  kick(event.port, event.time);
}

// Both ---------------------------------------------------------------------------------------------------------------

// These frames end at the other end of the link, in its MAC: no queue, and not the latency of a switch. `later`: ps
// from the last bit to the effect.
void Fabric::send_link_frame(std::uint32_t port_index, std::int64_t now, Packet frame, std::int64_t later) {
  OutputPort& port = outputs_[port_index];
  PortState& ps = buffered_->ports[port_index];
  if (sampling_ != 0 && now >= port.next_sample) flush_samples(port, now, queued_bytes(port_index));
  const auto [wire, busy] = wire_time(port, frame);
  port.free_at = now + busy;
  port.busy += busy;
  ++ps.link_frames;
  ps.link_frame_bytes += wire;
  std::int64_t arrival = port.free_at + ps.propagation + later;
  if (has_faults_ && link_loses(port_index, now, port.free_at, 0)) {
    // Pauses end by themselves. Credits are told again and again (IBTA vol. 1, 7.9.4.1): as soon as the link works.
    const std::int64_t works_at = outage_end(port_index, now, port.free_at);
    if (frame.kind == PacketKind::pause || works_at == never) return;
    arrival = works_at + busy + ps.propagation;
  }
  if ((port.peer_port & OutputPort::remote) == 0)
    add_event(port.peer_node, link_frame_event(port.peer_port, frame, arrival));
  else
    export_packet(port, frame, arrival);
}

NodeEvent Fabric::link_frame_event(std::uint32_t port_index, const Packet& frame, std::int64_t arrival) {
  const NodeEvent::Kind kind = frame.kind == PacketKind::pause   ? NodeEvent::Kind::pause
                               : frame.kind == PacketKind::grant ? NodeEvent::Kind::grant
                                                                 : NodeEvent::Kind::report;
  return {arrival, port_index, frame.psn, kind, frame.lane, frame.payload};
}

// What stopped whom ---------------------------------------------------------------------------------------------------

void Fabric::count_pause_causes() {
  if (!buffered_ || !(buffered_->pauses || buffered_->credits)) return;
  pause_causes_ = std::make_unique<PauseCauses>(buffered_->classes.size());
  watches_credits_ = buffered_->credits;
  for (std::uint32_t port = 0; port < outputs_.size(); ++port)
    for (std::uint32_t rest = buffered_->ports[port].credited; rest != 0; rest &= rest - 1)
      pause_causes_->give_credits(buffered_->queue_number(port, static_cast<std::uint32_t>(std::countr_zero(rest))),
                                  input_buffer(port).count(), buffered_->largest_frame);
}

// A frame has begun to wait for `out` at a switch. A host takes what comes at once.
void Fabric::note_credit_taken(std::uint32_t in_port, std::uint8_t in_lane, std::uint32_t out, std::int64_t frame,
                               std::int64_t now) {
  if ((buffered_->ports[in_port].credited >> in_lane & 1U) == 0) return;
  const std::size_t queue = buffered_->queue_number(in_port, in_lane);
  if (pause_causes_->waits(queue, frame)) pause_causes_->stopped(queue, filling_output(in_port, in_lane, out, 0), now);
}

void Fabric::note_credit_given(std::uint32_t in_port, std::uint8_t in_lane, std::int64_t frame, std::int64_t now) {
  if ((buffered_->ports[in_port].credited >> in_lane & 1U) == 0) return;
  pause_causes_->leaves(buffered_->queue_number(in_port, in_lane), frame, now);
}

// The output for which most bytes of an ingress queue wait, `frame` more at `out`. The first one of several. Walks what
// waits in the switch: counting it packet by packet would cost more, as senders are stopped much less often.
std::uint32_t Fabric::filling_output(std::uint32_t in_port, std::uint8_t in_lane, std::uint32_t out,
                                     std::int64_t frame) const {
  const BufferedState& state = *buffered_;
  const Node& node = nodes_[local_of_port_[in_port]];
  std::uint32_t fullest = out;
  std::int64_t most = -1;
  for (std::uint32_t port = node.first_port; port < node.first_port + node.ports; ++port) {
    std::int64_t bytes = port == out ? frame : 0;
    for (std::uint32_t rest = state.ports[port].occupied; rest != 0; rest &= rest - 1)
      state.queue_of(port, static_cast<std::uint32_t>(std::countr_zero(rest)))
          .queue.for_each([&](const QueuedPacket& waiting) {
            if (waiting.in_port == in_port && waiting.frame >> 24 == in_lane) bytes += waiting.frame & 0xffffffU;
          });
    if (bytes <= most) continue;
    most = bytes;
    fullest = port;
  }
  return fullest;
}

std::vector<LinkPause> Fabric::link_pauses(Time end) const {
  std::vector<LinkPause> rows;
  if (!pause_causes_) return rows;
  for (std::uint32_t port = 0; port < outputs_.size(); ++port) {
    for (std::uint32_t lane = 0; lane < buffered_->plan.count; ++lane) {
      const std::size_t queue = buffered_->queue_number(port, lane);
      const std::uint32_t current = pause_causes_->current(queue);
      const auto causes = pause_causes_->of_queue(queue);
      for (std::uint32_t i = 0; i < causes.size(); ++i) {
        // What comes in through a port travels the other direction of its link.
        LinkPause row{outputs_[port].directed_link ^ 1U, lane, outputs_[causes[i].port].directed_link, causes[i]};
        if (i == current) {
          row.cause.time += end.ps() - pause_causes_->since(queue);
          row.cause.last = end.ps();
        }
        rows.push_back(row);
      }
    }
  }
  return rows;
}

}  // namespace weft
