// SPDX-License-Identifier: GPL-2.0-only
// Hosts: receiving packets, timers, and the NIC's decisions what to send.
#include <algorithm>

#include "fabric/network/fabric.hpp"
#include "support/contract.hpp"

namespace weft {

void Fabric::run_host(const Node& node, std::int64_t end) {
  Host& host = host_states_[node.host];
  // A host has one port (checked when the machine is built), so its arrivals are in order already.
  const std::uint32_t port = node.first_port;
  PacketQueue& queue = inputs_[port];
  while (true) {
    const std::int64_t arrival = heads_[port];
    const std::int64_t timer = host.timers.empty() ? never : host.timers.front().time;
    const std::int64_t next = std::min({arrival, timer, host.send_time});
    if (next >= end) return;
    now_ = std::max(now_, next);
    ++events_;
    if (arrival == next) {
      const Packet packet = queue.front();
      queue.pop(blocks_);
      heads_[port] = queue.empty() ? never : queue.front().time;
      host_receive(node, host, packet);
    } else if (timer == next) {
      fire_timer(node, host);
    } else {
      host_send(node, host, next);
    }
  }
}

void Fabric::fire_timer(const Node& node, Host& host) {
  std::pop_heap(host.timers.begin(), host.timers.end(), std::greater<>());
  const HostTimer timer = host.timers.back();
  host.timers.pop_back();
  if ((timer.token & sent_token) != 0)
    client_->on_sent(node.id, Time::from_ps(timer.time), timer.token & ~sent_token);
  else
    client_->on_timer(node.id, Time::from_ps(timer.time), timer.token);
}

void Fabric::wake_sender(const Node& node, Host& host, std::int64_t now) {
  if (host.send_time != never) return;
  host.send_time = std::max(now, outputs_[node.first_port].free_at);
  wake_node(local_of_[node.id], host.send_time);
}

void Fabric::wake_node(std::uint32_t local, std::int64_t time) {
  if (in_node_) return;  // whoever runs the node looks at its timers and its sender afterwards
  if (drive_ == Drive::ns3_events)
    schedule_wake(local);
  else
    calendar_.schedule(local, window_number(time));
}

void Fabric::list_if_ready(Host& host, std::uint32_t queue_pair, std::int64_t now) {
  QueuePair& pair = host.queue_pairs[queue_pair];
  if (pair.listed) return;
  if (!pair.ready(window_, mtu_))
    return pair.waits.wait_for(pair.has_packet() ? SendWaits::Reason::window : SendWaits::Reason::none, now);
  pair.waits.wait_for(SendWaits::Reason::nic, now);
  pair.listed = true;
  host.ready.push_back(queue_pair);
}

void Fabric::host_receive(const Node& node, Host& host, const Packet& packet) {
  const std::int64_t now = packet.time;
  if (packet.kind == PacketKind::data) {
    ReceiverState& state = host.receivers.find(packet.source, packet.queue_pair);
    WEFT_EXPECT(packet.destination == node.id && packet.psn == state.expected_psn,
                "host {} at {} ps: packet {} of queue pair {} of host {} to host {}, expected {}", node.id, now,
                packet.psn, packet.queue_pair, packet.source, packet.destination, state.expected_psn);
    ++state.expected_psn;
    state.message_bytes += packet.payload;
    ++state.message_packets;
    if (parameters_.acks) {
      // Where it waits: a copy right after its fields were stored would wait for them.
      Packet& ack = host.control.emplace_back();
      ack.set_ends(node.id, packet.source);
      ack.queue_pair = packet.queue_pair;
      ack.psn = packet.psn;
      ack.message = packet.payload;
      ack.kind = PacketKind::ack;
      ack.flags = packet.flags;
      wake_sender(node, host, now);
    }
    if ((packet.flags & packet_last) != 0) {
      const Message message = messages_[packet.message];
      messages_.release(packet.message);
      WEFT_EXPECT(state.message_bytes == message.bytes && state.message_packets == message.packets,
                  "message {} of {} bytes in {} packets ended after {} bytes in {} packets", message.id, message.bytes,
                  message.packets, state.message_bytes, state.message_packets);
      state.message_bytes = 0;
      state.message_packets = 0;
      client_->on_message(node.id, Time::from_ps(now), message);
    }
  } else if (packet.kind == PacketKind::ack) {
    QueuePair& pair = host.queue_pairs[packet.queue_pair];
    pair.acknowledge(packet.message);
    list_if_ready(host, packet.queue_pair, now);
    if (host.ready_head < host.ready.size()) wake_sender(node, host, now);
    if ((packet.flags & packet_notify) != 0) client_->on_sent(node.id, Time::from_ps(now), pair.pop_completion());
  } else {
    client_->on_credit(node.id, Time::from_ps(now), packet.queue_pair);
  }
}

void Fabric::host_send(const Node& node, Host& host, std::int64_t now) {
  const std::uint32_t port = node.first_port;
  if (host.control_head < host.control.size()) {
    transmit(port, now, host.control[host.control_head++]);
    if (host.control_head == host.control.size()) {
      host.control.clear();
      host.control_head = 0;
    }
  } else {
    const std::uint32_t number = host.ready[host.ready_head++];
    if (host.ready_head * 2 > host.ready.size()) {
      host.ready.erase(host.ready.begin(), host.ready.begin() + static_cast<std::ptrdiff_t>(host.ready_head));
      host.ready_head = 0;
    }
    QueuePair& pair = host.queue_pairs[number];
    pair.listed = false;
    const Packet packet = pair.next_packet(now, node.id, mtu_, parameters_.acks, messages_);
    transmit(port, now, packet);
    pair.waits.put_on_wire(now, outputs_[port].free_at, false);
    list_if_ready(host, number, now);
    if (!parameters_.acks && (packet.flags & packet_notify) != 0)
      set_timer(node.id, Time::from_ps(outputs_[port].free_at), sent_token | pair.pop_completion());
  }
  const bool more = host.control_head < host.control.size() || host.ready_head < host.ready.size();
  host.send_time = more ? outputs_[port].free_at : never;
}

std::uint64_t Fabric::post(std::uint32_t host_id, std::uint32_t queue_pair, Time now, Message message,
                           std::uint64_t token) {
  const Node& node = node_of_host(host_id);
  Host& host = host_states_[node.host];
  message.id = static_cast<std::uint64_t>(host_id) << 32 | host.messages++;
  message.source = host_id;
  message.token = token;
  if (buffered_) {
    post_reliably(node, queue_pair, now, message);
    return message.id;
  }
  QueuePair& pair = host.queue_pairs[queue_pair];
  message.destination = pair.destination();
  message.queue_pair = queue_pair;
  message.issued = now.ps();
  message.packets = packet_count(message.bytes, mtu_);
  message.ideal = ideal_message_time(profiles_[pair.path_profile()], Bytes(message.bytes), parameters_.mtu,
                                     parameters_.data_overhead())
                      .ps();
  if (message.notify != 0) pair.push_completion(token);
  pair.post(now.ps(), messages_.add(message), messages_);
  list_if_ready(host, queue_pair, now.ps());
  if (host.ready_head < host.ready.size()) wake_sender(node, host, now.ps());
  return message.id;
}

void Fabric::send_credit(std::uint32_t host_id, Time now, std::uint32_t to, std::uint32_t queue_pair) {
  const Node& node = node_of_host(host_id);
  Host& host = host_states_[node.host];
  Packet credit;
  credit.set_ends(host_id, to);
  credit.queue_pair = queue_pair;
  credit.kind = PacketKind::credit;
  if (buffered_) return send_reliable_credit(node, credit, now);
  host.control.push_back(credit);
  wake_sender(node, host, now.ps());
}

SendTimes Fabric::send_times(std::uint32_t host_id, std::uint32_t queue_pair, Time now) const {
  const Node& node = node_of_host(host_id);
  if (buffered_) return buffered_->hosts[node.host].connections[queue_pair].waits.until(now.ps());
  return host_states_[node.host].queue_pairs[queue_pair].waits.until(now.ps());
}

void Fabric::set_timer(std::uint32_t host_id, Time at, std::uint64_t token) {
  const Node& node = node_of_host(host_id);
  Host& host = host_states_[node.host];
  host.timers.push_back({at.ps(), host.timers_set++, token});
  std::push_heap(host.timers.begin(), host.timers.end(), std::greater<>());
  wake_node(local_of_[host_id], at.ps());
}

}  // namespace weft
