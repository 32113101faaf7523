// SPDX-License-Identifier: GPL-2.0-only
// Routing of machines some of whose switches reduce: accelerators as the machine is routed, units for reductions by
// shortest paths from below.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/shapes/reduction_shape.hpp"
#include "routing/algorithm/range_routing.hpp"

namespace weft {
namespace {

class SwitchReductionRouting final : public RoutingAlgorithm {
 public:
  void prepare(const Topology& topology, std::uint64_t seed) override {
    prepare_units(topology, seed);
    inner_ = RoutingRegistry::instance().find(shape_->routing)->make();
    inner_->prepare(*shape_->machine, seed);
  }

  /// Accelerators as the machine is routed after failures, units by the shortest paths that are left. Links of the
  /// machine have the same numbers with units, whose own links follow.
  void prepare_without(const Topology& topology, std::uint64_t seed, const std::vector<bool>& dead) override {
    prepare_units(topology, seed);
    const auto routing_of = [](std::string_view name) {
      return RoutingRegistry::instance().find(std::string(name))->make();
    };
    inner_ = routing_of(routing_of(shape_->routing)->after_failures());
    const auto first_of_units = dead.begin() + shape_->machine->graph.link_count();
    inner_->prepare_without(*shape_->machine, seed, std::vector<bool>(dead.begin(), first_of_units));
    of_units_ = routing_of("shortest_path");
    of_units_->prepare_without(topology, seed, dead);
  }
  std::string_view after_failures() const override { return "switch_reduction"; }

  unsigned lanes() const override { return inner_->lanes(); }
  bool per_packet() const override { return inner_->per_packet(); }
  bool reorders() const override { return inner_->reorders(); }
  std::uint32_t max_reported() const override { return inner_->max_reported(); }
  QueueReports reports(NodeId at) const override {
    return at.value() < all_hosts_ ? QueueReports() : inner_->reports(inner_node(at));
  }

  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    for (std::size_t i = 0; i < requests.size(); ++i) ports[i] = port(at, requests[i]);
  }

  RouteChoice choose(NodeId at, const AdaptiveRequest& request, std::span<const Bytes> queued) const override {
    if (at.value() < all_hosts_ || leads_to_unit(at, request.flow.destination)) {
      RouteChoice choice;
      choice.port = port(at, request.flow);
      choice.lane = request.lane;
      choice.state = request.state;
      return choice;
    }
    AdaptiveRequest inside = request;
    inside.flow = translated(request.flow);
    return inner_->choose(inner_node(at), inside, queued);
  }

  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    if (at.value() < all_hosts_) return {0};
    if (leads_to_unit(at, destination)) return closer(at, unit_of(destination));
    return inner_->candidates(inner_node(at), is_unit(destination) ? below(destination) : destination);
  }
  std::vector<std::uint16_t> candidates_of(NodeId at, const RouteRequest& flow) const override {
    if (avoids_failures(flow)) return of_units_->candidates_of(at, flow);
    if (at.value() < all_hosts_ || leads_to_unit(at, flow.destination)) return candidates(at, flow.destination);
    return inner_->candidates_of(inner_node(at), translated(flow));
  }

 private:
  using Distance = std::pair<std::uint32_t, std::uint32_t>;  ///< node, links from the unit's switch

  void prepare_units(const Topology& topology, std::uint64_t seed) {
    shape_ = require_shape<ReductionShape>(topology, "switch_reduction", "any with switch_reduction");
    seed_ = seed;
    hosts_ = shape_->hosts();
    all_hosts_ = topology.graph.host_count();
    for (const auto& unit : shape_->units) near_.push_back(neighbourhood(topology.graph, unit));
    graph_ = &topology.graph;
  }

  /// Switches as far from the unit's as its accelerators are, in order of their numbers.
  static std::vector<Distance> neighbourhood(const ClusterGraph& graph, const ReductionShape::Unit& unit) {
    std::vector<Distance> found = {{unit.at.value(), 0}};
    std::vector<bool> seen(graph.node_count());
    seen[unit.at.value()] = true;
    for (std::size_t i = 0; i < found.size() && found[i].second < unit.radius; ++i) {
      const std::uint32_t distance = found[i].second + 1;
      for (const PortEnd& port : graph.ports(NodeId(found[i].first))) {
        if (graph.is_host(port.peer) || seen[port.peer.value()]) continue;
        seen[port.peer.value()] = true;
        found.emplace_back(port.peer.value(), distance);
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  static constexpr std::uint32_t far = 0xffffffffU;
  std::uint32_t distance(std::uint32_t unit, NodeId node) const {
    const auto& near = near_[unit];
    const auto at = std::lower_bound(near.begin(), near.end(), Distance{node.value(), 0});
    return at != near.end() && at->first == node.value() ? at->second : far;
  }
  bool leads_to_unit(NodeId at, NodeId destination) const {
    return is_unit(destination) && distance(unit_of(destination), at) != far;
  }
  std::vector<std::uint16_t> closer(NodeId at, std::uint32_t unit) const {
    const std::uint32_t here = distance(unit, at);
    if (here == 0) return {static_cast<std::uint16_t>(shape_->units[unit].port)};
    std::vector<std::uint16_t> ports;
    const auto all = graph_->ports(at);
    for (std::size_t port = 0; port < all.size(); ++port)
      if (distance(unit, all[port].peer) == here - 1) ports.push_back(static_cast<std::uint16_t>(port));
    return ports;
  }

  NodeId inner_node(NodeId at) const { return NodeId(at.value() - shape_->count()); }
  bool is_unit(NodeId host) const { return host.value() >= hosts_; }
  std::uint32_t unit_of(NodeId host) const { return host.value() - hosts_; }
  NodeId below(NodeId unit) const { return NodeId(shape_->units[unit_of(unit)].below); }
  /// Units have the place of an accelerator below their switch.
  RouteRequest translated(RouteRequest flow) const {
    if (is_unit(flow.source)) flow.source = below(flow.source);
    if (is_unit(flow.destination)) flow.destination = below(flow.destination);
    return flow;
  }

  /// A way to or from a unit after failures.
  bool avoids_failures(const RouteRequest& flow) const {
    return of_units_ != nullptr && (is_unit(flow.source) || is_unit(flow.destination));
  }
  std::uint16_t port(NodeId at, const RouteRequest& flow) const {
    if (at.value() < all_hosts_) return 0;
    if (avoids_failures(flow)) {
      std::uint16_t port = 0;
      of_units_->route(at, {&flow, 1}, &port);
      return port;
    }
    if (leads_to_unit(at, flow.destination)) {
      const std::vector<std::uint16_t> ports = closer(at, unit_of(flow.destination));
      return ports[ecmp_choice(ecmp_hash(flow, at, seed_), static_cast<std::uint32_t>(ports.size()))];
    }
    const RouteRequest inside = translated(flow);
    std::uint16_t port = 0;
    inner_->route(inner_node(at), {&inside, 1}, &port);
    return port;
  }

  std::shared_ptr<const ReductionShape> shape_;
  std::unique_ptr<RoutingAlgorithm> inner_;
  std::unique_ptr<RoutingAlgorithm> of_units_;  ///< after failures
  const ClusterGraph* graph_ = nullptr;
  std::vector<std::vector<Distance>> near_;  ///< [units]
  std::uint32_t hosts_ = 0;
  std::uint32_t all_hosts_ = 0;
  std::uint64_t seed_ = 0;
};

const Registration<RoutingAlgorithm, SwitchReductionRouting> switch_reduction_routing_registration(
    "switch_reduction",
    "machines with switches that reduce: to these by shortest paths, else as the machine is routed");

}  // namespace
}  // namespace weft
