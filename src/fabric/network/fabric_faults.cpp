// SPDX-License-Identifier: GPL-2.0-only
// Links that lose packets, fail, or run slower for a time.
#include <algorithm>
#include <cmath>

#include "fabric/network/buffered_state.hpp"
#include "fabric/network/fabric.hpp"
#include "support/contract.hpp"
#include "support/error.hpp"

namespace weft {
namespace {

// A number in [0, 1) for a packet of a link.
double draw(std::uint64_t seed, std::uint64_t link, std::uint64_t count) {
  return static_cast<double>(mix64(mix64(seed ^ mix64(link + 0x10557)) + count) >> 11) * 0x1p-53;
}

}  // namespace

void Fabric::build_faults() {
  const LinkFaults& faults = parameters_.faults;
  if (faults.empty()) return;
  has_faults_ = true;
  watches_departures_ = true;
  fault_of_port_.assign(outputs_.size(), nullptr);
  for (std::uint32_t p = 0; p < outputs_.size(); ++p) {
    const auto found = faults.links.find(outputs_[p].directed_link / 2);
    if (found == faults.links.end()) continue;
    fault_of_port_[p] = &found->second;
    const auto& rates = found->second.rates;
    for (std::uint32_t i = 0; i < rates.size(); ++i)
      add_event(local_of_port_[p], {rates[i].at.ps(), p, i, NodeEvent::Kind::link, 0, 0});
  }
  for (const LinkFaults::Epoch& epoch : faults.epochs(topology_)) {
    auto routing = RoutingRegistry::instance().find("shortest_path")->make();
    routing->prepare_without(topology_, seed_, epoch.dead);
    detours_.push_back({epoch.from.ps(), std::move(routing)});
  }
  routes_one_by_one_ |= !detours_.empty();
}

/// What routing knows at `now`. While all links work it is the experiment's own algorithm.
const RoutingAlgorithm& Fabric::routing_at(std::int64_t now) const {
  if (detours_.empty() || now < detours_.front().from) return routing_;
  auto next = std::upper_bound(detours_.begin(), detours_.end(), now,
                               [](std::int64_t time, const Detour& detour) { return time < detour.from; });
  return *std::prev(next)->routing;
}

/// A packet whose first bit leaves at `start` and whose last at `end` does not arrive. A link that is down at any
/// moment while it carries the packet loses it. `wire` bytes are subject to chance; 0: none.
bool Fabric::link_loses(std::uint32_t port, std::int64_t start, std::int64_t end, std::int64_t wire) const {
  const LinkFault* fault = fault_of_port_[port];
  if (fault == nullptr) return false;
  const std::int64_t arrival = end + buffered_->ports[port].propagation;
  for (const Outage& outage : fault->outages)
    if (outage.from.ps() < arrival && start < outage.until.ps()) return true;
  if (wire == 0 || (fault->loss == 0 && fault->bit_error_rate == 0)) return false;
  double keep = 1 - fault->loss;
  // log1p keeps what 1 - 1e-15 would lose.
  if (fault->bit_error_rate > 0) keep *= std::exp(static_cast<double>(8 * wire) * std::log1p(-fault->bit_error_rate));
  return draw(seed_, outputs_[port].directed_link, outputs_[port].packets) >= keep;
}

/// When the link works again that has lost something sent from `start` to `end`; `never` if it does not.
std::int64_t Fabric::outage_end(std::uint32_t port, std::int64_t start, std::int64_t end) const {
  const std::int64_t arrival = end + buffered_->ports[port].propagation;
  std::int64_t works_at = start;
  for (const Outage& outage : fault_of_port_[port]->outages)
    if (outage.from.ps() < arrival && start < outage.until.ps())
      works_at = std::max(works_at, outage.until == Time::max() ? never : outage.until.ps());
  return works_at;
}

void Fabric::change_link(const NodeEvent& event) {
  const RateChange& change = fault_of_port_[event.port]->rates[event.data];
  set_port_times(outputs_[event.port], change.rate);
  const Node& node = nodes_[local_of_port_[event.port]];
  const NodeId peer = topology_.graph.ports(NodeId(node.id))[event.port - node.first_port].peer;
  buffered_->ports[event.port].header_time = head_time(peer, change.rate).ps();
}

}  // namespace weft
