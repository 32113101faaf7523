// SPDX-License-Identifier: GPL-2.0-only
// The hot path: gather a window's arrivals of a switch, order them, route, send.
#include <algorithm>

#include <fmt/format.h>

#include "fabric/network/buffered_state.hpp"
#include "fabric/network/fabric.hpp"
#include "fabric/network/fabric_hot.hpp"
#include "fabric/probes/waits_by_job.hpp"
#include "support/contract.hpp"
#include "support/error.hpp"

namespace weft {
namespace {

constexpr std::size_t ahead = 4;  // packets; enough to hide a fetch from memory

// Ties between ports are broken by a hash of (seed, ingress link, link sequence), so that no port is favoured by its
// number.
inline std::uint64_t tie_of(std::uint64_t salt, std::uint64_t sequence) {
  std::uint64_t x = salt + sequence * 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 32)) * 0xbf58476d1ce4e5b9U;
  return x ^ (x >> 29);
}

}  // namespace

void Fabric::run_node(std::uint32_t local, std::int64_t end) {
  const Node& node = nodes_[local];
  in_node_ = true;
  running_node_ = local;
  if (buffered_)
    run_buffered(local, end);
  else if (node.host == no_slot)
    run_switch(node, end);
  else
    run_host(node, end);
  blocks_.reuse_retired();
  if (buffered_) buffered_->blocks.reuse_retired();
  running_node_ = no_slot;
  in_node_ = false;
}

std::int64_t Fabric::node_next_time(const Node& node) const {
  std::int64_t next = never;
  for (std::uint32_t p = node.first_port; p < node.first_port + node.ports; ++p) next = std::min(next, heads_[p]);
  return std::min(next, node_next_event(node));
}

// The next thing that the node does by itself.
std::int64_t Fabric::node_next_event(const Node& node) const {
  std::int64_t next = never;
  if (buffered_) next = next_buffered_event(node);
  if (node.host == no_slot) return next;
  const Host& host = host_states_[node.host];
  next = std::min(next, host.send_time);
  return host.timers.empty() ? next : std::min(next, host.timers.front().time);
}

bool Fabric::arrives_before(const Arrival& a, const Arrival& b) const {
  if (a.time != b.time) [[likely]]
    return a.time < b.time;
  // Links of one node differ, and packets of one link differ in time: the link decides if even the hashes are equal.
  const std::uint64_t tie_a = tie_of(tie_salts_[a.port], a.sequence);
  const std::uint64_t tie_b = tie_of(tie_salts_[b.port], b.sequence);
  return tie_a != tie_b ? tie_a < tie_b : a.port < b.port;
}

// Takes the packets that arrive before `end` out of the node's queues, in order. They stay readable in their blocks
// until the node is done.
void Fabric::gather(const Node& node, std::int64_t end) {
  order_.clear();
  for (std::uint32_t p = node.first_port; p < node.first_port + node.ports; ++p) {
    if (heads_[p] >= end) continue;
    PacketQueue& queue = inputs_[p];
    order_.begin_run(queue.size());
    queue.pop_before(end, blocks_, [this, p](Packet& packet, std::uint64_t sequence) {
      order_.add({packet.time, sequence, &packet, p});
    });
    heads_[p] = queue.empty() ? never : queue.front().time;
  }
  arrivals_ = order_.sorted([this](const Arrival& a, const Arrival& b) { return arrives_before(a, b); });
}

void Fabric::run_switch(const Node& node, std::int64_t end) {
  gather(node, end);
  const std::size_t count = arrivals_.size();
  if (count == 0) return;
  requests_.resize(count);
  routes_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Packet& packet = *arrivals_[i].packet;
    requests_[i] = {packet.source, packet.destination, packet.queue_pair};
  }
  routing_.route(NodeId(node.id), requests_, routes_.data());
  now_ = std::max(now_, arrivals_[count - 1].time);
  events_ += count;
  if (on_border_[running_node_]) return send_from_border(node);
  for (std::size_t i = 0; i < count; ++i) {
    // The queues of the next nodes lie anywhere in memory: ask for them while other packets are sent.
    if (i + ahead < count) __builtin_prefetch(&inputs_[outputs_[node.first_port + routes_[i + ahead]].peer_port]);
    transmit(node.first_port + routes_[i], arrivals_[i].time, *arrivals_[i].packet);
  }
}

// First what stays in this process, then what leaves it: where a packet goes is chance, and a branch on it for each
// would be mispredicted half of the times. Ports do not depend on each other, and each sends in order.
void Fabric::send_from_border(const Node& node) {
  const std::size_t count = arrivals_.size();
  staying_.resize(count);
  leaving_.resize(count);
  std::size_t stay = 0;
  std::size_t leave = 0;
  for (std::size_t i = 0; i < count; ++i) {
    // As a number: of a condition the compiler makes the branch that is to be avoided.
    const std::uint32_t leaves = outputs_[node.first_port + routes_[i]].peer_port / OutputPort::remote;
    staying_[stay] = leaving_[leave] = static_cast<std::uint32_t>(i);
    leave += leaves;
    stay += 1 - leaves;
  }
  for (std::size_t s = 0; s < stay; ++s) {
    if (s + ahead < stay)
      __builtin_prefetch(&inputs_[outputs_[node.first_port + routes_[staying_[s + ahead]]].peer_port]);
    const std::uint32_t i = staying_[s];
    transmit(node.first_port + routes_[i], arrivals_[i].time, *arrivals_[i].packet);
  }
  for (std::size_t l = 0; l < leave; ++l) {
    const std::uint32_t i = leaving_[l];
    transmit(node.first_port + routes_[i], arrivals_[i].time, *arrivals_[i].packet);
  }
}

void Fabric::transmit(std::uint32_t port_index, std::int64_t now, const Packet& packet) {
  OutputPort& port = outputs_[port_index];
  if (sampling_ != 0 && now >= port.next_sample) flush_samples(port, now);
  std::int64_t serialization = port.control_packet;
  std::int64_t wire = control_wire_;
  if (packet.kind == PacketKind::data) {
    wire = packet.payload + data_overhead_;
    serialization = packet.payload == mtu_ ? port.full_packet : odd_time(port, packet, wire);
    ++port.data_packets;
    port.payload_bytes += packet.payload;
    if ((packet.flags & packet_last) != 0) {
      messages_[packet.message].add_wait(port.directed_link, port.free_at - now);
      if (waits_by_job_) waits_by_job_->waited(port_index, packet.source, now, port.free_at);
    }
  }
  const std::int64_t start = std::max(now, port.free_at);
  port.free_at = start + serialization;
  if (several_jobs_) [[unlikely]]
    waits_by_job_->sent(port_index, packet.source, start, port.free_at, now);
  ++port.packets;
  port.busy += serialization;
  port.peak_backlog = std::max(port.peak_backlog, port.free_at - now);
  port.waited +=
      static_cast<unsigned __int128>(static_cast<std::uint64_t>(start - now)) * static_cast<std::uint64_t>(wire);
  if (port.tapped) [[unlikely]]
    for (const auto& tap : taps_[port_index]) tap->transmitted(Time::from_ps(start), packet);
  send_on(port, packet, port.free_at + port.after);
}

void Fabric::push_into_new_block(std::uint32_t port_index, const Packet& packet, std::int64_t arrival,
                                 std::uint32_t node) {
  // A packet waits for all that has been committed before it, so that its arrival may lie as far ahead as that is long.
  // Packets of a block are few, and each takes Time::longest_wait() at most: none but the first one of a block can come
  // beyond what 63 bits hold, and that one looks negative.
  if (static_cast<std::uint64_t>(arrival) >= static_cast<std::uint64_t>(Time::limit().ps()))
    throw TimeLimitError(fmt::format("packets wait too long at {}", topology_.graph.name(NodeId(nodes_[node].id))));
  inputs_[port_index].add_block(blocks_);
  push_local(port_index, packet, arrival, node);
}

// `queued`: bytes of frames that have waited for the port since its last change.
void Fabric::flush_samples(OutputPort& port, std::int64_t now, std::int64_t queued) {
  while (port.next_sample <= now) {
    const bool works = add_sample(port, port.next_sample, queued);
    port.next_sample += sampling_;
    if (!works && port.next_sample <= now) port.next_sample = (now / sampling_ + 1) * sampling_;
  }
}

// Of the interval up to port.next_sample, which is looked at at `time`. False if the port has nothing to do then.
bool Fabric::add_sample(OutputPort& port, std::int64_t time, std::int64_t queued) {
  // Work committed before that time that is still unsent; a port works without pause until free_at.
  const std::int64_t backlog = std::max<std::int64_t>(0, port.free_at - time);
  const std::int64_t busy = port.busy - backlog;
  const bool works = backlog > 0 || queued > 0;
  if (busy > port.sampled_busy || works) {
    const auto bytes =
        queued + static_cast<std::int64_t>(static_cast<__int128>(backlog) * port.rate_bps / 8'000'000'000'000);
    samples_.push_back({port.directed_link, static_cast<std::uint32_t>(port.next_sample / sampling_ - 1),
                        busy - port.sampled_busy, bytes});
  }
  port.sampled_busy = busy;
  return works;
}

}  // namespace weft
