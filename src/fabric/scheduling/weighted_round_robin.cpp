// SPDX-License-Identifier: GPL-2.0-only
// Weighted round robin: M. Katevenis, S. Sidiropoulos, C. Courcoubetis, "Weighted round-robin cell multiplexing in a
// general-purpose ATM switch chip", IEEE JSAC 9(8), 1991, doi:10.1109/49.105173.
#include "fabric/scheduling/port_scheduler.hpp"

namespace weft {
namespace {

/// A class sends as many packets per round as its weight says, whatever their size.
class WeightedRounds final : public PortScheduler {
 public:
  explicit WeightedRounds(const ClassShares& shares) : shares_(shares) {}
  LaneId choose(const ReadyClasses& ready) override {
    if (ready.has(turn_) && left_ > 0) return turn_;
    do turn_ = turn_ + 1 == LaneId(shares_.classes) ? LaneId() : turn_ + 1;
    while (!ready.has(turn_));
    left_ = shares_.weight[turn_];
    return turn_;
  }
  void sends(LaneId, Bytes) override { --left_; }
  void emptied(std::uint32_t lanes) override {
    if (turn_.in(lanes)) left_ = 0;
  }

 private:
  const ClassShares shares_;
  LaneId turn_;
  std::int64_t left_ = 0;  // packets of that class in this round
};

class WeightedRoundRobin final : public SchedulingDiscipline {
 public:
  std::unique_ptr<PortScheduler> make(const ClassShares& shares) const override {
    return std::make_unique<WeightedRounds>(shares);
  }
};

const Registration<SchedulingDiscipline, WeightedRoundRobin> weighted_round_robin_registration(
    "weighted_round_robin", "data and other share the link by weight, in packets (Katevenis et al. 1991)");

}  // namespace
}  // namespace weft
