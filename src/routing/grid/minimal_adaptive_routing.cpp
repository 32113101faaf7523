// SPDX-License-Identifier: GPL-2.0-only
// Minimal adaptive routing on grids: of the ports that lead closer, the one with the shortest queue. A packet joins a
// queue for good, so that an escape lane (Duato) would not help; lanes are ordered instead:
// - Torus and mesh: the lane counts the wraps crossed so far. Within a lane the packet sees a mesh, on which it first
//   goes downwards in any order of dimensions and then upwards (negative-first: C. Glass, L. Ni, "The turn model for
//   adaptive routing", ISCA 1992, doi:10.1145/139669.140384). Only where both are left does that restrict the choice.
// - HyperX: the lane counts the hops so far, one per dimension.
#include <array>

#include "graph/shapes/hyperx_shape.hpp"
#include "graph/shapes/torus_shape.hpp"
#include "routing/algorithm/range_routing.hpp"

namespace weft {
namespace {

constexpr std::size_t max_choices = 64;

/// Ports that lead closer, without allocation; beyond the capacity the last are left out.
struct Choices {
  std::array<std::uint16_t, max_choices> port{};
  std::size_t count = 0;
  void add(std::uint32_t value) {
    if (count < max_choices) port[count++] = static_cast<std::uint16_t>(value);
  }
};

class MinimalAdaptiveRouting final : public RoutingAlgorithm {
 public:
  void prepare(const Topology& topology, std::uint64_t seed) override {
    hosts_ = topology.graph.host_count();
    seed_ = seed;
    hyperx_ = std::dynamic_pointer_cast<const HyperxShape>(topology.shape);
    if (hyperx_) {
      lanes_ = 0;
      for (const std::uint32_t size : hyperx_->dims) lanes_ += size > 1 ? 1 : 0;
    } else {
      torus_ =
          require_shape<TorusShape>(topology, "minimal_adaptive", "torus, mesh, hyperx, hypercube and fully_connected");
      if (torus_->is_twisted())
        throw InputError(SourceLine{},
                         "routing 'minimal_adaptive' knows no twisted wraps; 'shortest_path' routes them");
      lanes_ = 1;
      for (std::size_t d = 0; d < torus_->dims.size(); ++d) lanes_ += torus_->wrap[d] && torus_->dims[d] > 2 ? 1 : 0;
    }
    lanes_ = std::max(lanes_, 1U);
  }

  unsigned lanes() const override { return lanes_; }
  bool per_packet() const override { return true; }
  bool reorders() const override { return true; }

  /// Without queues in view: a choice by the flow's hash.
  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Choices choices = closer(at, requests[i]);
      ports[i] =
          choices.port[ecmp_choice(ecmp_hash(requests[i], at, seed_), static_cast<std::uint32_t>(choices.count))];
    }
  }

  RouteChoice choose(NodeId at, const AdaptiveRequest& request, std::span<const Bytes> queued) const override {
    const Choices choices = closer(at, request.flow);
    RouteChoice choice;
    // Among equal queues the packet's own hash decides, so that routers in step do not all make the same choice.
    const std::uint32_t hash = ecmp_hash(request.flow, at, mix64(seed_ + request.psn));
    const std::size_t first = ecmp_choice(hash, static_cast<std::uint32_t>(choices.count));
    choice.port = choices.port[first];
    for (std::size_t i = 1; i < choices.count; ++i) {
      const std::uint16_t port = choices.port[(first + i) % choices.count];
      if (queued[port] < queued[choice.port]) choice.port = port;
    }
    if (at.value() < hosts_) return choice;
    choice.lane = lane_after(at.value() - hosts_, request, choice.port);
    return choice;
  }

  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    // The way round a ring to the opposite side is the flow's choice: both belong to the candidates.
    const Choices choices = all_closer(at, destination);
    std::vector<std::uint16_t> ports(choices.port.begin(),
                                     choices.port.begin() + static_cast<std::ptrdiff_t>(choices.count));
    std::sort(ports.begin(), ports.end());
    return ports;
  }

 private:
  Choices closer(NodeId at, const RouteRequest& flow) const {
    return ports_towards(at, flow.destination, [&](std::size_t dim) {
      const std::uint64_t salt_of_ring = dim + mix64(seed_ + 1);
      return (ecmp_hash(flow, salt_of_ring) >> 31) != 0 ? up_only : down_only;
    });
  }
  Choices all_closer(NodeId at, NodeId destination) const {
    return ports_towards(at, destination, [](std::size_t) { return both; });
  }

  enum Opposite { up_only, down_only, both };

  /// `opposite(dim)`: which ways to take in a dimension where both are as short.
  template <class OppositeOf>
  Choices ports_towards(NodeId at, NodeId destination, const OppositeOf& opposite) const {
    Choices result;
    if (at.value() < hosts_) {
      result.add(0);
      return result;
    }
    const std::uint32_t router = at.value() - hosts_;
    if (hyperx_) {
      hyperx_ports(router, destination, result);
    } else {
      torus_ports(router, destination, opposite, result);
    }
    return result;
  }

  void hyperx_ports(std::uint32_t here, NodeId destination, Choices& result) const {
    std::uint32_t target = destination.value() / hyperx_->terminals;
    if (target == here) return result.add(destination.value() % hyperx_->terminals);
    for (std::size_t d = 0; d < hyperx_->dims.size(); ++d) {
      const std::uint32_t size = hyperx_->dims[d];
      const std::uint32_t x = here % size;
      const std::uint32_t y = target % size;
      if (x != y)
        for (std::uint32_t k = 0; k < hyperx_->parallel[d]; ++k) result.add(hyperx_->first_port(d, x, y) + k);
      here /= size;
      target /= size;
    }
  }

  template <class OppositeOf>
  void torus_ports(std::uint32_t router, NodeId destination, const OppositeOf& opposite, Choices& result) const {
    std::uint32_t target = destination.value() / torus_->hosts_per_router;
    if (target == router) return result.add(destination.value() % torus_->hosts_per_router);
    std::uint32_t here = router;
    Choices upwards;
    for (std::size_t d = 0; d < torus_->dims.size(); ++d) {
      const std::uint32_t k = torus_->dims[d];
      const std::uint32_t x = here % k;
      const std::uint32_t y = target % k;
      here /= k;
      target /= k;
      if (x == y) continue;
      const bool wraps = torus_->wrap[d] && k > 2;
      const std::uint32_t ahead = y > x ? y - x : y + k - x;
      const Opposite tie = wraps && 2 * ahead == k ? opposite(d) : both;
      const bool up = wraps ? 2 * ahead < k || (2 * ahead == k && tie != down_only) : y > x;
      const bool down = wraps ? 2 * ahead > k || (2 * ahead == k && tie != up_only) : y < x;
      if (down) result.add(torus_->port(router, d, false));
      if (up) upwards.add(torus_->port(router, d, true));
    }
    if (result.count == 0) result = upwards;  // negative first
  }

  std::uint8_t lane_after(std::uint32_t router, const AdaptiveRequest& request, std::uint16_t port) const {
    const std::uint32_t per_router = hyperx_ ? hyperx_->terminals : torus_->hosts_per_router;
    if (port < per_router) return request.lane;
    const bool from_host = request.in_port < per_router || request.in_port == AdaptiveRequest::no_port;
    if (hyperx_) return from_host ? 0 : static_cast<std::uint8_t>(request.lane + 1);
    std::uint32_t rest = router;
    for (std::size_t d = 0; d < torus_->dims.size(); ++d) {
      const std::uint32_t k = torus_->dims[d];
      const std::uint32_t x = rest % k;
      rest /= k;
      if (!torus_->wrap[d] || k <= 2) continue;
      const bool over_wrap =
          (x == k - 1 && torus_->port(router, d, true) == port) || (x == 0 && torus_->port(router, d, false) == port);
      if (over_wrap) return static_cast<std::uint8_t>((from_host ? 0 : request.lane) + 1);
    }
    return from_host ? 0 : request.lane;
  }

  std::shared_ptr<const TorusShape> torus_;
  std::shared_ptr<const HyperxShape> hyperx_;
  unsigned lanes_ = 1;
  std::uint32_t hosts_ = 0;
  std::uint64_t seed_ = 0;
};

const Registration<RoutingAlgorithm, MinimalAdaptiveRouting> minimal_adaptive_routing_registration(
    "minimal_adaptive", "torus, mesh and hyperx: of the ports that lead closer, the shortest queue; free of deadlock");

}  // namespace
}  // namespace weft
