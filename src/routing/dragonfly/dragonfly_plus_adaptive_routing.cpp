// SPDX-License-Identifier: GPL-2.0-only
// Routing of a dragonfly+ with virtual lanes: Valiant, UGAL with local or reported queues, and progressive adaptive (A.
// Shpiner, Z. Haramaty, S. Eliad, V. Zdornov, B. Gafni, E. Zahavi, "Dragonfly+: low cost topology for scaling
// datacenters", HiPINEB 2017, doi:10.1109/HiPINEB.2017.11, section IV; M. Flajslik, E. Borch, M. Parker, "Megafly: a
// topology for exascale systems", ISC 2018, doi:10.1007/978-3-319-92040-5_15).
//
// A leaf sends a packet up to a spine with a link to the destination's group, or with one to an intermediate group,
// which a hash chooses (detour_group). There the spine has a link to the destination's group, or sends the packet down
// to a leaf, which sends it up to a spine that has one: u g d u g d. Lanes count the global links so far: u0 < g0 < d1
// < u1 < g1 < d2 has no cycle. Progressive: a spine of the first group may still turn a packet away to another of its
// own global links. Reports of queues: dragonfly_global_routing.cpp; here spines report to their leaves.
#include <algorithm>

#include "routing/algorithm/detours.hpp"
#include "routing/algorithm/range_routing.hpp"
#include "routing/dragonfly/dragonfly_plus_routing.hpp"

namespace weft {
namespace {

template <Detours detours>
class DragonflyPlusLanesRouting final : public RoutingAlgorithm {
 public:
  static constexpr const char* name() {
    switch (detours) {
      case Detours::always:
        return "dragonfly_plus_valiant";
      case Detours::by_queues:
        return "dragonfly_plus_ugal";
      case Detours::by_reported_queues:
        return "dragonfly_plus_ugal_g";
      default:
        return "dragonfly_plus_progressive";
    }
  }

  void prepare(const Topology& topology, std::uint64_t seed) override {
    minimal_ = DragonflyPlusMinimal(*require_shape<DragonflyPlusShape>(topology, name(), "dragonfly_plus"));
    hosts_ = topology.graph.host_count();
    seed_ = seed;
  }

  unsigned lanes() const override { return 3; }
  bool per_packet() const override { return true; }
  bool reorders() const override { return looks_at_queues(detours); }
  QueueReports reports(NodeId at) const override {
    if (detours != Detours::by_reported_queues || at.value() < hosts_ || minimal_.is_leaf(place(at))) return {};
    const std::uint32_t used = shape().wiring.used_ports();
    const std::uint32_t first = std::min(used, (place(at).within - shape().leaves) * shape().h);
    return {shape().leaves, std::min(used - first, shape().h), 0, shape().leaves};
  }
  std::uint32_t max_reported() const override { return detours == Detours::by_reported_queues ? shape().h : 0; }

  /// The minimal way.
  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    for (std::size_t i = 0; i < requests.size(); ++i)
      ports[i] = at.value() < hosts_
                     ? std::uint16_t{0}
                     : pick(place(at), at, requests[i], minimal_.choices(place(at), requests[i].destination));
  }

  RouteChoice choose(NodeId at, const AdaptiveRequest& request, std::span<const Bytes> queued) const override {
    RouteChoice choice;
    if (at.value() < hosts_) return choice;
    const Place here = place(at);
    const Ends ends{minimal_.group_of_host(request.flow.source), minimal_.group_of_host(request.flow.destination)};
    DetourProgress progress = DetourProgress::of(request.state);
    if (minimal_.is_leaf(here) && request.in_port < shape().p)
      progress = decide_at_leaf(at, here, ends, request, queued);
    std::uint16_t turn_away = no_route;
    if (progress.second_look && !minimal_.is_leaf(here)) {
      turn_away = decide_at_spine(at, here, ends, request, queued);
      progress.second_look = false;
    }
    if (turn_away != no_route) {
      choice.port = turn_away;
      progress.phase = DetourProgress::to_intermediate;
    } else if (progress.phase == DetourProgress::to_intermediate && here.group == ends.source) {
      choice.port = towards_group(here, at, request.flow, intermediate(request, ends));
    } else {
      choice.port = pick(here, at, request.flow, minimal_.choices(here, request.flow.destination));
    }
    const bool to_host = minimal_.is_leaf(here) && choice.port < shape().p;
    if (!to_host) choice.lane = progress.globals;
    if (!minimal_.is_leaf(here) && choice.port >= shape().leaves) ++progress.globals;
    choice.state = progress.state();
    return choice;
  }

  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    if (at.value() < hosts_) return {0};
    return minimal_.candidates(place(at), destination);
  }

 private:
  using Place = DragonflyPlusMinimal::Place;
  using Choices = DragonflyPlusMinimal::Choices;
  /// Groups of a flow.
  struct Ends {
    std::uint32_t source;
    std::uint32_t target;
  };

  const DragonflyPlusShape& shape() const { return minimal_.shape(); }
  Place place(NodeId at) const { return minimal_.place(at.value() - hosts_); }

  std::uint32_t which_of(NodeId at, const RouteRequest& flow, const Choices& choices) const {
    return choices.count == 1 ? 0 : ecmp_choice(ecmp_hash(flow, at, seed_), choices.count);
  }
  std::uint16_t pick(const Place& here, NodeId at, const RouteRequest& flow, const Choices& choices) const {
    return minimal_.port(here, choices, which_of(at, flow, choices));
  }
  std::uint16_t towards_group(const Place& here, NodeId at, const RouteRequest& flow, std::uint32_t group) const {
    return pick(here, at, flow, minimal_.towards_group(here, group));
  }

  std::uint32_t intermediate(const AdaptiveRequest& request, const Ends& ends) const {
    return detour_group(detours, request, seed_, shape().g, ends.source, ends.target);
  }

  /// Bytes before the global link to `group` over the leaf's port towards its spine: here, and there as reported.
  Bytes waiting(const Place& here, NodeId at, const AdaptiveRequest& request, std::span<const Bytes> queued,
                std::uint32_t group) const {
    const Choices choices = minimal_.towards_group(here, group);
    const std::uint32_t which = which_of(at, request.flow, choices);
    const std::uint16_t port = minimal_.port(here, choices, which);
    if (detours != Detours::by_reported_queues || request.reported.empty()) return queued[port];
    return queued[port] + request.reported[port * shape().h + minimal_.global_at_spine(here, group, which)];
  }

  DetourProgress decide_at_leaf(NodeId at, const Place& here, const Ends& ends, const AdaptiveRequest& request,
                                std::span<const Bytes> queued) const {
    DetourProgress progress;
    progress.phase = DetourProgress::minimal;
    if (ends.source == ends.target || shape().g < 3) return progress;
    if (detours == Detours::always) {
      progress.phase = DetourProgress::to_intermediate;
      return progress;
    }
    // Up, over, down; a detour goes down, up and over once more.
    constexpr std::int64_t hops = 3;
    constexpr std::int64_t detour_hops = 6;
    if (waiting(here, at, request, queued, ends.target) * hops >
        waiting(here, at, request, queued, intermediate(request, ends)) * detour_hops + detour_bias)
      progress.phase = DetourProgress::to_intermediate;
    progress.second_look = detours == Detours::progressive && progress.phase == DetourProgress::minimal;
    return progress;
  }

  /// Another global port of the spine if its queue is that much shorter, one that the packet's hash chooses; else
  /// no_route.
  std::uint16_t decide_at_spine(NodeId at, const Place& here, const Ends& ends, const AdaptiveRequest& request,
                                std::span<const Bytes> queued) const {
    const auto links = static_cast<std::uint32_t>(queued.size()) - shape().leaves;
    const std::uint16_t direct = towards_group(here, at, request.flow, ends.target);
    const std::uint32_t hash = ecmp_hash(request.flow, at, mix64(seed_ + request.psn + 1));
    const std::uint16_t other = static_cast<std::uint16_t>(shape().leaves + ecmp_choice(hash, links));
    // Over, down; or over, down, up, over, down. Another link to the same group is no detour.
    constexpr std::int64_t hops = 2;
    constexpr std::int64_t detour_hops = 5;
    if (group_behind(here, other) == ends.target) return no_route;
    return queued[direct] * hops > queued[other] * detour_hops + detour_bias ? other : no_route;
  }
  std::uint32_t group_behind(const Place& spine, std::uint16_t port) const {
    const std::uint32_t global = (spine.within - shape().leaves) * shape().h + port - shape().leaves;
    return shape().wiring.peer({spine.group, global}).group;
  }

  DragonflyPlusMinimal minimal_;
  std::uint32_t hosts_ = 0;
  std::uint64_t seed_ = 0;
};

const Registration<RoutingAlgorithm, DragonflyPlusLanesRouting<Detours::always>> plus_valiant(
    "dragonfly_plus_valiant", "dragonfly+: over an intermediate group, chosen by the flow's hash");
const Registration<RoutingAlgorithm, DragonflyPlusLanesRouting<Detours::by_queues>> plus_ugal(
    "dragonfly_plus_ugal", "dragonfly+: minimal or over an intermediate group, by the queues of the leaf (UGAL-L)");
const Registration<RoutingAlgorithm, DragonflyPlusLanesRouting<Detours::by_reported_queues>> plus_global(
    "dragonfly_plus_ugal_g", "dragonfly+: the same by the queues of the spines, too, as they report them (UGAL-G)");
const Registration<RoutingAlgorithm, DragonflyPlusLanesRouting<Detours::progressive>> plus_progressive(
    "dragonfly_plus_progressive", "dragonfly+: UGAL that may turn away at the spine, too");

}  // namespace
}  // namespace weft
