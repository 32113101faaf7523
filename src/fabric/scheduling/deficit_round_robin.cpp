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
    for (std::size_t lane = 0; lane < most_classes; ++lane) quantum_[lane] = shares.weight[lane] * shares.largest_frame;
  }
  std::uint32_t choose(const ReadyClasses& ready) override {
    std::uint32_t lane = turn_;
    while (!ready.has(lane) || deficit_[lane] < ready.frame[lane]) {
      lane = lane + 1 == classes_ ? 0 : lane + 1;
      if (ready.has(lane)) deficit_[lane] += quantum_[lane];
    }
    turn_ = lane;
    return lane;
  }
  void sends(std::uint32_t lane, Bytes frame) override { deficit_[lane] -= frame; }
  void emptied(std::uint32_t lanes) override {
    for (; lanes != 0; lanes &= lanes - 1) deficit_[static_cast<std::size_t>(std::countr_zero(lanes))] = Bytes();
  }

 private:
  std::uint32_t classes_;
  std::uint32_t turn_ = 0;
  std::array<Bytes, most_classes> quantum_{};
  std::array<Bytes, most_classes> deficit_{};
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
