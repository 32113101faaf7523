// SPDX-License-Identifier: GPL-2.0-only
// Routing of a dragonfly with virtual lanes: minimal, Valiant, UGAL with local queues, and progressive adaptive (J.
// Kim, W. Dally, S. Scott, D. Abts, ISCA 2008, section 4, doi:10.1109/ISCA.2008.19; N. Jiang, J. Kim, W. Dally,
// "Indirect adaptive routing on large scale interconnection networks", ISCA 2009, doi:10.1145/1555754.1555783).
//
// A detour goes minimally to a router of an intermediate group, which is neither that of the source nor that of the
// destination and which the flow's hash chooses, and from there minimally on: l g l g l. Lanes: a local link is
// travelled in the lane that counts the global links so far, a global link likewise; l0 < g0 < l1 < g1 < l2 has no
// cycle. Progressive routing may take a second local link in the first group, in a lane of its own.
#include "routing/dragonfly_routing.hpp"
#include "routing/range_routing.hpp"

namespace weft {
namespace {

enum class Detours : std::uint8_t { never, always, by_queues, progressive };

/// In favour of the minimal way, in bytes times hops: three hops of one full frame of 4 KiB. Shorter queues say little,
/// and without a bias uniform traffic makes needless detours (Jiang, Kim, Dally, ISCA 2009, section 3.2, have a
/// threshold for that, too).
constexpr std::int64_t bias = 3 * 4096;

/// What a packet remembers: the phase, global links so far (2 bits each).
struct Progress {
  enum Phase : std::uint8_t { undecided, minimal, to_intermediate, from_intermediate };
  Phase phase = undecided;
  std::uint8_t globals = 0;
  bool second_look = false;  ///< progressive: took a local link, may still turn away

  static Progress of(std::uint8_t state) {
    return {static_cast<Phase>(state & 3U), static_cast<std::uint8_t>(state >> 2 & 3U), (state & 16U) != 0};
  }
  std::uint8_t state() const { return static_cast<std::uint8_t>(phase | globals << 2 | (second_look ? 16U : 0U)); }
};

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

  /// The minimal way.
  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    for (std::size_t i = 0; i < requests.size(); ++i)
      ports[i] = at.value() < hosts_ ? std::uint16_t{0} : towards(place(at), at, requests[i], requests[i].destination);
  }

  RouteChoice choose(NodeId at, const AdaptiveRequest& request, std::span<const std::int64_t> queued) const override {
    RouteChoice choice;
    if (at.value() < hosts_) return choice;
    const auto here = place(at);
    const std::uint32_t target = minimal_.place_of_host(request.flow.destination).group;
    const std::uint32_t source = minimal_.place_of_host(request.flow.source).group;
    Progress progress = Progress::of(request.state);
    if (request.in_port < minimal_.shape().p) progress = Progress();  // from a host
    decide(at, here, source, target, request.flow, queued, progress);
    if (progress.phase == Progress::to_intermediate && here.group == intermediate(request.flow, source, target))
      progress.phase = Progress::from_intermediate;
    choice.port = progress.phase == Progress::to_intermediate
                      ? towards_group(here, at, request.flow, intermediate(request.flow, source, target))
                      : towards(here, at, request.flow, request.flow.destination);
    advance(here, source, request.in_port, choice, progress);
    return choice;
  }

  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    if (at.value() < hosts_) return {0};
    const auto here = place(at);
    const std::uint32_t group = minimal_.place_of_host(destination.value()).group;
    if (group == here.group) return {minimal_.port_within(here, destination.value())};
    std::vector<std::uint16_t> ports;
    for (std::uint32_t i = 0; i < minimal_.choices(here, group); ++i) ports.push_back(minimal_.choice(here, group, i));
    return ports;
  }

 private:
  DragonflyMinimal::Place place(NodeId at) const { return minimal_.place(at.value() - hosts_); }

  std::uint16_t towards_group(const DragonflyMinimal::Place& here, NodeId at, const RouteRequest& flow,
                              std::uint32_t group) const {
    const std::uint32_t choices = minimal_.choices(here, group);
    const std::uint32_t which = choices == 1 ? 0 : ecmp_choice(ecmp_hash(flow, at.value(), seed_), choices);
    return minimal_.choice(here, group, which);
  }
  std::uint16_t towards(const DragonflyMinimal::Place& here, NodeId at, const RouteRequest& flow,
                        std::uint32_t destination) const {
    const std::uint32_t group = minimal_.place_of_host(destination).group;
    return group == here.group ? minimal_.port_within(here, destination) : towards_group(here, at, flow, group);
  }

  /// The group over which a flow would make its detour: one of the g - 2 others, by a hash of the flow alone.
  std::uint32_t intermediate(const RouteRequest& flow, std::uint32_t source, std::uint32_t target) const {
    constexpr std::uint32_t no_node = 0xffffffffU;  // the same at all routers
    std::uint32_t group = ecmp_choice(ecmp_hash(flow, no_node, seed_), groups_ - 2);
    if (group >= std::min(source, target)) ++group;
    if (group >= std::max(source, target)) ++group;
    return group;
  }

  void decide(NodeId at, const DragonflyMinimal::Place& here, std::uint32_t source, std::uint32_t target,
              const RouteRequest& flow, std::span<const std::int64_t> queued, Progress& progress) const {
    const bool open = progress.phase == Progress::undecided || (progress.second_look && here.group == source);
    if (!open) return;
    const bool first = progress.phase == Progress::undecided;
    progress.phase = Progress::minimal;
    progress.second_look = false;
    if (detours == Detours::never || source == target || groups_ < 3) return;
    if (detours == Detours::always) {
      progress.phase = Progress::to_intermediate;
      return;
    }
    const std::uint16_t short_way = towards(here, at, flow, flow.destination);
    const std::uint16_t long_way = towards_group(here, at, flow, intermediate(flow, source, target));
    // Kim et al. 2008, section 4.2: minimal unless its queue times hops is longer. A minimal way has at most 3 hops and
    // a detour 5, less the local hop that a router with the global link saves.
    const auto hops = [&](std::uint16_t port, int most) {
      return port >= minimal_.shape().global_port(0) ? most - 1 : most;
    };
    if (queued[short_way] * hops(short_way, 3) > queued[long_way] * hops(long_way, 5) + bias)
      progress.phase = Progress::to_intermediate;
    // Before its global link a minimal packet may look once more.
    progress.second_look = detours == Detours::progressive && first && progress.phase == Progress::minimal &&
                           short_way < minimal_.shape().global_port(0);
  }

  void advance(const DragonflyMinimal::Place& here, std::uint32_t source, std::uint16_t in_port, RouteChoice& choice,
               Progress progress) const {
    const DragonflyShape& shape = minimal_.shape();
    const bool global = choice.port >= shape.global_port(0);
    if (choice.port >= shape.p) choice.lane = progress.globals;
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

const Registration<RoutingAlgorithm, DragonflyLanesRouting<Detours::never>> minimal_lanes(
    "dragonfly_minimal_lanes", "dragonfly: the minimal way in two virtual lanes, free of deadlock");
const Registration<RoutingAlgorithm, DragonflyLanesRouting<Detours::always>> valiant(
    "dragonfly_valiant", "dragonfly: over an intermediate group, chosen by the flow's hash");
const Registration<RoutingAlgorithm, DragonflyLanesRouting<Detours::by_queues>> ugal(
    "dragonfly_ugal", "dragonfly: minimal or over an intermediate group, by the queues of the first router (UGAL-L)");
const Registration<RoutingAlgorithm, DragonflyLanesRouting<Detours::progressive>> progressive(
    "dragonfly_progressive", "dragonfly: UGAL that may turn away at the second router of the first group, too (PAR)");

}  // namespace
}  // namespace weft
