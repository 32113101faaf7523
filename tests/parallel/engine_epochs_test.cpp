// SPDX-License-Identifier: GPL-2.0-only
// A ring of tokens over any number of MPI ranks gives the same results as on one: state, times, counts.
// MPI ranks: 1 2 3 5
// Also in Release: threads and processes meet at another pace there, and the compiler orders more
#include <cstdint>
#include <functional>
#include <vector>

#include <gtest/gtest.h>
#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "engine/parallel_simulator_impl.hpp"
#include "tests/engine/token_ring.hpp"

namespace weft::engine_epochs_test {
namespace {

using ns3::Simulator;
using weft::test::TokenRing;

constexpr std::uint32_t nodes = 12;
constexpr std::int64_t link_delay = 500;

struct Result {
  std::vector<std::uint64_t> state;
  std::uint64_t arrivals = 0;
  std::uint64_t events = 0;
  std::int64_t end = 0;
  bool operator==(const Result&) const = default;
};

/// All tokens start at time 0, one per node: ties everywhere. Owned nodes also have an ns-3 timer each, at equal times.
void start(TokenRing& ring) {
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (!ring.owns(node)) continue;
    ring.insert({0, node, 100, node});
    for (const std::int64_t at : {std::int64_t{0}, 3 * link_delay, 3 * link_delay + 1, 10 * link_delay - 1}) {
      Simulator::ScheduleWithContext(node, ns3::Time(at), [&ring, node] {
        const std::int64_t now = Simulator::Now().GetTimeStep();
        ring.mix(node, 17);
        ring.insert({now, node, 3, 500U + node});
      });
    }
  }
}

Result finish(const ParallelSimulatorImpl& engine, const TokenRing& ring) {
  const ProcessGroup& group = engine.process_group();
  Result result;
  for (const std::uint64_t state : ring.state()) result.state.push_back(group.sum(state));
  result.arrivals = group.sum(ring.arrivals());
  result.events = group.sum(engine.GetEventCount());
  result.end = engine.Now().GetTimeStep();
  return result;
}

using Runner = std::function<void(ParallelSimulatorImpl&, TokenRing&)>;

Result simulate(const ProcessGroup& group, const Runner& run) {
  const auto engine = use_parallel_simulator(group);
  TokenRing ring(nodes, link_delay, *engine);
  engine->attach(&ring);
  start(ring);
  run(*engine, ring);
  const Result result = finish(*engine, ring);
  Simulator::Destroy();
  return result;
}

ProcessGroup world() { return ProcessGroup(MPI_COMM_WORLD); }

void run_to_the_end(ParallelSimulatorImpl& engine, TokenRing&) {
  Simulator::Run();
  EXPECT_FALSE(engine.stopped());
}

TEST(EngineEpochs, ResultsDoNotDependOnTheNumberOfProcesses) {
  const Result one = simulate(ProcessGroup::alone(), run_to_the_end);
  const Result all = simulate(world(), run_to_the_end);
  EXPECT_EQ(all.state, one.state);
  EXPECT_EQ(all.arrivals, one.arrivals);
  EXPECT_EQ(all.events, one.events);
  EXPECT_EQ(all.end, one.end);
  EXPECT_GT(one.arrivals, nodes * 100U);  // 100 hops of each first token, and what the events add
  EXPECT_GT(one.events, nodes * 4U);
}

TEST(EngineEpochs, AReplicatedStopIsExactAndTheRunContinues) {
  // In the middle of an epoch, and at a time at which tokens arrive.
  for (const std::int64_t at : {7 * link_delay + 3, 8 * link_delay}) {
    Result stopped[2];
    Result ended[2];
    for (const int spread : {0, 1}) {
      const auto stop_and_go_on = [&stopped, spread, at](ParallelSimulatorImpl& engine, TokenRing& ring) {
        Simulator::Stop(ns3::Time(at));
        Simulator::Run();
        EXPECT_TRUE(engine.stopped());
        EXPECT_EQ(Simulator::Now().GetTimeStep(), at);
        stopped[spread] = finish(engine, ring);
        stopped[spread].events = 0;  // every process counts its own stop event
        Simulator::Run();
      };
      ended[spread] = simulate(spread == 0 ? ProcessGroup::alone() : world(), stop_and_go_on);
      ended[spread].events = 0;
    }
    EXPECT_EQ(stopped[0], stopped[1]);
    EXPECT_EQ(ended[0], ended[1]);
    Result uninterrupted = simulate(world(), run_to_the_end);
    uninterrupted.events = 0;
    EXPECT_EQ(ended[1], uninterrupted);
  }
}

TEST(EngineEpochs, WhatOneProcessSeesStopsAll) {
  simulate(world(), [](ParallelSimulatorImpl& engine, TokenRing&) {
    const ProcessGroup& group = engine.process_group();
    int looks = 0;
    engine.set_between_epochs([&looks, &group](Time) {
      const bool mine = ++looks == 6 && group.rank() == group.size() - 1;
      return mine ? ParallelSimulatorImpl::Look::stop : ParallelSimulatorImpl::Look::go_on;
    });
    Simulator::Run();
    EXPECT_TRUE(engine.stopped());
    EXPECT_EQ(looks, 6);
    EXPECT_EQ(engine.epochs(), 5U);
  });
}

TEST(EngineEpochs, WhatOneProcessWantsToPauseForPausesAll) {
  simulate(world(), [](ParallelSimulatorImpl& engine, TokenRing& ring) {
    const ProcessGroup& group = engine.process_group();
    int looks = 0;
    std::vector<Time> pauses;
    engine.set_between_epochs([&looks, &group](Time) {
      const bool mine = ++looks % 3 == 0 && group.rank() == looks % group.size();
      return mine ? ParallelSimulatorImpl::Look::pause : ParallelSimulatorImpl::Look::go_on;
    });
    engine.set_on_pause([&](Time now) {
      // All are here, and nothing before `now` is left anywhere.
      EXPECT_EQ(group.maximum(now.ps()), now.ps());
      EXPECT_EQ(group.minimum(now.ps()), now.ps());
      EXPECT_GE(ring.next_time(), now);
      pauses.push_back(now);
    });
    Simulator::Run();
    EXPECT_EQ(pauses.size(), static_cast<std::size_t>((looks - 1) / 3));  // the last look is at the end
    EXPECT_GT(pauses.size(), 1U);
    EXPECT_FALSE(engine.stopped());
  });
}

TEST(EngineEpochs, AStopOnOneProcessEndsAllWithoutLoss) {
  // Where the others stop depends on the epochs, but nothing is lost: after going on the end is the same.
  const Result whole = simulate(ProcessGroup::alone(), run_to_the_end);
  Result resumed = simulate(world(), [](ParallelSimulatorImpl& engine, TokenRing& ring) {
    if (ring.owns(nodes - 1)) Simulator::Stop(ns3::Time(5 * link_delay + 1));
    Simulator::Run();
    EXPECT_TRUE(engine.stopped());
    Simulator::Run();
    EXPECT_FALSE(engine.stopped());
  });
  EXPECT_EQ(resumed.events, whole.events + 1);
  resumed.events = whole.events;
  EXPECT_EQ(resumed, whole);
}

TEST(EngineEpochs, ProcessesWithoutADataPathAgreeOnTheEnd) {
  const auto engine = use_parallel_simulator(world());
  const int rank = engine->process_group().rank();
  int run = 0;
  for (int i = 0; i <= rank; ++i) Simulator::Schedule(ns3::Time(10 * (i + 1)), [&run] { ++run; });
  Simulator::Run();
  EXPECT_EQ(run, rank + 1);
  EXPECT_EQ(Simulator::Now().GetTimeStep(), 10 * engine->process_group().size());
  EXPECT_EQ(Simulator::GetSystemId(), static_cast<std::uint32_t>(rank));
  Simulator::Destroy();
}

}  // namespace
}  // namespace weft::engine_epochs_test
