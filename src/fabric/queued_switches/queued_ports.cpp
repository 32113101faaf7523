// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <utility>

#include "fabric/queued/queued_hot.hpp"

namespace weft {

// Looking at ports ----------------------------------------------------------------------------------------------------

void QueuedPorts::look_by_event(PortId port_index, Time time) {
  PortState& ps = q_.state.ports[port_index];
  const std::uint32_t local = net_.nodes.of_port[port_index];
  DeferredPorts& deferred = q_.state.deferred[local];
  if (deferred.on) {
    ps.deferred = true;
    deferred.ports.push_back(port_index);
  } else if (!ps.of_host) {
    q_.events.add(local, {time, port_index, 0, NodeEvent::Kind::port_free, {}, 0});
  } else if (local != net_.clock.running) {
    net_.clock.wake_at(local, time);
  }
}

inline bool QueuedPorts::has_work(PortId port_index) const {
  const PortState& ps = q_.state.ports[port_index];
  if ((ps.tell_pause | ps.tell_credit | (ps.occupied & ~ps.blocked)) != 0) return true;
  if (!ps.of_host) return false;
  const LocalNode& node = net_.nodes.all[net_.nodes.of_port[port_index]];
  const NicPort& nic = q_.state.hosts[node.host].ports[port_index - node.first_port];
  return nic.has_urgent() || nic.has_ready();
}

// The first packet of the class whose turn it is.
[[gnu::always_inline]] inline bool QueuedPorts::send_first(PortId port_index, Time now) {
  QueuedState& state = q_.state;
  const PortState& ps = state.ports[port_index];
  std::uint32_t ready = ps.occupied & ~ps.blocked;
  while (ready != 0) {
    const LaneId lane = choose_lane(port_index, ready);
    const auto frame = [&] { return state.queue_of(port_index, lane).queue.front().frame_bytes(); };
    if (q_.control.takes_credit(port_index, lane, frame(), now)) {
      if (competes(ready, lane)) state.schedulers[port_index]->sends(lane, frame());
      leave_queue(port_index, lane, now);
      return true;
    }
    ready &= ~(lane.bit());
  }
  return false;
}

// Sends one packet or link-control frame through a free port. False if there is nothing that may go.
[[gnu::always_inline]] inline bool QueuedPorts::send_next(PortId port_index, Time now) {
  QueuedState& state = q_.state;
  PortState& ps = state.ports[port_index];
  if (ps.tell_pause != 0) {
    q_.control.send_pause(port_index, now);
    return true;
  }
  if (ps.tell_credit != 0) {
    q_.control.send_grant(port_index, now);
    return true;
  }
  if (ps.of_host) {
    const LocalNode& node = net_.nodes.all[net_.nodes.of_port[port_index]];
    if ((ps.occupied & ~ps.blocked) != 0) [[unlikely]]
      return q_.frames.send_beside(node, port_index, now);
    return q_.nics.send_urgent(node, port_index, now) || q_.nics.send_data(node, port_index, now);
  }
  return send_first(port_index, now);
}

// Something may be there to be sent: now, or when the port is free.
void QueuedPorts::kick(PortId port_index, Time now) {
  if (net_.outputs[port_index].free_at <= now && !send_next(port_index, now)) return;
  if (has_work(port_index)) look_again(port_index, net_.outputs[port_index].free_at);
}

// Sends the packets of the port before a time. Ports that defer belong to switches whose senders are not stopped: they
// have no pause and no credit to send, and their departures do not change that.
void QueuedPorts::catch_up(PortId port_index, Time before) {
  PortState& ps = q_.state.ports[port_index];
  const OutputPort& port = net_.outputs[port_index];
  if (!ps.deferred || ps.event_at >= before) return;
  if (q_.state.plain) return q_.switches.send_deferred(port_index, before);
  Time now;
  std::uint64_t looks = 0;
  for (; ps.event_at < before; ++looks) {
    now = std::exchange(ps.event_at, never);
    if (port.free_at <= now && !send_next(port_index, now)) continue;
    if ((ps.occupied & ~ps.blocked) != 0) ps.event_at = port.free_at;
  }
  net_.clock.happen(now, looks);
}

// The last packet of a message has waited here: its message learns of it.
void QueuedPorts::tell_message(PortId port_index, LaneId lane, const Packet& last, Time now) {
  Message& message = net_.messages[last.message];
  const Time came = last.time;
  if (q_.outages.slows()) [[unlikely]] {
    const OutputPort& port = net_.outputs[port_index];
    message.slower += q_.outages.longer(port_index, net_.sizes.wire_time(port, last).busy);
    const auto before = static_cast<std::int64_t>(message.packets) - 1;
    message.slower_before = std::max(message.slower_before, before * q_.outages.longer(port_index, port.full_packet));
  }
  message.add_wait(net_.outputs[port_index].directed_link, now - came);
  if (net_.observers.waits()) net_.observers.waits()->waited(port_index, last.source(), came, now);
  const Time paused = q_.state.paused_time(port_index, lane, now) - message.pause_mark;
  message.paused += paused;
  if (!q_.state.ports[port_index].of_host) message.paused_in_network += paused;
}

// Which class is next -------------------------------------------------------------------------------------------------

// Chooses among classes that share the link.
LaneId QueuedPorts::choose_sharing(PortId port_index, std::uint32_t ready) {
  QueuedState& state = q_.state;
  ReadyClasses classes;
  classes.lanes = ready & state.plan.shared;
  const bool of_host = state.ports[port_index].of_host;
  for (std::uint32_t rest = classes.lanes; rest != 0; rest &= rest - 1) {
    const LaneId lane = LaneId::first_of(rest);
    classes.frame[lane] = of_host ? Bytes(1) : state.queue_of(port_index, lane).queue.front().frame_bytes();
  }
  tell_emptied(port_index);
  return state.schedulers[port_index]->choose(classes);
}

void QueuedPorts::tell_emptied(PortId port_index) {
  PortState& ps = q_.state.ports[port_index];
  if (ps.emptied != 0) q_.state.schedulers[port_index]->emptied(ps.emptied);
  ps.emptied = 0;
}

// The first packet of a queue, if the other end of the link has space.
bool QueuedPorts::send_waiting(PortId port_index, LaneId lane, Time now) {
  const Bytes frame = q_.state.queue_of(port_index, lane).queue.front().frame_bytes();
  if (!q_.control.takes_credit(port_index, lane, frame, now)) return false;
  leave_queue(port_index, lane, now);
  return true;
}

}  // namespace weft
