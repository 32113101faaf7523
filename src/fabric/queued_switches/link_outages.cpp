// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <cmath>
#include <string>

#include "fabric/queued/queued_model.hpp"
#include "routing/composed/local_repair_routing.hpp"
#include "routing/composed/resilient_routing.hpp"

namespace weft {
namespace {

// A number in [0, 1) for a packet of a link.
double draw(std::uint64_t seed, std::uint64_t link, std::uint64_t count) {
  return static_cast<double>(mix64(mix64(seed ^ mix64(link + 0x10557)) + count) >> 11) * 0x1p-53;
}

}  // namespace

void LinkOutages::build() {
  const LinkFaults& faults = net_.parameters.faults;
  if (faults.empty()) return;
  any_ = true;
  q_.state.watches_departures = true;
  fault_of_port_.assign(net_.outputs.size(), nullptr);
  for (const PortId p : net_.nodes.ports()) {
    const auto found = faults.links.find(net_.outputs[p].directed_link / 2);
    if (found == faults.links.end()) continue;
    fault_of_port_[p] = &found->second;
    const auto& rates = found->second.rates;
    if (!rates.empty() && slowed_.empty()) slowed_.resize(net_.outputs.size());
    for (std::uint32_t i = 0; i < rates.size(); ++i)
      q_.events.add(net_.nodes.of_port[p], {rates[i].at, p, i, NodeEvent::Kind::link, {}, 0});
  }
  const auto detour = [&](const std::vector<bool>& dead) {
    auto routing = RoutingRegistry::instance().find(std::string(net_.routing.after_failures()))->make();
    routing->prepare_without(net_.topology, net_.seed, dead);
    const bool keeps_ports = faults.resilient && !net_.routing.per_packet();
    return keeps_ports ? resilient_routing(net_.routing, std::move(routing)) : std::move(routing);
  };
  const auto any = [](const std::vector<bool>& links) {
    return std::find(links.begin(), links.end(), true) != links.end();
  };
  const RoutingAlgorithm* known = nullptr;  // of the whole machine; none while all links work
  std::vector<bool> dead(net_.topology.graph.link_count(), false);
  for (LinkFaults::RoutingPeriod& period : faults.routing_periods(net_.topology)) {
    if (period.dead != dead) {
      dead = period.dead;
      known = any(dead) ? prepared_.emplace_back(detour(dead)).get() : nullptr;
    }
    detours_.push_back({period.from, known});
    const RoutingAlgorithm& routing = known != nullptr ? *known : net_.routing;
    if (!any(period.dead_at_ends) || routing.per_packet()) continue;
    detours_.back().routing = prepared_
                                  .emplace_back(local_repair_routing(routing, net_.topology, net_.seed,
                                                                     std::move(period.dead_at_ends), faults.resilient))
                                  .get();
  }
  if (!detours_.empty() && net_.routing.per_packet())
    rest_ = detour(std::vector<bool>(net_.topology.graph.link_count(), false));
  q_.state.routes_one_by_one |= !detours_.empty();
}

/// The routing in effect at `now`. While all links work it is the experiment's own algorithm.
const RoutingAlgorithm& LinkOutages::routing_at(Time now) const {
  if (detours_.empty() || now < detours_.front().from) return net_.routing;
  auto next = std::upper_bound(detours_.begin(), detours_.end(), now,
                               [](Time time, const Detour& detour) { return time < detour.from; });
  const RoutingAlgorithm* routing = std::prev(next)->routing;
  return routing != nullptr ? *routing : net_.routing;
}

/// A packet whose first bit leaves at `start` and whose last at `end` does not arrive. A link that is down at any
/// moment while it carries the packet loses it. `wire` bytes are subject to chance; 0: none.
bool LinkOutages::loses(PortId port, Time start, Time end, Bytes wire) const {
  const LinkFault* fault = fault_of_port_[port];
  if (fault == nullptr) return false;
  const Time arrival = end + q_.state.ports[port].propagation;
  for (const Outage& outage : fault->outages)
    if (outage.from < arrival && start < outage.until) return true;
  if (wire == Bytes() || (fault->loss == 0 && fault->bit_error_rate == 0)) return false;
  double keep = 1 - fault->loss;
  // log1p keeps what 1 - 1e-15 would lose.
  if (fault->bit_error_rate > 0)
    keep *= std::exp(static_cast<double>(8 * wire.count()) * std::log1p(-fault->bit_error_rate));
  return draw(net_.seed, net_.outputs[port].directed_link, net_.outputs[port].packets) >= keep;
}

/// When the link works again that has lost something sent from `start` to `end`; `never` if it does not.
Time LinkOutages::outage_end(PortId port, Time start, Time end) const {
  const Time arrival = end + q_.state.ports[port].propagation;
  Time works_at = start;
  for (const Outage& outage : fault_of_port_[port]->outages)
    if (outage.from < arrival && start < outage.until)
      works_at = std::max(works_at, outage.until == Time::max() ? never : outage.until);
  return works_at;
}

Time LinkOutages::longer(PortId port, Time busy) const {
  const std::int64_t full = net_.links.times(net_.outputs[port].directed_link).rate.bps();
  const std::int64_t rate = net_.outputs[port].rate.bps();
  if (rate >= full) return {};
  return Time::from_ps(static_cast<std::int64_t>(static_cast<__int128>(busy.ps()) * (full - rate) / full));
}

Time LinkOutages::slowed(PortId port) const {
  if (!slows()) return {};
  return slowed_[port].longer + longer(port, net_.outputs[port].busy - slowed_[port].busy);
}

// The time until now is counted at the old rate, and waiting bytes are counted again.
void LinkOutages::change_link(const NodeEvent& event) {
  const RateChange& change = fault_of_port_[event.port]->rates[event.data];
  OutputPort& port = net_.outputs[event.port];
  if (net_.sampler.due(port, event.time))
    net_.sampler.flush(port, event.time, q_.state.sampled_bytes(port, event.port));
  net_.rates.change(port, event.time, q_.state.waiting_at(event.port, [&](const Packet& packet) {
    return net_.sizes.wire_time(port, packet).wire;
  }));
  slowed_[event.port] = {port.busy, slowed(event.port)};
  net_.links.set_port_times(port, change.rate);
  if (q_.state.services.telemetry)
    q_.state.ports[event.port].label = q_.state.telemetry.label_of(port.directed_link, change.rate);
  q_.state.ports[event.port].queue_time =
      q_.state.waiting_at(event.port, [&](const Packet& packet) { return net_.sizes.wire_time(port, packet).busy; });
  port.peak_backlog = q_.state.ports[event.port].queue_time;
  const LocalNode& node = net_.nodes.all[net_.nodes.of_port[event.port]];
  const NodeId peer = net_.topology.graph.ports(node.id)[event.port - node.first_port].peer;
  q_.state.ports[event.port].set_header_time(net_.links.head_time(peer, change.rate));
}

}  // namespace weft
