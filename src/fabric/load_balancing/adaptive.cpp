// SPDX-License-Identifier: GPL-2.0-only
// Each packet goes to a short queue, by the queues of its switch's own ports.
#include "fabric/load_balancing/load_balancing.hpp"

namespace weft {
namespace {

class LeastLoaded final : public SwitchBalancer {
 public:
  std::uint16_t choose(const SwitchPorts& at, std::span<const std::uint16_t> ports, const RouteRequest& flow,
                       std::uint32_t psn, Time now) override {
    return at.least_loaded(ports, flow, psn, now);
  }
};

class Adaptive final : public LoadBalancing {
 public:
  Overtaking overtaking() const override { return Overtaking::always; }
  std::unique_ptr<SwitchBalancer> at_switch() const override { return std::make_unique<LeastLoaded>(); }
};

const Registration<LoadBalancing, Adaptive> adaptive_registration(
    "adaptive", "each packet to an equal-cost port whose queue is within a packet of the least");

}  // namespace
}  // namespace weft
