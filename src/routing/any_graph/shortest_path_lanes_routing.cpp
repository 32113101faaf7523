// SPDX-License-Identifier: GPL-2.0-only
// Any machine without deadlock: the lane counts the links between switches that a packet has travelled, so that no
// cycle of waiting closes (I. Gopal, "Prevention of store-and-forward deadlock in computer networks", IEEE Trans. Comm.
// 33(12), 1985; M. Besta, T. Hoefler, "Slim Fly", SC 2014, section IV.D: two lanes for minimal routing, four for
// detours). Minimal, Valiant's detours over another switch with hosts, and UGAL by the queues of the first switch
// (section IV.C).
#include <algorithm>
#include <limits>

#include "routing/algorithm/detours.hpp"
#include "routing/algorithm/routing_algorithm.hpp"
#include "support/basics/error.hpp"

namespace weft {
namespace {

constexpr std::uint8_t far_away = std::numeric_limits<std::uint8_t>::max();

/// Links between switches; `far_away` where there is no path or a longer one.
std::vector<std::uint8_t> distances_of(const ClusterGraph& graph, std::uint32_t source) {
  std::vector<std::uint8_t> distance(graph.switch_count(), far_away);
  std::vector<std::uint32_t> reached = {source};
  distance[source] = 0;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const std::uint32_t here = reached[i];
    if (distance[here] + 1 == far_away) continue;
    for (const PortEnd& port : graph.ports(NodeId(graph.host_count() + here))) {
      if (graph.is_host(port.peer)) continue;
      const std::uint32_t peer = port.peer.value() - graph.host_count();
      if (distance[peer] != far_away) continue;
      distance[peer] = static_cast<std::uint8_t>(distance[here] + 1);
      reached.push_back(peer);
    }
  }
  return distance;
}

template <Detours detours>
class ShortestPathLanesRouting final : public RoutingAlgorithm {
 public:
  void prepare(const Topology& topology, std::uint64_t seed) override {
    const ClusterGraph& graph = topology.graph;
    minimal_ = RoutingRegistry::instance().find("shortest_path")->make();
    minimal_->prepare(topology, seed);
    hosts_ = graph.host_count();
    seed_ = seed;
    ends_.clear();
    end_of_switch_.assign(graph.switch_count(), no_end);
    end_of_host_.assign(hosts_, no_end);
    for (std::uint32_t host = 0; host < hosts_; ++host) {
      const NodeId peer = graph.ports(NodeId(host)).front().peer;
      if (graph.is_host(peer)) continue;
      std::uint32_t& end = end_of_switch_[peer.value() - hosts_];
      if (end == no_end) {
        end = static_cast<std::uint32_t>(ends_.size());
        ends_.push_back(NodeId(host));
      }
      end_of_host_[host] = end;
    }
    measure(graph);
  }

  unsigned lanes() const override { return std::max(1U, detours == Detours::never ? diameter_ : 2 * diameter_); }
  bool per_packet() const override { return true; }
  bool reorders() const override { return looks_at_queues(detours); }

  /// The minimal way.
  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    minimal_->route(at, requests, ports);
  }

  RouteChoice choose(NodeId at, const AdaptiveRequest& request, std::span<const Bytes> queued) const override {
    RouteChoice choice;
    if (at.value() < hosts_) return choice;
    const std::uint32_t here = end_of_switch_[at.value() - hosts_];
    const std::uint32_t target = end_of_host_[request.flow.destination.value()];
    auto phase = static_cast<DetourProgress::Phase>(request.state & 3U);
    auto hops = static_cast<std::uint8_t>(request.state >> 2);
    if (phase == DetourProgress::undecided) phase = decide(at, target, request, queued);
    if (phase == DetourProgress::to_intermediate && here == intermediate(request, target))
      phase = DetourProgress::from_intermediate;
    const bool detour = phase == DetourProgress::to_intermediate;
    choice.port =
        port_towards(at, request.flow, detour ? ends_[intermediate(request, target)] : request.flow.destination);
    choice.lane = request.lane;
    if (detour || here != target) choice.lane = hops++;  // not on the link to the host
    choice.state = static_cast<std::uint8_t>(phase | hops << 2);
    return choice;
  }

  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    return minimal_->candidates(at, destination);
  }

 private:
  static constexpr std::uint32_t no_end = 0xffffffffU;
  static constexpr unsigned max_hops = 63;  // six bits of the state count them

  void measure(const ClusterGraph& graph) {
    diameter_ = 0;
    distance_.clear();
    for (const NodeId host : ends_) {
      const NodeId first = graph.ports(host).front().peer;
      const auto distance = distances_of(graph, first.value() - hosts_);
      for (const NodeId other : ends_) {
        const std::uint8_t hops = distance[graph.ports(other).front().peer.value() - hosts_];
        diameter_ = std::max<unsigned>(diameter_, hops);
        if (looks_at_queues(detours)) distance_.push_back(hops);
      }
    }
    if (lanes() > max_hops)
      throw InputError(SourceLine{},
                       "routing with a lane for each link of a path suits only machines on which switches "
                       "with hosts are a few links from each other; use 'shortest_path'");
  }

  std::uint16_t port_towards(NodeId at, RouteRequest flow, NodeId destination) const {
    flow.destination = destination;
    std::uint16_t port = 0;
    minimal_->route(at, {&flow, 1}, &port);
    return port;
  }

  /// One of the switches with hosts that are neither the first nor the last, the same at all nodes.
  std::uint32_t intermediate(const AdaptiveRequest& request, std::uint32_t target) const {
    return detour_group(detours, request, seed_, static_cast<std::uint32_t>(ends_.size()),
                        end_of_host_[request.flow.source.value()], target);
  }

  DetourProgress::Phase decide(NodeId at, std::uint32_t target, const AdaptiveRequest& request,
                               std::span<const Bytes> queued) const {
    const std::uint32_t source = end_of_host_[request.flow.source.value()];
    if (detours == Detours::never || source == target || ends_.size() < 3) return DetourProgress::minimal;
    if (detours == Detours::always) return DetourProgress::to_intermediate;
    const std::uint32_t over = intermediate(request, target);
    const Bytes waits = queued[port_towards(at, request.flow, request.flow.destination)];
    const Bytes detour_waits = queued[port_towards(at, request.flow, ends_[over])];
    return waits * hops(source, target) > detour_waits * (hops(source, over) + hops(over, target)) + detour_bias
               ? DetourProgress::to_intermediate
               : DetourProgress::minimal;
  }
  int hops(std::uint32_t from, std::uint32_t to) const { return distance_[from * ends_.size() + to]; }

  std::unique_ptr<RoutingAlgorithm> minimal_;
  std::vector<NodeId> ends_;                  ///< a host of each switch that has hosts
  std::vector<std::uint32_t> end_of_switch_;  ///< [switches] -> ends_
  std::vector<std::uint32_t> end_of_host_;    ///< [hosts] -> ends_
  std::vector<std::uint8_t> distance_;        ///< [ends][ends], only if queues decide
  unsigned diameter_ = 0;
  std::uint32_t hosts_ = 0;
  std::uint64_t seed_ = 0;
};

const Registration<RoutingAlgorithm, ShortestPathLanesRouting<Detours::never>> lanes(
    "shortest_path_lanes", "any topology: paths of fewest links, a virtual lane for each of them, free of deadlock");
const Registration<RoutingAlgorithm, ShortestPathLanesRouting<Detours::always>> valiant(
    "shortest_path_valiant", "any topology: over another switch with hosts, chosen by the flow's hash");
const Registration<RoutingAlgorithm, ShortestPathLanesRouting<Detours::by_queues>> ugal(
    "shortest_path_ugal", "any topology: minimal or over another switch, by the queues of the first switch (UGAL-L)");

}  // namespace
}  // namespace weft
