// SPDX-License-Identifier: GPL-2.0-only
// Deficit round robin: M. Shreedhar, G. Varghese, "Efficient fair queueing using deficit round robin", SIGCOMM 1995,
// doi:10.1145/217382.217453.
#include "fabric/scheduling/port_scheduler.hpp"

namespace weft {
namespace {

/// A class has its weight times the largest frame per round, and keeps what it has not used while it waits.
class DeficitRounds final : public PortScheduler {
 public:
  explicit DeficitRounds(const ClassShares& shares) : classes_(shares.classes) {
    for (LaneId lane; lane < LaneId(classes_); ++lane) quantum_[lane] = shares.weight[lane] * shares.largest_frame;
  }
  LaneId choose(const ReadyClasses& ready) override {
    LaneId lane = turn_;
    while (!ready.has(lane) || deficit_[lane] < ready.frame[lane]) {
      lane = lane + 1 == LaneId(classes_) ? LaneId() : lane + 1;
      if (ready.has(lane)) deficit_[lane] += quantum_[lane];
    }
    turn_ = lane;
    return lane;
  }
  void sends(LaneId lane, Bytes frame) override { deficit_[lane] -= frame; }
  void emptied(std::uint32_t lanes) override {
    for (; lanes != 0; lanes &= lanes - 1) deficit_[LaneId::first_of(lanes)] = Bytes();
  }

 private:
  std::uint32_t classes_;
  LaneId turn_;
  PerLane<Bytes> quantum_{};
  PerLane<Bytes> deficit_{};
};

class DeficitRoundRobin final : public SchedulingDiscipline {
 public:
  std::unique_ptr<PortScheduler> make(const ClassShares& shares) const override {
    return std::make_unique<DeficitRounds>(shares);
  }
};

const Registration<SchedulingDiscipline, DeficitRoundRobin> deficit_round_robin_registration(
    "deficit_round_robin", "data and other share the link by weight, in bytes (Shreedhar and Varghese 1995)");

}  // namespace
}  // namespace weft
