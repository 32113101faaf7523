// SPDX-License-Identifier: GPL-2.0-only
// Advancing by windows, and handing packets over to the neighbour processes.
#include <algorithm>
#include <cstring>

#include "fabric/fabric.hpp"
#include "support/contract.hpp"

namespace weft {
namespace {

// What crosses the cut: the packet, and after a message's last packet its descriptor.
struct Crossing {
  std::uint32_t cut_link;
  std::uint32_t unused = 0;
  Packet packet;
};

template <class Value>
void append(std::vector<std::byte>& batch, const Value& value) {
  const std::size_t at = batch.size();
  batch.resize(at + sizeof(Value));
  std::memcpy(batch.data() + at, &value, sizeof(Value));
}

template <class Value>
Value take(const std::vector<std::byte>& batch, std::size_t& at) {
  Value value;
  WEFT_EXPECT(at + sizeof(Value) <= batch.size(), "batch of {} bytes ends at {}", batch.size(), at);
  std::memcpy(&value, batch.data() + at, sizeof(Value));
  at += sizeof(Value);
  return value;
}

bool carries_descriptor(const Packet& packet) {
  return packet.kind == PacketKind::data && (packet.flags & packet_last) != 0;
}

}  // namespace

Time Fabric::next_time() const {
  // The calendar cleans up stale entries while it looks, which changes no answer.
  const std::uint64_t window = const_cast<NodeCalendar&>(calendar_).first();
  if (window == NodeCalendar::none) return Time::max();
  return Time::from_ps(static_cast<std::int64_t>(window) * window_length_);
}

Time Fabric::lookahead() const { return Time::from_ps(lookahead_); }

void Fabric::advance(Time end) {
  advancing_ = true;
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
    for (const std::uint32_t local : current_nodes_) {
      run_node(local, window_end);
      const std::int64_t next = node_next_time(nodes_[local]);
      if (next != never) calendar_.schedule(local, window_number(next));
    }
    if (window_end == end) return;
  }
}

void Fabric::export_packet(OutputPort& port, const Packet& packet, std::int64_t arrival) {
  std::vector<std::byte>& batch = outgoing_[port.peer_node];
  Crossing crossing{port.peer_port & ~OutputPort::remote, 0, packet};
  crossing.packet.time = arrival;
  append(batch, crossing);
  if (!carries_descriptor(packet)) return;
  append(batch, messages_[packet.message]);
  messages_.release(packet.message);
}

void Fabric::exchange(ProcessGroup& group) {
  group.exchange(neighbour_processes_, outgoing_, incoming_);
  for (std::size_t n = 0; n < neighbours_.size(); ++n) {
    outgoing_[n].clear();
    const std::vector<std::byte>& batch = incoming_[n];
    for (std::size_t at = 0; at < batch.size();) {
      auto crossing = take<Crossing>(batch, at);
      if (carries_descriptor(crossing.packet)) crossing.packet.message = messages_.add(take<Message>(batch, at));
      const std::uint32_t port = neighbours_[n].incoming_port[crossing.cut_link];
      const std::uint32_t local = local_of_port_[port];
      if (!arrival_observers_.empty()) [[unlikely]]
        observe_arrival(port, crossing.packet);
      push_local(port, crossing.packet, crossing.packet.time, local);
    }
  }
}

}  // namespace weft
