// SPDX-License-Identifier: GPL-2.0-only
// A dragonfly with virtual lanes: the minimal way, or a detour over another group, whenever a policy says so. The
// policies are registered in dragonfly_adaptive_routing.cpp and dragonfly_global_routing.cpp.
//
// A detour goes minimally to a router of an intermediate group, which is neither that of the source nor that of the
// destination and which a hash chooses (detour_group), and from there minimally on: l g l g l. Lanes: a local link is
// travelled in the lane that counts the global links so far, a global link likewise; l0 < g0 < l1 < g1 < l2 has no
// cycle. Progressive routing may take a second local link in the first group, in a lane of its own.
//
// A detour within a group goes over another of its routers, l l in lanes l0 < l1; such a packet takes no global link.
#pragma once

#include <algorithm>

#include "routing/algorithm/detours.hpp"
#include "routing/algorithm/range_routing.hpp"
#include "routing/dragonfly/dragonfly_routing.hpp"

namespace weft {

template <Detours detours>
class DragonflyLanesRouting final : public RoutingAlgorithm {
 public:
  static constexpr const char* name() {
    switch (detours) {
      case Detours::never:
        return "dragonfly_minimal_lanes";
      case Detours::always:
        return "dragonfly_valiant";
      case Detours::by_queues:
        return "dragonfly_ugal";
      case Detours::by_reported_queues:
        return "dragonfly_ugal_g";
      case Detours::within_groups:
        return "dragonfly_ugal_local";
      default:
        return "dragonfly_progressive";
    }
  }

  void prepare(const Topology& topology, std::uint64_t seed) override {
    minimal_ = DragonflyMinimal(*require_shape<DragonflyShape>(topology, name(), "dragonfly"));
    hosts_ = topology.graph.host_count();
    groups_ = minimal_.shape().g;
    seed_ = seed;
  }

  unsigned lanes() const override { return detours == Detours::never ? 2 : detours == Detours::progressive ? 4 : 3; }
  bool per_packet() const override { return true; }
  bool reorders() const override { return looks_at_queues(detours); }
  QueueReports reports(NodeId at) const override {
    if (detours != Detours::by_reported_queues || at.value() < hosts_) return {};
    const DragonflyShape& shape = minimal_.shape();
    const std::uint32_t first = std::min(shape.wiring.used_ports(), place(at).router * shape.h);
    return {shape.global_port(0), std::min(shape.wiring.used_ports() - first, shape.h), shape.p, shape.a - 1};
  }
  std::uint32_t max_reported() const override {
    return detours == Detours::by_reported_queues ? minimal_.shape().h : 0;
  }

  /// The minimal way.
  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    for (std::size_t i = 0; i < requests.size(); ++i)
      ports[i] = at.value() < hosts_ ? std::uint16_t{0} : towards(place(at), at, requests[i], requests[i].destination);
  }

  RouteChoice choose(NodeId at, const AdaptiveRequest& request, std::span<const Bytes> queued) const override {
    RouteChoice choice;
    if (at.value() < hosts_) return choice;
    const auto here = place(at);
    const std::uint32_t target = minimal_.place_of_host(request.flow.destination).group;
    const std::uint32_t source = minimal_.place_of_host(request.flow.source).group;
    DetourProgress progress = DetourProgress::of(request.state);
    if (request.in_port < minimal_.shape().p) progress = DetourProgress();  // from a host
    decide(at, here, source, target, request, queued, progress);
    if (progress.phase == DetourProgress::to_intermediate && at_intermediate(here, request, source, target))
      progress.phase = DetourProgress::from_intermediate;
    choice.port = progress.phase == DetourProgress::to_intermediate
                      ? towards_intermediate(here, at, request, source, target)
                      : towards(here, at, request.flow, request.flow.destination);
    advance(here, source, request.in_port, choice, progress);
    return choice;
  }

  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    if (at.value() < hosts_) return {0};
    return minimal_.candidates(place(at), destination);
  }

 private:
  DragonflyMinimal::Place place(NodeId at) const { return minimal_.place(at.value() - hosts_); }

  std::uint16_t towards_group(const DragonflyMinimal::Place& here, NodeId at, const RouteRequest& flow,
                              std::uint32_t group) const {
    return minimal_.choice(here, group, which_of(here, at, flow, group));
  }
  std::uint32_t which_of(const DragonflyMinimal::Place& here, NodeId at, const RouteRequest& flow,
                         std::uint32_t group) const {
    const std::uint32_t choices = minimal_.choices(here, group);
    return choices == 1 ? 0 : ecmp_choice(ecmp_hash(flow, at, seed_), choices);
  }
  std::uint16_t towards(const DragonflyMinimal::Place& here, NodeId at, const RouteRequest& flow,
                        NodeId destination) const {
    const std::uint32_t group = minimal_.place_of_host(destination).group;
    return group == here.group ? minimal_.port_within(here, destination) : towards_group(here, at, flow, group);
  }

  std::uint32_t intermediate(const AdaptiveRequest& request, std::uint32_t source, std::uint32_t target) const {
    return detour_group(detours, request, seed_, groups_, source, target);
  }

  /// The router over which a packet would make its detour within a group: one of the a - 2 others.
  std::uint32_t intermediate_router(const AdaptiveRequest& request) const {
    return detour_group(detours, request, seed_, minimal_.shape().a, minimal_.place_of_host(request.flow.source).router,
                        minimal_.place_of_host(request.flow.destination).router);
  }
  bool at_intermediate(const DragonflyMinimal::Place& here, const AdaptiveRequest& request, std::uint32_t source,
                       std::uint32_t target) const {
    if (source == target) return here.router == intermediate_router(request);
    return here.group == intermediate(request, source, target);
  }
  std::uint16_t towards_intermediate(const DragonflyMinimal::Place& here, NodeId at, const AdaptiveRequest& request,
                                     std::uint32_t source, std::uint32_t target) const {
    if (source == target)
      return static_cast<std::uint16_t>(minimal_.shape().local_port(here.router, intermediate_router(request)));
    return towards_group(here, at, request.flow, intermediate(request, source, target));
  }

  /// Within a group the minimal way has one hop between routers, and the detour two.
  bool turns_within(const DragonflyMinimal::Place& here, const AdaptiveRequest& request,
                    std::span<const Bytes> queued) const {
    const DragonflyShape& shape = minimal_.shape();
    if (detours != Detours::within_groups || shape.a < 3) return false;
    const std::uint16_t short_way = minimal_.port_within(here, request.flow.destination);
    if (short_way < shape.p) return false;  // a host of this router
    const std::uint16_t long_way =
        static_cast<std::uint16_t>(shape.local_port(here.router, intermediate_router(request)));
    return queued[short_way] > 2 * queued[long_way] + detour_bias;
  }

  void decide(NodeId at, const DragonflyMinimal::Place& here, std::uint32_t source, std::uint32_t target,
              const AdaptiveRequest& request, std::span<const Bytes> queued, DetourProgress& progress) const {
    const RouteRequest& flow = request.flow;
    const bool open = progress.phase == DetourProgress::undecided || (progress.second_look && here.group == source);
    if (!open) return;
    const bool first = progress.phase == DetourProgress::undecided;
    progress.phase = DetourProgress::minimal;
    progress.second_look = false;
    if (source == target && turns_within(here, request, queued)) progress.phase = DetourProgress::to_intermediate;
    if (detours == Detours::never || source == target || groups_ < 3) return;
    if (detours == Detours::always) {
      progress.phase = DetourProgress::to_intermediate;
      return;
    }
    const std::uint32_t detour = intermediate(request, source, target);
    const std::uint16_t short_way = towards(here, at, flow, flow.destination);
    const std::uint16_t long_way = towards_group(here, at, flow, detour);
    // Kim et al. 2008, section 4.2: minimal unless its queue times hops is longer. A minimal way has at most 3 hops and
    // a detour 5, less the local hop that a router with the global link saves.
    const auto hops = [&](std::uint16_t port, int max) {
      return port >= minimal_.shape().global_port(0) ? max - 1 : max;
    };
    const Bytes waits = queued[short_way] + reported(here, at, request, short_way, target);
    const Bytes detour_waits = queued[long_way] + reported(here, at, request, long_way, detour);
    if (waits * hops(short_way, 3) > detour_waits * hops(long_way, 5) + detour_bias)
      progress.phase = DetourProgress::to_intermediate;
    // Before its global link a minimal packet may look once more.
    progress.second_look = detours == Detours::progressive && first && progress.phase == DetourProgress::minimal &&
                           short_way < minimal_.shape().global_port(0);
  }

  /// Bytes that wait for the global link at the other router to which `port` leads, as that router has last reported; 0
  /// if the link is this router's own, or no router reports.
  Bytes reported(const DragonflyMinimal::Place& here, NodeId at, const AdaptiveRequest& request, std::uint16_t port,
                 std::uint32_t group) const {
    const DragonflyShape& shape = minimal_.shape();
    if (detours != Detours::by_reported_queues || request.reported.empty() || port >= shape.global_port(0))
      return Bytes();
    return request
        .reported[port * shape.h + minimal_.global_at_peer(here, group, which_of(here, at, request.flow, group))];
  }

  void advance(const DragonflyMinimal::Place& here, std::uint32_t source, std::uint16_t in_port, RouteChoice& choice,
               DetourProgress progress) const {
    const DragonflyShape& shape = minimal_.shape();
    const bool global = choice.port >= shape.global_port(0);
    if (choice.port >= shape.p) choice.lane = progress.globals;
    if (detours == Detours::within_groups && !global && here.group == source &&
        progress.phase == DetourProgress::from_intermediate && choice.port >= shape.p)
      choice.lane = 1;  // the second link of a detour within the group
    if (detours == Detours::progressive && choice.port >= shape.p && !global) {
      // Local links of the first group: lane 0, and 1 for a second one; then 2 and 3.
      const bool second = in_port >= shape.p && in_port < shape.global_port(0);
      choice.lane = here.group == source && progress.globals == 0 ? (second ? 1 : 0)
                                                                  : static_cast<std::uint8_t>(progress.globals + 1);
    }
    if (global) ++progress.globals;
    choice.state = progress.state();
  }

  DragonflyMinimal minimal_;
  std::uint32_t hosts_ = 0;
  std::uint32_t groups_ = 1;
  std::uint64_t seed_ = 0;
};

}  // namespace weft
