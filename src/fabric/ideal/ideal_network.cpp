// SPDX-License-Identifier: GPL-2.0-only
// The ideal network: messages from post to delivery.
#include "fabric/ideal/ideal_network.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "engine/process_group.hpp"
#include "support/basics/contract.hpp"
#include "support/basics/error.hpp"
#include "support/system/interrupt.hpp"
#include "transport/messages/late.hpp"
#include "units/text.hpp"

namespace weft {

void IdealNetwork::push(Time time, Kind kind, std::uint32_t place, std::uint64_t number, std::uint64_t what) {
  // A sum of two times beyond 63 bits looks negative.
  if (static_cast<std::uint64_t>(time.ps()) >= static_cast<std::uint64_t>(Time::limit().ps())) [[unlikely]]
    throw TimeLimitError("messages take too long");
  due_.push({time, static_cast<std::uint64_t>(kind) << 56 | place, number, what});
}

void IdealNetwork::advance(Time end) {
  while (due_.next_time() < end) {
    look_for_interrupt();  // windows may be long
    handle(due_.pop());
  }
  reached_ = end;
}

void IdealNetwork::handle(const IdealEvent& event) {
  const auto kind = static_cast<Kind>(event.order >> 56);
  const auto place = static_cast<std::uint32_t>(event.order);
  const auto what = static_cast<std::uint32_t>(event.what);
  const Time time = event.time;
  if (kind == Kind::port) {
    const std::uint32_t port = source_port_of_[place];
    if (event.number != source_ports_[port].plan) return;  // another message has begun or ended there since
    now_ = event.time;
    ++events_;
    return run_port(port, event.time);
  }
  now_ = event.time;
  ++events_;
  switch (kind) {
    case Kind::arrive:
      return arrive(what, event.time);
    case Kind::deliver:
      --destination_port(flights_[what].port).pending;
      return deliver(what, event.time);
    case Kind::credit:
      return client_->on_credit(NodeId(place), time, what,
                                late_from_bits(static_cast<std::uint32_t>(event.what >> 32)));
    case Kind::sent:
      return client_->on_sent(NodeId(place), time, event.what);
    case Kind::timer:
      return client_->on_timer(NodeId(place), time, event.what);
    case Kind::ready: {
      const Message& message = flights_[what].message;
      return make_ready(host_state(NodeId(place)).flows[message.queue_pair], what, event.time);
    }
    case Kind::port:
      break;
  }
}

IdealMessage IdealNetwork::shape_of(const IdealPath& path, const Message& message) const {
  const auto packets = static_cast<std::int64_t>(message.packets);
  const Bytes payload = message.bytes - (packets - 1) * path.mtu;
  return {packets, payload + parameters_.data_overhead(), payload, path.mtu};
}

Time IdealNetwork::idle_time_of(std::uint32_t path, const Message& message) {
  Class& known = classes_[path];
  if (known.asked != message.bytes) {
    known.asked = message.bytes;
    known.idle = idle_time(known.path, shape_of(known.path, message));
  }
  return known.idle;
}

/// The times of a message are added up link by link without a check: this checks how long it may take behind the others
/// of its flow.
void IdealNetwork::require_time(const Flow& flow, const Message& message, Time now) const {
  const auto& links = classes_[flow.path].path.links;
  Time sum = now;
  for (std::uint32_t i = 0; i < links.size(); ++i) {
    const auto packets = static_cast<std::int64_t>(message.packets);
    sum = std::max(sum, free_[flow.links + i]);
    sum = bounded_sum(sum, bounded_product(packets, links[i].full));
    sum = bounded_sum(sum, links[i].delay);
  }
  if (sum >= Time::limit()) throw TimeLimitError(fmt::format("a message of {} takes too long", to_text(message.bytes)));
}

std::uint32_t IdealNetwork::new_flight() {
  if (free_flight_ == no_slot) {
    flights_.emplace_back();
    return static_cast<std::uint32_t>(flights_.size() - 1);
  }
  const std::uint32_t slot = free_flight_;
  free_flight_ = flights_[slot].message.next;
  return slot;
}

std::uint64_t IdealNetwork::post(NodeId host, std::uint32_t queue_pair, Time now, Message message,
                                 std::uint64_t token) {
  Host& state = host_state(host);
  const std::uint32_t number = state.flows[queue_pair];
  Flow& flow = flows_[number];
  message.id = message_id(host, state.messages++);
  message.source = host;
  message.token = token;
  message.destination = flow.destination;
  message.queue_pair = queue_pair;
  message.issued = now;
  message.packets = packet_count(message.bytes, classes_[flow.path].path.mtu);
  require_time(flow, message, now);
  message.ideal = idle_time_of(flow.path, message);
  message.next = no_slot;
  flow.packets += message.packets;
  flow.payload += message.bytes;
  ++posted_;
  const std::uint32_t slot = new_flight();
  flights_[slot].message = message;
  const Time ready = pass_own_links(flow, message, now);
  if (ready > now)
    push(ready, Kind::ready, host.value(), message.id, slot);
  else
    make_ready(number, slot, now);
  return message.id;
}

/// The links before the one at which the source's messages take turns: they are faster, and messages wait there only
/// for the flow's own messages. Returns the time of the first packet at that link; the others arrive at least as fast
/// as it serves them.
Time IdealNetwork::pass_own_links(Flow& flow, const Message& message, Time now) {
  const IdealPath& path = classes_[flow.path].path;
  if (path.out == 0) return now;
  const IdealMessage shape = shape_of(path, message);
  Time* const free = &free_[flow.links];
  IdealFront front;
  Time last;
  for (std::uint32_t i = 0; i < path.out; ++i) {
    const Time here = last_packet_time(path.links[i], shape);
    if (i == 0) {
      front.first = std::max(now, free[0]);
      front.last = front.first + (shape.packets - 1) * path.links[0].full;
      front.last_full = front.last - path.links[0].full;
      if (message.notify != 0 && !parameters_.acks)
        push(front.last + here, Kind::sent, flow.host.value(), message.id, message.token);
    } else {
      front = next_link(path, i, front, shape.packets, last, free[i]);
    }
    free[i] = front.last + here;
    busy_[flow.links + i] += work_on(path.links[i], shape, here);
    last = here;
  }
  const IdealLink& link = path.links[path.out - 1];
  return shape.packets == 1 ? front.last + onward(link, last) : front.first + onward(link, link.full);
}

void IdealNetwork::make_ready(std::uint32_t number, std::uint32_t slot, Time now) {
  Flow& flow = flows_[number];
  if (flow.head != no_slot) {
    flights_[flow.tail].message.next = slot;
    flow.tail = slot;
    return;
  }
  flow.head = flow.tail = slot;
  serve_next(number, now);
  plan(flow.port);
}

void IdealNetwork::serve_next(std::uint32_t number, Time now) {
  Flow& flow = flows_[number];
  const Message& message = flights_[flow.head].message;
  const IdealPath& path = classes_[flow.path].path;
  const IdealMessage shape = shape_of(path, message);
  const IdealLink& link = path.links[path.out];
  const Time last = last_packet_time(link, shape);
  const Time work = work_on(link, shape, last);
  flow.begin = now;
  busy_[flow.links + path.out] += work;
  source_ports_[flow.port].turns.begin(now, flow.turn, work, last, message.id, number);
}

void IdealNetwork::plan(std::uint32_t number) {
  SourcePort& port = source_ports_[number];
  ++port.plan;
  if (port.turns.busy()) push(port.turns.next_event(), Kind::port, port.directed_link, port.plan, 0);
}

void IdealNetwork::run_port(std::uint32_t number, Time now) {
  std::uint32_t name = 0;
  while (source_ports_[number].turns.take(now, name)) {
    Flow& flow = flows_[name];
    const std::uint32_t slot = flow.head;
    flow.head = flights_[slot].message.next;
    leave(flow, slot, now);
    if (flow.head != no_slot) serve_next(name, now);
  }
  plan(number);
}

void IdealNetwork::leave(Flow& flow, std::uint32_t slot, Time now) {
  Message& message = flights_[slot].message;
  const IdealPath& path = classes_[flow.path].path;
  const IdealMessage shape = shape_of(path, message);
  const IdealLink& link = path.links[path.out];
  message.ahead = flow.begin - message.issued;
  message.at_host.nic = now - flow.begin - work_on(link, shape, last_packet_time(link, shape));
  if (message.notify != 0 && !parameters_.acks && path.out == 0)
    push(now, Kind::sent, flow.host.value(), message.id, message.token);
  fly(flow, slot, now);
}

/// The last bit has left the source's port: when the message is at the end of its way.
void IdealNetwork::fly(Flow& flow, std::uint32_t slot, Time now) {
  Flight& flight = flights_[slot];
  const IdealPath& path = classes_[flow.path].path;
  const IdealMessage shape = shape_of(path, flight.message);
  Time* const free = &free_[flow.links];
  Time last = last_packet_time(path.links[path.out], shape);
  IdealFront front;
  front.last = now - last;
  front.first = shape.packets == 1 ? front.last : flow.begin;
  front.last_full = front.last - path.links[path.out].full;
  flight.port = no_slot;
  for (auto i = path.out + 1; i < path.links.size(); ++i) {
    const IdealLink& link = path.links[i];
    const Time here = last_packet_time(link, shape);
    front = next_link(path, i, front, shape.packets, last, free[i]);
    free[i] = front.last + here;
    const Time work = work_on(link, shape, here);
    busy_[flow.links + i] += work;
    if (i == path.in) {
      flight.first = front.first;
      flight.end = free[i];
      flight.work = work;
      flight.port = links_[flow.links + i];
    }
    last = here;
  }
  const Time at = front.last + last + path.links.back().delay;
  const Message& message = flight.message;
  const std::uint16_t process = owner_of_host_[message.destination];
  if (process == process_) return push(at, Kind::arrive, message.destination.value(), message.id, slot);
  send_across(process, {Kind::arrive, message.destination, message.queue_pair, at, message.id, 0}, &flight);
  flight.message.next = free_flight_;
  free_flight_ = slot;
}

void IdealNetwork::arrive(std::uint32_t slot, Time now) {
  const Flight& flight = flights_[slot];
  if (flight.port == no_slot) return deliver(slot, now);
  DestinationPort& port = destination_port(flight.port);
  const Time done = port.line.serve(flight.first, flight.work);
  // Messages leave in the order in which they have arrived.
  const Time at = std::max(now + std::max(Time(), done - flight.end), port.latest);
  port.latest = at;
  if (at == now && port.pending == 0) return deliver(slot, now);
  ++port.pending;
  push(at, Kind::deliver, flight.message.destination.value(), flight.message.id, slot);
}

void IdealNetwork::deliver(std::uint32_t slot, Time now) {
  const Message message = flights_[slot].message;
  flights_[slot].message.next = free_flight_;
  free_flight_ = slot;
  ++delivered_;
  if (message.notify != 0 && parameters_.acks) tell_sender(message, now);
  client_->on_message(message.destination, now, message);
}

void IdealNetwork::tell_sender(const Message& message, Time now) {
  const std::uint16_t process = owner_of_host_[message.source];
  if (process != process_)
    return send_across(process, {Kind::sent, message.source, message.queue_pair, now, message.id, message.token},
                       nullptr);
  push(now + flow_of(message.source, message.queue_pair).control_time, Kind::sent, message.source.value(), message.id,
       message.token);
}

void IdealNetwork::send_credit(NodeId /*host*/, Time now, NodeId to, std::uint32_t queue_pair, Time late) {
  const std::uint16_t process = owner_of_host_[to];
  const std::uint64_t token = std::uint64_t{late_to_bits(late)} << 32 | queue_pair;
  if (process != process_) return send_across(process, {Kind::credit, to, queue_pair, now, 0, token}, nullptr);
  give_credit(to, queue_pair, now, token);
}

void IdealNetwork::give_credit(NodeId to, std::uint32_t queue_pair, Time now, std::uint64_t token) {
  push(now + flow_of(to, queue_pair).control_time, Kind::credit, to.value(), queue_pair, token);
}

SendTimes IdealNetwork::send_times(NodeId host, std::uint32_t queue_pair, Time /*now*/) const {
  const Flow& flow = flows_[host_states_[local_of_host_[host]].flows[queue_pair]];
  SendTimes times;
  times.sent = busy_[flow.links + classes_[flow.path].path.out];
  return times;
}

void IdealNetwork::set_timer(NodeId host, Time at, std::uint64_t token) {
  push(at, Kind::timer, host.value(), host_state(host).timers++, token);
}

}  // namespace weft
