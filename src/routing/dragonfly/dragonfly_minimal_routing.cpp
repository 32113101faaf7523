// SPDX-License-Identifier: GPL-2.0-only
// Minimal routing of a dragonfly by formula.
#include "routing/algorithm/range_routing.hpp"
#include "routing/dragonfly/dragonfly_routing.hpp"

namespace weft {
namespace {

class DragonflyMinimalRouting final : public RoutingAlgorithm {
 public:
  void prepare(const Topology& topology, std::uint64_t seed) override {
    minimal_ = DragonflyMinimal(*require_shape<DragonflyShape>(topology, "dragonfly_minimal", "dragonfly"));
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
      const std::uint32_t group = minimal_.place_of_host(requests[i].destination).group;
      if (group == here.group) {
        ports[i] = minimal_.port_within(here, requests[i].destination);
        continue;
      }
      const std::uint32_t choices = minimal_.choices(here, group);
      const std::uint32_t which = choices == 1 ? 0 : ecmp_choice(ecmp_hash(requests[i], at, seed_), choices);
      ports[i] = minimal_.choice(here, group, which);
    }
  }

  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    if (at.value() < hosts_) return {0};
    return minimal_.candidates(minimal_.place(at.value() - hosts_), destination);
  }

 private:
  DragonflyMinimal minimal_;
  std::uint32_t hosts_ = 0;
  std::uint64_t seed_ = 0;
};

const Registration<RoutingAlgorithm, DragonflyMinimalRouting> dragonfly_minimal_routing_registration(
    "dragonfly_minimal", "dragonfly by formula: local, global, local, with at most one global link");

}  // namespace
}  // namespace weft
