// SPDX-License-Identifier: GPL-2.0-only
#include "routing/composed/resilient_routing.hpp"

#include <algorithm>
#include <utility>

#include "support/basics/contract.hpp"

namespace weft {
namespace {

class ResilientRouting final : public RoutingAlgorithm {
 public:
  ResilientRouting(const RoutingAlgorithm& usual, std::unique_ptr<RoutingAlgorithm> detour)
      : usual_(usual), detour_(std::move(detour)) {}

  void prepare(const Topology&, std::uint64_t) override { WEFT_EXPECT(false, "both of its parts are prepared"); }

  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    detour_->route(at, requests, ports);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const std::vector<std::uint16_t> left = detour_->candidates_of(at, requests[i]);
      if (left.size() < 2) continue;
      std::uint16_t own = no_route;
      usual_.route(at, {&requests[i], 1}, &own);
      if (std::find(left.begin(), left.end(), own) != left.end()) ports[i] = own;
    }
  }
  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    return detour_->candidates(at, destination);
  }
  std::vector<std::uint16_t> candidates_of(NodeId at, const RouteRequest& flow) const override {
    return detour_->candidates_of(at, flow);
  }

 private:
  const RoutingAlgorithm& usual_;
  std::unique_ptr<RoutingAlgorithm> detour_;
};

}  // namespace

std::unique_ptr<RoutingAlgorithm> resilient_routing(const RoutingAlgorithm& usual,
                                                    std::unique_ptr<RoutingAlgorithm> detour) {
  return std::make_unique<ResilientRouting>(usual, std::move(detour));
}

}  // namespace weft
