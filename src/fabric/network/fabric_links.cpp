// SPDX-License-Identifier: GPL-2.0-only
// Links that differ from the topology, and traffic and observers beside the lean packets.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "fabric/frames/frame_table.hpp"
#include "fabric/network/fabric.hpp"
#include "fabric/network/fabric_hot.hpp"
#include "support/contract.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

// What the processes tell each other of a changed link.
struct LinkChange {
  std::uint32_t directed_link;
  std::uint32_t unused = 0;
  std::int64_t rate_bps;
  std::int64_t delay_ps;
};

}  // namespace

std::uint32_t Fabric::local_port(NodeId node, std::uint32_t port) const {
  const std::uint32_t local = local_of_[node.value()];
  WEFT_EXPECT(local != no_slot && port < nodes_[local].ports, "port {} of node {} is not here", port, node.value());
  return nodes_[local].first_port + port;
}

// Links --------------------------------------------------------------------------------------------------------------

LinkTimes Fabric::link_times(std::uint32_t directed_link) const {
  if (const auto changed = changed_links_.find(directed_link); changed != changed_links_.end()) return changed->second;
  const LinkProperties& link = topology_.graph.link(LinkId(directed_link / 2));
  return {link.rate, link.delay};
}

void Fabric::set_rate(NodeId node, std::uint32_t port, Bandwidth rate) {
  const PortEnd& end = topology_.graph.ports(node)[port];
  const std::uint32_t link = directed(end.link, end.direction);
  set_link_times(link, {rate, link_times(link).delay});
}

void Fabric::set_link_times(std::uint32_t directed_link, const LinkTimes& times) {
  WEFT_EXPECT(!links_closed(), "directed link {} changes during the run", directed_link);
  WEFT_EXPECT(times.rate > Bandwidth() && times.delay > Time(), "directed link {}: {} bit/s, {} ps", directed_link,
              times.rate.bps(), times.delay.ps());
  unsettled_links_[directed_link] = times;
  apply_link_times(directed_link, times);
}

void Fabric::apply_link_times(std::uint32_t directed_link, const LinkTimes& times) {
  changed_links_[directed_link] = times;
  const LinkId id(directed_link / 2);
  const unsigned direction = directed_link % 2;
  const LinkProperties& link = topology_.graph.link(id);
  if (owns(link.ends[direction])) {
    OutputPort& port = outputs_[local_port(link.ends[direction], link.ports[direction])];
    port.after = (times.delay + latency_of(link.ends[1 - direction])).ps();
    set_port_times(port, times.rate);
  }
  if (buffered_) settle_ports_of(link.ends[direction]);
  // Windows and lookahead only shrink. A calendar entry made with longer windows is then a visit too early, which does
  // nothing.
  const std::int64_t least = (times.delay + serialization_time(parameters_.least_wire(link.framing), times.rate)).ps();
  set_window(std::min(window_length_, std::max<std::int64_t>(least, 1)));
  if (cut_[id.value()]) lookahead_ = std::min(lookahead_, least);
  if (frames_) lookahead_ = std::min(lookahead_, window_length_);
}

void Fabric::settle_links(ProcessGroup& group) {
  const auto others = static_cast<std::size_t>(group.size() - 1);
  if (others == 0 || group.sum(unsettled_links_.size()) == 0) {
    unsettled_links_.clear();
    return;
  }
  std::vector<std::byte> batch;
  for (const auto& [link, times] : unsettled_links_) {
    const LinkChange change{link, 0, times.rate.bps(), times.delay.ps()};
    const auto* bytes = reinterpret_cast<const std::byte*>(&change);
    batch.insert(batch.end(), bytes, bytes + sizeof(change));
  }
  for (const auto& changes : group.gather(batch)) {
    for (std::size_t at = 0; at < changes.size(); at += sizeof(LinkChange)) {
      LinkChange change;
      std::memcpy(&change, changes.data() + at, sizeof(change));
      const LinkTimes times{Bandwidth::from_bps(change.rate_bps), Time::from_ps(change.delay_ps)};
      const auto [known, fresh] = unsettled_links_.emplace(change.directed_link, times);
      if (fresh) {
        apply_link_times(change.directed_link, times);
      } else if (known->second != times) {
        throw InputError(
            SourceLine{fmt::format("link {}", change.directed_link / 2), 0},
            fmt::format("two processes have changed direction {} of it differently: {} with {}, and {} with "
                        "{}; let one of them do it",
                        change.directed_link % 2, to_text(known->second.rate), to_text(known->second.delay),
                        to_text(times.rate), to_text(times.delay)));
      }
    }
  }
  unsettled_links_.clear();
}

// Traffic and observers beside the lean packets ----------------------------------------------------------------------

Bytes Fabric::wire_bytes(const Packet& packet) const {
  if (packet.kind == PacketKind::data) return Bytes(packet.payload) + parameters_.data_overhead();
  if (packet.kind == PacketKind::frame) return Bytes(packet.payload) + parameters_.wire_overhead;
  return parameters_.control_wire();
}

Time Fabric::serialization_at(NodeId node, std::uint32_t port, const Packet& packet) const {
  const OutputPort& output = outputs_[local_port(node, port)];
  if (packet.kind != PacketKind::data && packet.kind != PacketKind::frame) return Time::from_ps(output.control_packet);
  return Time::from_ps(odd_time(output, packet, wire_bytes(packet).count()));
}

Fabric::Departure Fabric::reserve_port(NodeId node, std::uint32_t port_number, Time at, Bytes wire) {
  WEFT_EXPECT(!advancing(), "node {} port {}: a frame at {} ps comes from within the data path", node.value(),
              port_number, at.ps());
  const std::int64_t now = at.ps();
  const std::uint32_t index = local_port(node, port_number);
  OutputPort& port = outputs_[index];
  if (sampling_ != 0 && now >= port.next_sample) flush_samples(port, now, buffered_ ? queued_bytes(index) : 0);
  const std::int64_t serialization = serialization_time(wire, Bandwidth::from_bps(port.rate_bps)).ps();
  const std::int64_t start = std::max(now, port.free_at);
  port.free_at = start + serialization;
  port.busy += serialization;
  port.peak_backlog = std::max(port.peak_backlog, port.free_at - now);
  port.waited += static_cast<unsigned __int128>(static_cast<std::uint64_t>(start - now)) *
                 static_cast<std::uint64_t>(wire.count());
  others_.resize(outputs_.size());
  ++others_[index].packets;
  others_[index].bytes += wire.count();
  // The NIC decides what to send next when the port is free, not before.
  const Node& owner = nodes_[local_of_[node.value()]];
  if (owner.host != no_slot) {
    Host& host = host_states_[owner.host];
    if (host.send_time != never) host.send_time = std::max(host.send_time, port.free_at);
  }
  return {Time::from_ps(start), Time::from_ps(port.free_at)};
}

void Fabric::add_arrival_observer(NodeId node, std::uint32_t port, ArrivalObserver observer) {
  arrival_observers_[local_port(node, port)].push_back(std::move(observer));
}

void Fabric::observe_arrival(std::uint32_t port_index, const Packet& packet) const {
  const auto observers = arrival_observers_.find(port_index);
  if (observers == arrival_observers_.end()) return;
  // A packet's time is that of its arrival at the output queue if this is a switch.
  const Time last_bit = Time::from_ps(packet.time) - latency_of(NodeId(nodes_[local_of_port_[port_index]].id));
  for (const ArrivalObserver& observer : observers->second) observer(last_bit, packet);
}

}  // namespace weft
