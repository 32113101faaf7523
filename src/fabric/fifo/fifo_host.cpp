// SPDX-License-Identifier: GPL-2.0-only
// Hosts: receiving packets, timers, and the NIC's decisions what to send.
#include <algorithm>

#include "fabric/fifo/fifo_model.hpp"
#include "fabric/packet/fetching.hpp"
#include "support/basics/contract.hpp"
#include "transport/messages/ideal_time.hpp"
#include "transport/messages/late.hpp"

namespace weft {

FifoModel::FifoModel(LocalNetwork& net) : net_(net) { hosts_.resize(net.nodes.hosts.size()); }

inline void FifoModel::wake_sender(const LocalNode& node, FifoHost& host, Time now) {
  if (host.send_time != never) return;
  host.send_time = std::max(now, net_.outputs[node.first_port].free_at);
  net_.clock.wake_software(net_.nodes.local_of[node.id], host.send_time);
}

void FifoModel::list_if_ready(FifoHost& host, std::uint32_t queue_pair, Time now) {
  QueuePair& pair = host.queue_pairs[queue_pair];
  if (pair.listed) return;
  if (!pair.ready(net_.sizes.window(pair.mtu())))
    return pair.waits.wait_for(pair.has_packet() ? SendWaits::Reason::window : SendWaits::Reason::none, now);
  pair.waits.wait_for(SendWaits::Reason::nic, now);
  pair.listed = true;
  host.ready.push_back(queue_pair);
}

// Receiving ----------------------------------------------------------------------------------------------------------

void FifoModel::deliver(const LocalNode& node, ReceiverState& state, const Packet& packet) {
  const Message message = net_.messages[packet.message];
  net_.messages.release(packet.message);
  WEFT_EXPECT(state.message_bytes == message.bytes && state.message_packets == message.packets,
              "message {} of {} bytes in {} packets ended after {} bytes in {} packets", message.id,
              message.bytes.count(), message.packets, state.message_bytes.count(), state.message_packets);
  state.message_bytes = {};
  state.message_packets = 0;
  net_.client->on_message(node.id, packet.time, message);
}

inline void FifoModel::receive_data(const LocalNode& node, FifoHost& host, const Packet& packet) {
  ReceiverState& state = host.receivers.find(packet.source(), packet.queue_pair);
  WEFT_EXPECT(packet.destination() == node.id && packet.psn == state.expected_psn,
              "host {} at {} ps: packet {} of queue pair {} of host {} to host {}, expected {}", node.id.value(),
              packet.time.ps(), packet.psn, packet.queue_pair, packet.source().value(), packet.destination().value(),
              state.expected_psn);
  ++state.expected_psn;
  state.message_bytes += Bytes(packet.payload);
  ++state.message_packets;
  if (net_.parameters.acks) {
    // Written in its place in the queue: a copy right after its fields were stored would wait for them.
    Packet& ack = host.control.emplace_back();
    ack.set_ends(node.id, packet.source());
    ack.queue_pair = packet.queue_pair;
    ack.psn = packet.psn;
    ack.message = packet.payload;
    ack.kind = PacketKind::ack;
    ack.flags = packet.flags;
    wake_sender(node, host, packet.time);
  }
  if ((packet.flags & packet_last) != 0) deliver(node, state, packet);
}

inline void FifoModel::acknowledge(const LocalNode& node, FifoHost& host, const Packet& packet) {
  const Time now = packet.time;
  QueuePair& pair = host.queue_pairs[packet.queue_pair];
  pair.acknowledge(Bytes(packet.message));
  list_if_ready(host, packet.queue_pair, now);
  if (host.has_ready()) wake_sender(node, host, now);
  if ((packet.flags & packet_notify) != 0) net_.client->on_sent(node.id, now, pair.pop_completion());
}

inline void FifoModel::receive(const LocalNode& node, FifoHost& host, const Packet& packet) {
  if (packet.kind == PacketKind::data)
    receive_data(node, host, packet);
  else if (packet.kind == PacketKind::ack)
    acknowledge(node, host, packet);
  else
    net_.client->on_credit(node.id, packet.time, packet.queue_pair, late_from_bits(packet.message));
}

// Sending ------------------------------------------------------------------------------------------------------------

inline void FifoModel::send_data(const LocalNode& node, FifoHost& host, Time now) {
  const PortId port = node.first_port;
  const std::uint32_t number = host.ready[host.ready_head++];
  if (host.ready_head * 2 > host.ready.size()) {
    host.ready.erase(host.ready.begin(), host.ready.begin() + static_cast<std::ptrdiff_t>(host.ready_head));
    host.ready_head = 0;
  }
  QueuePair& pair = host.queue_pairs[number];
  pair.listed = false;
  const Packet packet = pair.next_packet(now, node.id, net_.parameters.acks, net_.messages);
  transmit(port, now, packet);
  if (pair.waits.has_slower_link()) [[unlikely]]
    pair.waits.occupy_slower_link(now, Bytes(packet.payload), net_.links.profile(pair.path_profile()),
                                  net_.parameters.data_overhead());
  pair.waits.put_on_wire(now, net_.outputs[port].free_at, false);
  list_if_ready(host, number, now);
  if (net_.parameters.acks || (packet.flags & packet_notify) == 0) return;
  // The caller that runs the node checks its timers afterwards.
  host.timers.set(net_.outputs[port].free_at, sent_token | pair.pop_completion());
}

inline void FifoModel::send(const LocalNode& node, FifoHost& host, Time now) {
  const PortId port = node.first_port;
  if (host.has_control()) {
    transmit(port, now, host.control[host.control_head++]);
    if (!host.has_control()) {
      host.control.clear();
      host.control_head = 0;
    }
  } else {
    send_data(node, host, now);
  }
  host.send_time = host.has_control() || host.has_ready() ? net_.outputs[port].free_at : never;
}

// What happens at a host ---------------------------------------------------------------------------------------------

void FifoModel::fire_timer(const LocalNode& node, FifoHost& host) {
  const HostTimer timer = host.timers.take();
  if ((timer.token & sent_token) != 0)
    net_.client->on_sent(node.id, timer.time, timer.token & ~sent_token);
  else
    net_.client->on_timer(node.id, timer.time, timer.token);
}

void FifoModel::run_host(const LocalNode& node, Time end) {
  FifoHost& host = hosts_[node.host];
  // A host has one port (checked when the machine is built), so its arrivals are in order already.
  const PortId port = node.first_port;
  PacketQueue& queue = net_.inputs[port];
  while (true) {
    const Time arrival = net_.heads[port];
    const Time timer = host.timers.next();
    const Time next = std::min(std::min(arrival, timer), host.send_time);
    if (next >= end) return;
    net_.clock.happen(next);
    if (arrival == next) {
      const Packet packet = queue.front();
      queue.pop(net_.blocks);
      net_.heads[port] = queue.empty() ? never : queue.front().time;
      receive(node, host, packet);
    } else if (timer == next) {
      fire_timer(node, host);
    } else {
      send(node, host, next);
    }
  }
}

Time FifoModel::next_event(const LocalNode& node) const {
  if (node.host == no_slot) return never;
  const FifoHost& host = hosts_[node.host];
  return std::min(host.send_time, host.timers.next());
}

// For the software of hosts ------------------------------------------------------------------------------------------

std::uint32_t FifoModel::open_queue_pair(const LocalNode& node, NodeId destination) {
  auto& list = hosts_[node.host].queue_pairs;
  const auto number = static_cast<std::uint32_t>(list.size());
  const std::uint32_t profile = net_.links.profile_of_path(node.id, destination, number);
  const Bytes mtu = net_.links.mtu(node.id, destination);
  QueuePair& pair = list.emplace_back(destination, number, profile, mtu);
  const SlowestLink slowest(net_.links.profile(profile), mtu, net_.parameters.data_overhead());
  if (slowest.is_later()) {
    const std::uint32_t out = net_.links.way_out(node.id, destination, number);
    const bool inside = net_.links.packet_time(out, mtu) == slowest.of_full_packet();
    pair.waits.follow(slowest, inside ? &hosts_[node.host].shared_links.of(out) : nullptr);
  }
  return number;
}

std::uint64_t FifoModel::post(const LocalNode& node, std::uint32_t queue_pair, Time now, Message message) {
  FifoHost& host = hosts_[node.host];
  QueuePair& pair = host.queue_pairs[queue_pair];
  message.id = message_id(node.id, host.messages++);
  message.destination = pair.destination();
  message.queue_pair = queue_pair;
  message.issued = now;
  message.packets = packet_count(message.bytes, pair.mtu());
  message.ideal = ideal_message_time(net_.links.profile(pair.path_profile()), message.bytes, pair.mtu(),
                                     net_.parameters.data_overhead());
  if (message.notify != 0) pair.push_completion(message.token);
  pair.post(now, net_.messages.add(message), net_.messages);
  list_if_ready(host, queue_pair, now);
  if (host.has_ready()) wake_sender(node, host, now);
  return message.id;
}

void FifoModel::send_credit(const LocalNode& node, const Packet& credit, Time now) {
  FifoHost& host = hosts_[node.host];
  host.control.push_back(credit);
  wake_sender(node, host, now);
}

SendTimes FifoModel::send_times(const LocalNode& node, std::uint32_t queue_pair, Time now) const {
  return hosts_[node.host].queue_pairs[queue_pair].waits.until(now);
}

// The NIC decides what to send next when the port is free, not before.
void FifoModel::port_was_reserved(const LocalNode& node, Time free_at) {
  FifoHost& host = hosts_[node.host];
  if (host.send_time != never) host.send_time = std::max(host.send_time, free_at);
}

// Fetching ahead -----------------------------------------------------------------------------------------------------

void FifoModel::fetch_first(const LocalNode& node) const {
  if (node.host != no_slot) fetch(&hosts_[node.host], hosts_.data() + node.host + 1);
}

void FifoModel::fetch_second(const LocalNode& node) const {
  if (node.host == no_slot) return;
  const FifoHost& host = hosts_[node.host];
  if (host.queue_pairs.size() == 1) fetch(host.queue_pairs.data(), host.queue_pairs.data() + 1);
  fetch_line(host.receivers.latest());
  fetch_line(host.control.data());
  fetch_line(host.ready.data() + host.ready_head);
  // Most hosts have none, and each prefetch of address 0 searches the page tables: it took a fourth of the time of all
  // prefetches.
  if (const void* timers = host.timers.memory()) fetch_line(timers);
}

std::uint64_t FifoModel::memory_bytes() const {
  std::uint64_t bytes = hosts_.capacity() * sizeof(FifoHost);
  for (const FifoHost& host : hosts_) bytes += host.queue_pairs.capacity() * sizeof(QueuePair);
  return bytes;
}

}  // namespace weft
