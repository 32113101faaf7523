// SPDX-License-Identifier: GPL-2.0-only
#include "routing/composed/local_repair_routing.hpp"

#include <algorithm>
#include <utility>

#include "support/basics/contract.hpp"

namespace weft {
namespace {

class LocalRepairRouting final : public RoutingAlgorithm {
 public:
  LocalRepairRouting(const RoutingAlgorithm& usual, const ClusterGraph& graph, std::uint64_t seed,
                     std::vector<bool> dead, bool resilient)
      : usual_(usual), graph_(graph), seed_(seed), dead_(std::move(dead)), resilient_(resilient) {}

  void prepare(const Topology&, std::uint64_t) override { WEFT_EXPECT(false, "what it repairs is prepared"); }

  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    usual_.route(at, requests, ports);
    const auto ends = graph_.ports(at);
    if (std::none_of(ends.begin(), ends.end(), [&](const PortEnd& end) { return dead_[end.link.value()]; })) return;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (ports[i] == no_route || (resilient_ && !is_dead(at, ports[i]))) continue;
      const std::vector<std::uint16_t> all = usual_.candidates_of(at, requests[i]);
      const std::vector<std::uint16_t> left = repaired(at, all);
      if (left.size() < all.size())
        ports[i] = left[ecmp_choice(ecmp_hash(requests[i], at, seed_), static_cast<std::uint32_t>(left.size()))];
    }
  }
  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    return repaired(at, usual_.candidates(at, destination));
  }
  std::vector<std::uint16_t> candidates_of(NodeId at, const RouteRequest& flow) const override {
    return repaired(at, usual_.candidates_of(at, flow));
  }

 private:
  bool is_dead(NodeId at, std::uint16_t port) const { return dead_[graph_.ports(at)[port].link.value()]; }

  /// Those of `ports` whose links work; all of them if none does.
  std::vector<std::uint16_t> repaired(NodeId at, std::vector<std::uint16_t> ports) const {
    std::vector<std::uint16_t> left;
    std::copy_if(ports.begin(), ports.end(), std::back_inserter(left),
                 [&](std::uint16_t p) { return !is_dead(at, p); });
    return left.empty() ? ports : left;
  }

  const RoutingAlgorithm& usual_;
  const ClusterGraph& graph_;
  std::uint64_t seed_;
  std::vector<bool> dead_;  // by link number
  bool resilient_;
};

}  // namespace

std::unique_ptr<RoutingAlgorithm> local_repair_routing(const RoutingAlgorithm& usual, const Topology& topology,
                                                       std::uint64_t seed, std::vector<bool> dead, bool resilient) {
  return std::make_unique<LocalRepairRouting>(usual, topology.graph, seed, std::move(dead), resilient);
}

}  // namespace weft
