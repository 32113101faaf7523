// SPDX-License-Identifier: GPL-2.0-only
// Advancing by windows, and handing packets over to the neighbour processes.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "fabric/frames/frame_table.hpp"
#include "fabric/network/buffered_state.hpp"
#include "fabric/network/fabric.hpp"
#include "fabric/network/fabric_hot.hpp"
#include "support/contract.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"

namespace weft {
namespace {

// What crosses the cut: packets, and after a message's last packet its descriptor. In place of its time of arrival a
// packet has a key: the number of the cut link below, the time above, counted from an origin, so that a record is half
// a cache line. A key of no link tells the origin: at the beginning, and where a time would not fit. The key and the
// rest are written and read one by one, as what they are: a processor does not hand a value from a store to a load that
// begins elsewhere and follows soon.
using Key = std::uint64_t;
static_assert(offsetof(Packet, time) == 0 && sizeof(Packet::time) == sizeof(Key));
// Packets are read where they lie.
static_assert(sizeof(Message) % alignof(Packet) == 0 && sizeof(Telemetry) % alignof(Packet) == 0);

// Asks for memory that the next nodes will need, into the second cache: two switches of 32 ports overrun the first, and
// what it fetches at a time is for the running node. A tenth less time than into the first at 8,192 hosts.
void fetch_line(const void* at) {
  // GCC counts asking for memory as no effect, and would drop the call of a function that does nothing else.
  asm volatile("");
  __builtin_prefetch(at, 0, 2);
}

void fetch(const void* begin, const void* end) {
  constexpr std::uintptr_t line = 64;
  for (auto at = reinterpret_cast<std::uintptr_t>(begin) & ~(line - 1); at < reinterpret_cast<std::uintptr_t>(end);
       at += line)
    fetch_line(reinterpret_cast<const void*>(at));
}

// Where ports have queues: what each packet touches of ports and hosts first, then of classes and connections.
void fetch_queues(const LocalNode& node, const BufferedState& state, bool classes) {
  for (std::uint32_t p = node.first_port; p < node.first_port + node.ports; ++p) {
    if (classes) {
      fetch_line(&state.queue_of(p, state.plan.control));
      fetch_line(&state.queue_of(p, state.plan.data));
    } else {
      fetch_line(&state.ports[p]);
    }
  }
  if (node.host == no_slot) return;
  const ReliableHost& host = state.hosts[node.host];
  if (!classes) return fetch(&host, &host + 1);
  fetch(host.ports.data(), host.ports.data() + 1);
  if (host.connections.size() == 1) fetch(host.connections.data(), host.connections.data() + 1);
}

bool carries_descriptor(const Packet& packet) {
  return packet.kind == PacketKind::data && (packet.flags & packet_last) != 0;
}

}  // namespace

Time Fabric::next_time() const {
  // The calendar cleans up stale entries while it looks, which changes no answer.
  const std::uint64_t window = const_cast<NodeCalendar&>(calendar_).first();
  std::int64_t next = window == NodeCalendar::none ? never : static_cast<std::int64_t>(window) * window_length_;
  for (std::size_t n = 0; n < neighbours_.size(); ++n)
    if (!outgoing_[n].empty()) next = std::min(next, window_start(neighbours_[n].first_arrival));
  return Time::from_ps(next);
}

std::uint64_t Fabric::take_critical_events() { return std::exchange(critical_events_, 0); }

Time Fabric::lookahead() const { return Time::from_ps(lookahead_); }

void Fabric::advance(Time end) {
  advancing_ = true;
  defers_ = buffered_ && may_defer();
  run_windows_until(end.ps());
  if (after_advance_) after_advance_(end);
  advancing_ = false;
}

void Fabric::run_windows_until(std::int64_t end) {
  while (true) {
    const std::uint64_t window = calendar_.first();
    if (window == NodeCalendar::none) return;
    const std::int64_t start = static_cast<std::int64_t>(window) * window_length_;
    if (start >= end) return;
    const std::int64_t window_end = std::min(start + window_length_, end);
    calendar_.take(window, current_nodes_);
    ++inner_windows_;
    const std::size_t interior = border_done_ && window_end == end ? put_border_last() : 0;
    std::uint64_t busiest = 0;
    // Backwards: the nodes that were scheduled last have been sent to last, and are in the cache the most likely.
    for (std::size_t left = current_nodes_.size(); left-- > 0;) {
      look_for_interrupt();  // windows may be long: there is no bound on the delay of links
      if (left + 1 == interior && next_time().ps() == window_start(end)) border_done_();
      if (current_nodes_.size() > nodes_in_cache_) fetch_next_nodes(left, window_end);
      const std::uint32_t local = current_nodes_[left];
      const std::uint64_t events = events_;
      run_node(local, window_end);
      busiest = std::max(busiest, events_ - events);
      const std::int64_t next = node_next_time(nodes_[local]);
      if (next != never) calendar_.schedule(local, window_number(next));
    }
    critical_events_ += busiest;
    if (window_end == end) return;
  }
}

// Nodes on the border run first, which is backwards; returns how many are not.
std::size_t Fabric::put_border_last() {
  const auto begin = current_nodes_.begin();
  return static_cast<std::size_t>(
      std::stable_partition(begin, current_nodes_.end(), [this](std::uint32_t local) { return !on_border_[local]; }) -
      begin);
}

// Whole windows, as the calendar counts: the next windows of all processes stay aligned.
std::int64_t Fabric::window_start(std::int64_t time) const {
  return static_cast<std::int64_t>(window_number(time)) * window_length_;
}

// A large machine's state comes from memory once per window, in three steps because each needs what the one before has
// brought: of the fourth node from here its queues and its host; of the second one its ports, the first packets and
// what the host points to; of the next one the packets after those. Nodes take long enough to hide most of that.
void Fabric::fetch_next_nodes(std::size_t left, std::int64_t window_end) const {
  if (left >= 4) {
    const Node& node = nodes_[current_nodes_[left - 4]];
    fetch(&inputs_[node.first_port], inputs_.data() + node.first_port + node.ports);
    fetch(&heads_[node.first_port], heads_.data() + node.first_port + node.ports);
    if (node.host != no_slot) fetch(&host_states_[node.host], host_states_.data() + node.host + 1);
    if (buffered_) fetch_queues(node, *buffered_, false);
  }
  if (left >= 2) {
    const Node& node = nodes_[current_nodes_[left - 2]];
    fetch(&outputs_[node.first_port], outputs_.data() + node.first_port + node.ports);
    for (std::uint32_t p = node.first_port; p < node.first_port + node.ports; ++p) {
      if (heads_[p] >= window_end) continue;
      const Packet* packet = &inputs_[p].front();
      fetch(packet, PacketBlock::end_of(packet));
    }
    if (node.host != no_slot) fetch_host(host_states_[node.host]);
    if (buffered_) fetch_queues(node, *buffered_, true);
  }
  if (left >= 1) {
    const Node& node = nodes_[current_nodes_[left - 1]];
    for (std::uint32_t p = node.first_port; p < node.first_port + node.ports; ++p) {
      if (heads_[p] >= window_end) continue;
      const auto* block = static_cast<const std::byte*>(inputs_[p].second_block());
      fetch(block, block + PacketBlock::size);
    }
  }
}

void Fabric::fetch_host(const Host& host) {
  if (host.queue_pairs.size() == 1) fetch(host.queue_pairs.data(), host.queue_pairs.data() + 1);
  fetch_line(host.receivers.latest());
  fetch_line(host.control.data());
  fetch_line(host.ready.data() + host.ready_head);
  // Most hosts have none, and asking for address 0 walks through the page tables each time: it took a fourth of all the
  // time that fetching ahead did.
  if (!host.timers.empty()) fetch_line(host.timers.data());
}

// What is rare is called at the end, so that no register is saved for the common case.
void Fabric::export_packet(const OutputPort& port, const Packet& packet, std::int64_t arrival) {
  Batch& batch = outgoing_[port.peer_node];
  Neighbour& neighbour = neighbours_[port.peer_node];
  const auto since = static_cast<std::uint64_t>(arrival - neighbour.origin);
  if (since >= neighbour.reach || batch.empty() || batch.room() < sizeof(Packet)) [[unlikely]]
    return export_anew(port, packet, arrival);
  neighbour.first_arrival = std::min(neighbour.first_arrival, arrival);
  const Key key = since << neighbour.link_bits | (port.peer_port & ~OutputPort::remote);
  std::byte* const record = batch.extend(sizeof(Packet));
  std::memcpy(record, &packet, sizeof(Packet));
  std::memcpy(record, &key, sizeof(key));
  if (buffered_ || carries_descriptor(packet)) [[unlikely]]
    export_rest(packet, batch);
}

// The same where the batch begins, has no room, or needs another origin of times.
void Fabric::export_anew(const OutputPort& port, const Packet& packet, std::int64_t arrival) {
  Batch& batch = outgoing_[port.peer_node];
  Neighbour& neighbour = neighbours_[port.peer_node];
  if (static_cast<std::uint64_t>(arrival) >= static_cast<std::uint64_t>(Time::limit().ps()))
    throw TimeLimitError("packets to another process wait too long");
  const bool begins = batch.empty();
  if (begins) {
    neighbour.origin = 0;
    neighbour.first_arrival = arrival;
  }
  const bool too_far = static_cast<std::uint64_t>(arrival - neighbour.origin) >= neighbour.reach;
  batch.reserve((too_far || begins ? 2 : 1) * sizeof(Packet));
  if (too_far || begins) {
    if (too_far) neighbour.origin = arrival;
    batch.append(neighbour.no_link());
    batch.append(neighbour.origin);
  }
  export_packet(port, packet, arrival);
}

// What goes with a packet.
void Fabric::export_rest(const Packet& packet, Batch& batch) {
  if (packet.kind == PacketKind::frame) return frames_->export_to(batch, packet.message);
  const std::uint32_t telemetry = telemetry_of(packet);
  if (carries_descriptor(packet)) {
    batch.append(messages_[packet.message]);
    messages_.release(packet.message);
  }
  if (telemetry == no_slot) return;
  batch.append(buffered_->telemetry[telemetry]);
  buffered_->telemetry.release(telemetry);
}

// Slot of what a packet has collected on its way, or no_slot.
std::uint32_t Fabric::telemetry_of(const Packet& packet) const {
  if (!buffered_ || !buffered_->services.telemetry) return no_slot;
  if (packet.kind == PacketKind::ack) return packet.message;
  if (packet.kind != PacketKind::data) return no_slot;
  return (packet.flags & packet_last) != 0 ? messages_[packet.message].telemetry : packet.message;
}

void Fabric::incoming(std::size_t neighbour, std::span<const std::byte> batch) {
  const Neighbour& from = neighbours_[neighbour];
  const Key no_link = from.no_link();
  const unsigned link_bits = from.link_bits;
  const std::span<const CutEnd> ends(from.ends);
  const bool looked_at = (buffered_ && buffered_->services.telemetry) || !arrival_observers_.empty();
  std::int64_t origin = 0;
  for (std::size_t at = 0; at < batch.size();) {
    // The ports lie anywhere in memory. Most records are packets alone: where another lies, a guess is in vain.
    constexpr std::size_t ahead = 6 * sizeof(Packet);
    Key key = 0;
    if (at + ahead < batch.size()) {
      std::memcpy(&key, batch.data() + at + ahead, sizeof(key));
      if ((key & no_link) < ends.size()) __builtin_prefetch(&inputs_[ends[key & no_link].port]);
    }
    key = take_record<Key>(batch, at);
    const Key cut_link = key & no_link;
    if (cut_link == no_link) [[unlikely]] {
      origin = take_record<std::int64_t>(batch, at);
      continue;
    }
    at -= sizeof(key);
    WEFT_EXPECT(at + sizeof(Packet) <= batch.size(), "batch of {} bytes ends at {}", batch.size(), at);
    const Packet& packet = *reinterpret_cast<const Packet*>(batch.data() + at);
    const std::int64_t arrival = origin + static_cast<std::int64_t>(key >> link_bits);
    at += sizeof(Packet);
    if (looked_at || packet.kind > PacketKind::cnp || carries_descriptor(packet)) [[unlikely]]
      take_in(ends[cut_link], packet, arrival, batch, at);
    else
      push_local(ends[cut_link].port, packet, arrival, ends[cut_link].node);
  }
}

// A packet from another process with which more has come, or that is no packet of a queue, or is observed.
void Fabric::take_in(const CutEnd& end, Packet packet, std::int64_t arrival, std::span<const std::byte> batch,
                     std::size_t& at) {
  packet.time = arrival;
  if (packet.kind == PacketKind::pause || packet.kind == PacketKind::grant || packet.kind == PacketKind::report)
    return add_event(end.node, link_frame_event(end.port, packet, arrival));
  bool has_telemetry = packet.message != no_slot;
  if (carries_descriptor(packet)) {
    packet.message = messages_.add(take_record<Message>(batch, at));
    has_telemetry = messages_[packet.message].telemetry != no_slot;
  }
  if (buffered_ && buffered_->services.telemetry && has_telemetry &&
      (packet.kind == PacketKind::data || packet.kind == PacketKind::ack)) {
    const std::uint32_t slot = buffered_->telemetry.add();
    buffered_->telemetry[slot] = take_record<Telemetry>(batch, at);
    (carries_descriptor(packet) ? messages_[packet.message].telemetry : packet.message) = slot;
  }
  if (packet.kind == PacketKind::frame) packet.message = frames_->import_from(batch, at);
  if (!arrival_observers_.empty()) observe_arrival(end.port, packet);
  if (packet.kind == PacketKind::frame) hand_up(end.port, packet, arrival);
  push_local(end.port, packet, arrival, end.node);
}

}  // namespace weft
