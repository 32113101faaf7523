// SPDX-License-Identifier: GPL-2.0-only
// Epochs, their splitting at ns-3 events, and the clock, seen from a data path on one process.
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "engine/parallel_simulator_impl.hpp"
#include "support/basics/error.hpp"
#include "tests/picoseconds.hpp"

namespace weft::data_path_epochs_test {
namespace {

using ns3::Simulator;
using Log = std::vector<std::string>;

constexpr std::int64_t flight = 100;

struct PicosecondResolution {
  PicosecondResolution() { count_in_picoseconds(); }
} const picosecond_resolution;

/// A ball between nodes 0 and 1: each hit sends it to the other one, `flight` away. Logs hits and the ends it is given.
class PingPong final : public DataPath {
 public:
  PingPong(Log& log, int hits) : log_(log), hits_left_(hits) {}
  std::function<void(std::uint32_t node, Time now)> on_hit;
  void serve(Time at) {
    next_ = at;
    hits_left_ = 1;
  }

  Time next_time() const override { return hits_left_ > 0 ? next_ : Time::max(); }
  Time lookahead() const override { return Time::from_ps(flight); }
  Time now() const override { return now_; }
  void advance(Time end) override {
    EXPECT_GT(end, last_end_);
    last_end_ = end;
    while (next_time() < end) {
      now_ = next_;
      next_ = now_ + lookahead();
      --hits_left_;
      log_.push_back(fmt::format("hit {}", now_.ps()));
      if (on_hit) on_hit(node_, now_);
      node_ = 1 - node_;
    }
    log_.push_back(fmt::format("end {}", end.ps()));
  }

 private:
  Log& log_;
  int hits_left_;
  std::uint32_t node_ = 0;
  Time next_;
  Time now_;
  Time last_end_;
};

class DataPathEpochs : public testing::Test {
 protected:
  void SetUp() override { engine_ = use_parallel_simulator(); }
  void TearDown() override {
    engine_ = nullptr;
    Simulator::Destroy();
  }
  void event_at(std::int64_t time) {
    Simulator::Schedule(ns3::Time(time),
                        [this] { log_.push_back(fmt::format("event {}", Simulator::Now().GetTimeStep())); });
  }

  ns3::Ptr<ParallelSimulatorImpl> engine_;
  Log log_;
};

TEST_F(DataPathEpochs, AEpochLastsForTheLookaheadAndItsEndIsExclusive) {
  PingPong game(log_, 3);
  engine_->attach(&game);
  Simulator::Run();
  EXPECT_EQ(log_, (Log{"hit 0", "end 100", "hit 100", "end 200", "hit 200", "end 300"}));
  EXPECT_EQ(engine_->epochs(), 3U);
  EXPECT_EQ(Simulator::Now().GetTimeStep(), 2 * flight);  // the last hit
  EXPECT_TRUE(Simulator::IsFinished());
}

TEST_F(DataPathEpochs, EventsSplitAEpochAndComeBeforeTheDataOfTheirTime) {
  PingPong game(log_, 3);
  engine_->attach(&game);
  for (const std::int64_t time : {100, 150, 150, 199}) event_at(time);
  Simulator::Run();
  const Log expected{"hit 0",     "end 100", "event 100", "hit 100", "end 150", "event 150",
                     "event 150", "end 199", "event 199", "end 200", "hit 200", "end 300"};
  EXPECT_EQ(log_, expected);
}

TEST_F(DataPathEpochs, EventsMayScheduleEarlierOnesThanThoseKnown) {
  PingPong game(log_, 1);
  engine_->attach(&game);
  event_at(90);
  Simulator::Schedule(ns3::Time(20), [this] {
    log_.emplace_back("adds");
    event_at(10);
    event_at(0);
  });
  Simulator::Run();
  EXPECT_EQ(log_, (Log{"hit 0", "end 20", "adds", "event 20", "end 30", "event 30", "end 90", "event 90", "end 100"}));
}

TEST_F(DataPathEpochs, QuietTimesAreJumpedOver) {
  PingPong game(log_, 1);
  engine_->attach(&game);
  constexpr std::int64_t late = 1'000'000'000;
  event_at(late);
  Simulator::Run();
  EXPECT_EQ(engine_->epochs(), 2U);
  EXPECT_EQ(Simulator::Now().GetTimeStep(), late);
}

TEST_F(DataPathEpochs, EventsActOnTheDataPathAndMayRunAgainAfterTheEnd) {
  PingPong game(log_, 0);
  engine_->attach(&game);
  Simulator::Schedule(ns3::Time(1'000), [&game] { game.serve(Time::from_ps(1'000)); });
  Simulator::Run();
  EXPECT_EQ(log_, (Log{"end 1000", "hit 1000", "end 1100"}));
  EXPECT_EQ(Simulator::Now().GetTimeStep(), 1'000);
  log_.clear();
  event_at(500);
  Simulator::Run();
  EXPECT_EQ(log_, (Log{"end 1500", "event 1500", "end 1600"}));
}

TEST_F(DataPathEpochs, TheDataPathLendsItsNodeAndTimeToNs3) {
  PingPong game(log_, 2);
  engine_->attach(&game);
  std::vector<std::uint32_t> contexts;
  game.on_hit = [this, &contexts](std::uint32_t node, Time now) {
    engine_->enter(node, now);
    EXPECT_EQ(Simulator::Now().GetTimeStep(), now.ps());
    EXPECT_EQ(Simulator::GetContext(), node);
    Simulator::Schedule(ns3::Time(flight), [&contexts] { contexts.push_back(Simulator::GetContext()); });
    event_at(flight + 7);
  };
  Simulator::Run();
  EXPECT_EQ(contexts, (std::vector<std::uint32_t>{0, 1}));
  const Log expected{"hit 0",   "end 100", "hit 100",   "end 107", "event 107",
                     "end 200", "end 207", "event 207", "end 300"};
  EXPECT_EQ(log_, expected);
  EXPECT_EQ(Simulator::GetContext(), static_cast<std::uint32_t>(Simulator::NO_CONTEXT));
}

TEST_F(DataPathEpochs, TheDataPathMayNotScheduleWithinItsLookahead) {
  PingPong game(log_, 1);
  engine_->attach(&game);
  game.on_hit = [this](std::uint32_t node, Time now) {
    engine_->enter(node, now);
    EXPECT_THROW(event_at(flight - 1), InternalError);
    EXPECT_NO_THROW(event_at(flight));
    EXPECT_THROW(engine_->enter(node, Time::from_ps(flight)), InternalError);  // beyond the end it was given
  };
  Simulator::Run();
  EXPECT_EQ(log_, (Log{"hit 0", "end 100", "event 100", "end 200"}));
  EXPECT_THROW(engine_->enter(0, Time()), InternalError);  // not within advance()
}

TEST_F(DataPathEpochs, StopInAnEventLeavesTheDataPathThere) {
  PingPong game(log_, 3);
  engine_->attach(&game);
  Simulator::Stop(ns3::Time(150));
  event_at(150);
  Simulator::Run();
  EXPECT_EQ(log_, (Log{"hit 0", "end 100", "hit 100", "end 150"}));
  EXPECT_EQ(Simulator::Now().GetTimeStep(), 150);
  EXPECT_TRUE(engine_->stopped());
  log_.clear();
  Simulator::Run();
  EXPECT_EQ(log_, (Log{"event 150", "hit 200", "end 250"}));
}

TEST_F(DataPathEpochs, AStopBetweenEpochsLeavesNothingInThePast) {
  PingPong game(log_, 10);
  engine_->attach(&game);
  std::vector<std::int64_t> begins;
  engine_->set_between_epochs([&begins](Time begin) {
    begins.push_back(begin.ps());
    return begins.size() == 3 ? ParallelSimulatorImpl::Look::stop : ParallelSimulatorImpl::Look::go_on;
  });
  Simulator::Run();
  EXPECT_EQ(begins, (std::vector<std::int64_t>{0, 0, flight}));
  EXPECT_EQ(log_, (Log{"hit 0", "end 100", "hit 100", "end 200"}));
  EXPECT_EQ(Simulator::Now().GetTimeStep(), 2 * flight);  // simulated up to here, exclusive
  EXPECT_NO_THROW(event_at(0));
}

}  // namespace
}  // namespace weft::data_path_epochs_test
