// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/local/link_table.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/process_group.hpp"
#include "support/basics/contract.hpp"
#include "support/basics/error.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

// The properties of a changed link that processes exchange.
struct LinkChange {
  std::uint32_t directed_link;
  std::uint32_t unused = 0;
  Bandwidth rate;
  Time delay;
};

std::vector<std::byte> bytes_of(const std::map<std::uint32_t, LinkTimes>& links) {
  std::vector<std::byte> batch;
  for (const auto& [link, times] : links) {
    const LinkChange change{link, 0, times.rate, times.delay};
    const auto* bytes = reinterpret_cast<const std::byte*>(&change);
    batch.insert(batch.end(), bytes, bytes + sizeof(change));
  }
  return batch;
}

[[noreturn]] void refuse(std::uint32_t directed_link, const LinkTimes& one, const LinkTimes& other) {
  throw InputError(
      SourceLine{fmt::format("link {}", directed_link / 2), 0},
      fmt::format("two processes have changed direction {} of it differently: {} with {}, and {} with "
                  "{}; let one of them do it",
                  directed_link % 2, to_text(one.rate), to_text(one.delay), to_text(other.rate), to_text(other.delay)));
}

}  // namespace

LinkTimes LinkTable::times(std::uint32_t directed_link) const {
  if (const auto changed = changed_.find(directed_link); changed != changed_.end()) return changed->second;
  const LinkProperties& link = topology_.graph.link(LinkId(directed_link / 2));
  return {link.rate, link.delay};
}

Time LinkTable::min_crossing(std::uint32_t directed_link, const LinkTimes& times) const {
  const LinkFraming& framing = topology_.graph.link(LinkId(directed_link / 2)).framing;
  return times.delay + serialization_time(parameters_.min_wire(framing), times.rate);
}

Time LinkTable::min_crossing() const {
  Time min = Time::max();
  for (std::uint32_t link = 0; link < 2 * topology_.graph.link_count(); ++link)
    min = std::min(min, min_crossing(link, times(link)));
  return min;
}

/// A switch cannot begin to send through a port that is faster than the one through which the packet arrives: it would
/// run out of bytes. It stores packets that arrive at a lower rate than that of its fastest port.
Time LinkTable::head_time(NodeId node, Bandwidth rate) const {
  const ClusterGraph& graph = topology_.graph;
  if (!parameters_.fabric.cut_through || graph.is_host(node)) return {};
  for (const PortEnd& next : graph.ports(node))
    if (times(directed(next.link, next.direction)).rate > rate) return {};
  return serialization_time(parameters_.header, rate);
}

void LinkTable::set_port_times(OutputPort& port, Bandwidth rate) const {
  const LinkFraming& framing = topology_.graph.link(LinkId(port.directed_link / 2)).framing;
  port.rate = rate;
  port.framed = framing.payload != 0;
  port.full_packet = serialization_time(parameters_.data_wire(framing, parameters_.mtu), rate);
  port.control_packet = serialization_time(parameters_.control_wire(framing), rate);
}

template <class Visit>
void LinkTable::follow(NodeId source, NodeId destination, std::uint32_t queue_pair, const Visit& visit) const {
  const ClusterGraph& graph = topology_.graph;
  const RouteRequest request{source, destination, queue_pair};
  std::uint32_t hops = 0;
  for (NodeId at = source; at != destination;) {
    std::uint16_t out = 0;
    routing_.route(at, {&request, 1}, &out);
    const PortEnd& end = graph.ports(at)[out];
    visit(end);
    at = end.peer;
    WEFT_EXPECT(++hops <= graph.node_count(), "routing from {} to {} loops", source.value(), destination.value());
  }
}

std::uint32_t LinkTable::profile_of_path(NodeId source, NodeId destination, std::uint32_t queue_pair) {
  std::vector<PathLink> path;
  follow(source, destination, queue_pair, [&](const PortEnd& end) {
    const LinkTimes link = times(directed(end.link, end.direction));
    const LinkFraming& framing = topology_.graph.link(end.link).framing;
    path.push_back({link.rate, link.delay + latency_of(end.peer), head_time(end.peer, link.rate), framing.payload,
                    framing.overhead + (parameters_.acks ? 0U : framing.answer), is_end(end.peer)});
  });
  const auto found = std::find(profiles_.begin(), profiles_.end(), path);
  if (found != profiles_.end()) return static_cast<std::uint32_t>(found - profiles_.begin());
  profiles_.push_back(std::move(path));
  return static_cast<std::uint32_t>(profiles_.size() - 1);
}

std::uint32_t LinkTable::way_in(NodeId source, NodeId destination, std::uint32_t queue_pair) const {
  std::uint32_t slowest = 0;
  bool outside = true;  // the network is where the next link begins
  follow(source, destination, queue_pair, [&](const PortEnd& end) {
    const std::uint32_t link = directed(end.link, end.direction);
    if (outside || times(link).rate < times(slowest).rate) slowest = link;
    outside = !is_end(end.peer);
  });
  return slowest;
}

std::uint32_t LinkTable::way_out(NodeId source, NodeId destination, std::uint32_t queue_pair) const {
  std::uint32_t slowest = no_slot;
  const Bytes full = mtu(source, destination);
  bool inside = true;
  follow(source, destination, queue_pair, [&](const PortEnd& end) {
    const std::uint32_t link = directed(end.link, end.direction);
    if (inside && (slowest == no_slot || packet_time(link, full) > packet_time(slowest, full))) slowest = link;
    inside = inside && is_end(end.peer);
  });
  return slowest;
}

Time LinkTable::packet_time(std::uint32_t directed_link, Bytes payload) const {
  const LinkFraming& framing = topology_.graph.link(LinkId(directed_link / 2)).framing;
  return serialization_time(parameters_.data_wire(framing, payload), times(directed_link).rate);
}

void LinkTable::change(std::uint32_t directed_link, const LinkTimes& times) {
  WEFT_EXPECT(times.rate > Bandwidth() && times.delay > Time(), "directed link {}: {} bit/s, {} ps", directed_link,
              times.rate.bps(), times.delay.ps());
  unsettled_[directed_link] = times;
  changed_[directed_link] = times;
}

void LinkTable::settle(ProcessGroup& group, const std::function<void(std::uint32_t, const LinkTimes&)>& apply) {
  if (group.size() == 1 || group.sum(unsettled_.size()) == 0) {
    unsettled_.clear();
    return;
  }
  for (const auto& changes : group.gather(bytes_of(unsettled_))) {
    for (std::size_t at = 0; at < changes.size(); at += sizeof(LinkChange)) {
      LinkChange change;
      std::memcpy(&change, changes.data() + at, sizeof(change));
      const LinkTimes times{change.rate, change.delay};
      const auto [known, fresh] = unsettled_.emplace(change.directed_link, times);
      if (!fresh && known->second != times) refuse(change.directed_link, known->second, times);
      if (!fresh) continue;
      changed_[change.directed_link] = times;
      apply(change.directed_link, times);
    }
  }
  unsettled_.clear();
}

}  // namespace weft
