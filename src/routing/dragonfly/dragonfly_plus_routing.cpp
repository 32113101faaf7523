// SPDX-License-Identifier: GPL-2.0-only
// Minimal routing of a dragonfly+ by formula.
#include "routing/dragonfly/dragonfly_plus_routing.hpp"

#include "routing/algorithm/range_routing.hpp"

namespace weft {
namespace {

class DragonflyPlusMinimalRouting final : public RoutingAlgorithm {
 public:
  void prepare(const Topology& topology, std::uint64_t seed) override {
    minimal_ =
        DragonflyPlusMinimal(*require_shape<DragonflyPlusShape>(topology, "dragonfly_plus_minimal", "dragonfly_plus"));
    hosts_ = topology.graph.host_count();
    seed_ = seed;
  }

  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    if (at.value() < hosts_) {
      std::fill_n(ports, requests.size(), std::uint16_t{0});
      return;
    }
    const auto here = minimal_.place(at.value() - hosts_);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto next = minimal_.choices(here, requests[i].destination);
      ports[i] =
          minimal_.port(here, next, next.count == 1 ? 0 : ecmp_choice(ecmp_hash(requests[i], at, seed_), next.count));
    }
  }

  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    if (at.value() < hosts_) return {0};
    return minimal_.candidates(minimal_.place(at.value() - hosts_), destination);
  }

 private:
  DragonflyPlusMinimal minimal_;
  std::uint32_t hosts_ = 0;
  std::uint64_t seed_ = 0;
};

const Registration<RoutingAlgorithm, DragonflyPlusMinimalRouting> dragonfly_plus_routing_registration(
    "dragonfly_plus_minimal", "dragonfly+ by formula: up to a spine with a link to the group, over, down");

}  // namespace
}  // namespace weft
