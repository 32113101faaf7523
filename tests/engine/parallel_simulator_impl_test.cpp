// SPDX-License-Identifier: GPL-2.0-only
// ns-3's scheduling semantics: every body runs under ns-3's default engine and under ours.
// Also in Release: threads and processes meet at another pace there, and the compiler orders more
#include "engine/parallel_simulator_impl.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <ns3/make-event.h>
#include <ns3/simulator.h>
#include <ns3/string.h>

#include "support/basics/error.hpp"
#include "tests/picoseconds.hpp"

namespace weft::parallel_simulator_impl_test {
namespace {

using ns3::Simulator;
using Log = std::vector<std::string>;

/// Picoseconds are the smallest step of all tests; ns-3 wants the resolution before the first time value is used.
struct PicosecondResolution {
  PicosecondResolution() { count_in_picoseconds(); }
} const picosecond_resolution;

/// Collects "name@time/context" lines of one simulation.
class Recorder {
 public:
  void operator()(const std::string& name) {
    lines_.push_back(
        fmt::format("{}@{}/{}", name, Simulator::Now().GetTimeStep(),
                    Simulator::GetContext() == Simulator::NO_CONTEXT ? -1 : static_cast<int>(Simulator::GetContext())));
  }
  void value(const std::string& name, std::int64_t number) { lines_.push_back(fmt::format("{}={}", name, number)); }
  const Log& lines() const { return lines_; }

 private:
  Log lines_;
};

using Body = std::function<void(Recorder&)>;

Log under_default(const Body& body) {
  use_default_simulator();
  Recorder recorder;
  body(recorder);
  Simulator::Destroy();
  return recorder.lines();
}

Log under_weft(const Body& body) {
  use_parallel_simulator();
  Recorder recorder;
  body(recorder);
  Simulator::Destroy();
  return recorder.lines();
}

/// Same lines under both engines; returns them.
Log under_both(const Body& body) {
  const Log reference = under_default(body);
  EXPECT_EQ(under_weft(body), reference);
  return reference;
}

ns3::Time ps(std::int64_t steps) { return ns3::Time(steps); }

TEST(ParallelSimulatorImpl, IsSelectedByItsTypeName) {
  const auto engine = use_parallel_simulator();
  EXPECT_EQ(Simulator::GetImplementation(), engine);
  EXPECT_EQ(engine->GetInstanceTypeId().GetName(), "weft::ParallelSimulatorImpl");
  EXPECT_EQ(Simulator::GetSystemId(), 0U);
  EXPECT_THROW(use_default_simulator(), InternalError);  // another engine is in use
  Simulator::Destroy();
  use_default_simulator();
  EXPECT_EQ(Simulator::GetImplementation()->GetInstanceTypeId().GetName(), "ns3::DefaultSimulatorImpl");
  EXPECT_THROW(use_parallel_simulator(), InternalError);
  Simulator::Destroy();
}

TEST(ParallelSimulatorImpl, RunsByTimeAndThenInOrderOfScheduling) {
  const Log log = under_both([](Recorder& record) {
    for (const std::int64_t time : {30, 10, 20, 10, 0, 30}) {
      for (int repeat = 0; repeat < 2; ++repeat) {
        Simulator::Schedule(ps(time), [&record, time, repeat] { record(fmt::format("{}.{}", time, repeat)); });
      }
    }
    Simulator::Run();
    record.value("events", static_cast<std::int64_t>(Simulator::GetEventCount()));
    record.value("now", Simulator::Now().GetTimeStep());
  });
  const Log expected{"0.0@0/-1",   "0.1@0/-1",   "10.0@10/-1", "10.1@10/-1", "10.0@10/-1", "10.1@10/-1", "20.0@20/-1",
                     "20.1@20/-1", "30.0@30/-1", "30.1@30/-1", "30.0@30/-1", "30.1@30/-1", "events=12",  "now=30"};
  EXPECT_EQ(log, expected);
}

TEST(ParallelSimulatorImpl, ContextsAreInheritedOrGiven) {
  const Log log = under_both([](Recorder& record) {
    Simulator::ScheduleWithContext(7, ps(5), [&record] {
      record("given");
      Simulator::Schedule(ps(1), [&record] { record("inherited"); });
      Simulator::ScheduleWithContext(8, ps(2), [&record] { record("relative to now"); });
      Simulator::ScheduleNow([&record] { record("now"); });
    });
    Simulator::Schedule(ps(5), [&record] { record("outside"); });
    Simulator::Run();
  });
  const Log expected{"given@5/7", "outside@5/-1", "now@5/7", "inherited@6/7", "relative to now@7/8"};
  EXPECT_EQ(log, expected);
}

TEST(ParallelSimulatorImpl, EventsAtTheSameTimeMayScheduleMoreAtThatTime) {
  const Log log = under_both([](Recorder& record) {
    std::function<void(int)> chain = [&](int left) {
      record(fmt::format("chain {}", left));
      if (left > 0) Simulator::ScheduleNow([&chain, left] { chain(left - 1); });
    };
    Simulator::Schedule(ps(4), [&chain] { chain(2); });
    Simulator::Schedule(ps(4), [&record] { record("second"); });
    Simulator::Schedule(ps(5), [&record] { record("later"); });
    Simulator::Run();
  });
  const Log expected{"chain 2@4/-1", "second@4/-1", "chain 1@4/-1", "chain 0@4/-1", "later@5/-1"};
  EXPECT_EQ(log, expected);
}

TEST(ParallelSimulatorImpl, CancelledEventsStayButDoNothing) {
  const Log log = under_both([](Recorder& record) {
    ns3::EventId id = Simulator::Schedule(ps(9), [&record] { record("never"); });
    Simulator::Schedule(ps(3), [&record, &id] {
      record.value("expired", id.IsExpired());
      record.value("left", Simulator::GetDelayLeft(id).GetTimeStep());
      Simulator::Cancel(id);
      record.value("expired", id.IsExpired());
      record.value("running", id.IsRunning());
      record.value("left", Simulator::GetDelayLeft(id).GetTimeStep());
      id.Cancel();  // twice does no harm
    });
    Simulator::Run();
    // The cancelled event still takes its place in time.
    record.value("now", Simulator::Now().GetTimeStep());
    record.value("events", static_cast<std::int64_t>(Simulator::GetEventCount()));
  });
  const Log expected{"expired=0", "left=6", "expired=1", "running=0", "left=0", "now=9", "events=2"};
  EXPECT_EQ(log, expected);
}

TEST(ParallelSimulatorImpl, RemovedEventsAreGone) {
  const Log log = under_both([](Recorder& record) {
    std::vector<ns3::EventId> ids;
    for (int i = 0; i < 5; ++i) ids.push_back(Simulator::Schedule(ps(9), [&record, i] { record(std::to_string(i)); }));
    ns3::EventId last = Simulator::Schedule(ps(20), [&record] { record("never"); });
    Simulator::Remove(ids[2]);
    record.value("expired", ids[2].IsExpired());
    Simulator::Remove(ids[2]);
    Simulator::Schedule(ps(1), [&ids, &last] {
      Simulator::Remove(ids[0]);
      last.Remove();
    });
    Simulator::Run();
    record.value("now", Simulator::Now().GetTimeStep());
    record.value("events", static_cast<std::int64_t>(Simulator::GetEventCount()));
  });
  const Log expected{"expired=1", "1@9/-1", "3@9/-1", "4@9/-1", "now=9", "events=4"};
  EXPECT_EQ(log, expected);
}

TEST(ParallelSimulatorImpl, AnEventExpiresWhenItStartsToRun) {
  const Log log = under_both([](Recorder& record) {
    std::vector<ns3::EventId> ids(3);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = Simulator::Schedule(ps(4), [&record, &ids] {
        for (const ns3::EventId& id : ids) record.value("expired", id.IsExpired());
      });
    }
    record.value("unset", ns3::EventId().IsExpired());
    Simulator::Run();
    // A slot used again by a later event does not revive the earlier one.
    const ns3::EventId later = Simulator::Schedule(ps(0), [] {});
    record.value("later", later.IsExpired());
    for (const ns3::EventId& id : ids) record.value("earlier", id.IsExpired());
  });
  const Log expected{"unset=1",   "expired=1", "expired=0", "expired=0", "expired=1", "expired=1", "expired=0",
                     "expired=1", "expired=1", "expired=1", "later=0",   "earlier=1", "earlier=1", "earlier=1"};
  EXPECT_EQ(log, expected);
}

TEST(ParallelSimulatorImpl, StopEndsAfterTheCurrentEventAndRunContinues) {
  const Log log = under_both([](Recorder& record) {
    Simulator::Schedule(ps(5), [&record] {
      record("stops");
      Simulator::Stop();
      record("still runs");
    });
    Simulator::Schedule(ps(5), [&record] { record("same time"); });
    Simulator::Schedule(ps(6), [&record] { record("later"); });
    Simulator::Stop();  // before a run it has no effect
    Simulator::Run();
    record.value("finished", Simulator::IsFinished());
    record.value("now", Simulator::Now().GetTimeStep());
    Simulator::Run();
    record.value("finished", Simulator::IsFinished());
  });
  const Log expected{"stops@5/-1",     "still runs@5/-1", "finished=1", "now=5",
                     "same time@5/-1", "later@6/-1",      "finished=1"};
  EXPECT_EQ(log, expected);
}

TEST(ParallelSimulatorImpl, StopAfterADelayIsAnEventLikeOthers) {
  const Log log = under_both([](Recorder& record) {
    Simulator::Schedule(ps(10), [&record] { record("before"); });
    Simulator::Stop(ps(10));
    Simulator::Schedule(ps(10), [&record] { record("after"); });
    std::function<void()> forever = [&forever] { Simulator::Schedule(ps(3), [&forever] { forever(); }); };
    forever();
    Simulator::Run();
    record.value("now", Simulator::Now().GetTimeStep());
    record.value("events", static_cast<std::int64_t>(Simulator::GetEventCount()));
  });
  const Log expected{"before@10/-1", "now=10", "events=5"};  // 3, 6, 9, "before" and Stop
  EXPECT_EQ(log, expected);
}

TEST(ParallelSimulatorImpl, DestroyEventsRunInOrderAtDestroy) {
  Log order;
  const auto body = [&order](Recorder& record) {
    order.clear();
    Simulator::ScheduleDestroy([&order] { order.emplace_back("first"); });
    ns3::EventId cancelled = Simulator::ScheduleDestroy([&order] { order.emplace_back("cancelled"); });
    ns3::EventId removed = Simulator::ScheduleDestroy([&order] { order.emplace_back("removed"); });
    Simulator::ScheduleDestroy([&order] {
      order.emplace_back("last");
      Simulator::ScheduleDestroy([&order] { order.emplace_back("added meanwhile"); });
    });
    Simulator::Schedule(ps(2), [&order] { order.emplace_back("run"); });
    record.value("cancelled expired", cancelled.IsExpired());
    Simulator::Cancel(cancelled);
    record.value("cancelled expired", cancelled.IsExpired());
    Simulator::Remove(removed);
    record.value("removed expired", removed.IsExpired());
    Simulator::Run();
  };
  const Log expected_order{"run", "first", "last", "added meanwhile"};
  const Log expected{"cancelled expired=0", "cancelled expired=1", "removed expired=1"};
  EXPECT_EQ(under_default(body), expected);
  EXPECT_EQ(order, expected_order);
  EXPECT_EQ(under_weft(body), expected);
  EXPECT_EQ(order, expected_order);
}

TEST(ParallelSimulatorImpl, ManyEventsOfOneContextKeepTheOrderOfTheDefaultEngine) {
  // A tree of events with many ties, cancellations and removals, all from one context at a time.
  const Log log = under_both([](Recorder& record) {
    std::vector<ns3::EventId> ids;
    std::uint64_t state = 1;
    const auto draw = [&state](std::uint64_t n) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      return static_cast<std::int64_t>((state >> 33) % n);
    };
    int budget = 3'000;
    std::function<void(int)> node = [&](int number) {
      record(std::to_string(number));
      for (std::int64_t child = draw(4); child > 0 && budget > 0; --child) {
        const int next = budget--;
        ids.push_back(Simulator::Schedule(ps(draw(3)), [&node, next] { node(next); }));
      }
      if (!ids.empty() && draw(5) == 0) {
        ns3::EventId victim = ids[static_cast<std::size_t>(draw(ids.size()))];
        record.value("expired", victim.IsExpired());
        draw(2) == 0 ? victim.Cancel() : victim.Remove();
      }
    };
    for (int root = 0; root < 50; ++root) Simulator::Schedule(ps(draw(5)), [&node, root] { node(-root); });
    Simulator::Run();
  });
  EXPECT_GT(log.size(), 1'000U);
}

TEST(ParallelSimulatorImpl, ManyEpochsWithoutADataPathLoseNothing) {
  const auto engine = use_parallel_simulator();
  std::uint64_t run = 0;
  constexpr std::uint64_t events = 100'000;
  for (std::uint64_t i = 0; i < events; ++i) {
    Simulator::Schedule(ps(static_cast<std::int64_t>(i / 3)), [&run] { ++run; });
  }
  Simulator::Run();
  EXPECT_EQ(run, events);
  EXPECT_GT(engine->epochs(), 1U);
  EXPECT_FALSE(engine->stopped());
  EXPECT_EQ(engine->wait_seconds(), 0);
  Simulator::Destroy();
}

TEST(ParallelSimulatorImpl, TheLookBetweenEpochsCanStopTheRun) {
  const auto engine = use_parallel_simulator();
  std::function<void()> forever = [&forever] { Simulator::Schedule(ps(1), [&forever] { forever(); }); };
  forever();
  int looks = 0;
  Time last;
  engine->set_between_epochs([&looks, &last](Time now) {
    EXPECT_GE(now, last);
    last = now;
    return ++looks == 5 ? ParallelSimulatorImpl::Look::stop : ParallelSimulatorImpl::Look::go_on;
  });
  Simulator::Run();
  EXPECT_EQ(looks, 5);
  EXPECT_EQ(engine->epochs(), 4U);
  EXPECT_TRUE(engine->stopped());
  EXPECT_TRUE(Simulator::IsFinished());
  Simulator::Destroy();
}

/// Order of the events that tie at 20: each context schedules two of them at 10; `insertion` is the order in which the
/// contexts do so.
Log order_of_ties(const std::vector<std::uint32_t>& insertion) {
  use_parallel_simulator();
  Log order;
  for (const std::uint32_t context : insertion) {
    Simulator::ScheduleWithContext(context, ps(10), [&order, context] {
      for (int i = 0; i < 2; ++i) {
        Simulator::Schedule(ps(10), [&order, context, i] { order.push_back(fmt::format("{}.{}", context, i)); });
      }
    });
  }
  Simulator::Run();
  Simulator::Destroy();
  return order;
}

TEST(ParallelSimulatorImpl, TiesBetweenContextsDoNotDependOnInsertion) {
  std::vector<std::uint32_t> contexts{1, 2, 3};
  const Log expected{"1.0", "1.1", "2.0", "2.1", "3.0", "3.1"};
  do {
    EXPECT_EQ(order_of_ties(contexts), expected);
  } while (std::next_permutation(contexts.begin(), contexts.end()));
}

TEST(ParallelSimulatorImpl, EventsScheduledEarlierRunEarlierAmongTies) {
  use_parallel_simulator();
  Log order;
  // Context 9 schedules at 1, context 2 at 5, both for 20; and outside of events, at 0.
  Simulator::ScheduleWithContext(2, ps(5),
                                 [&order] { Simulator::Schedule(ps(15), [&order] { order.emplace_back("at 5"); }); });
  Simulator::ScheduleWithContext(9, ps(1),
                                 [&order] { Simulator::Schedule(ps(19), [&order] { order.emplace_back("at 1"); }); });
  Simulator::Schedule(ps(20), [&order] { order.emplace_back("at 0"); });
  Simulator::Run();
  Simulator::Destroy();
  EXPECT_EQ(order, (Log{"at 0", "at 1", "at 5"}));
}

TEST(ParallelSimulatorImpl, RefusesWhatWouldBreakTheClock) {
  use_parallel_simulator();
  const auto schedule = [](std::int64_t delay) {
    Simulator::Schedule(ps(delay), ns3::Ptr<ns3::EventImpl>(ns3::MakeEvent([] {}), false));
  };
  EXPECT_THROW(schedule(-1), InternalError);
  EXPECT_THROW(schedule(INT64_MAX), InternalError);
  EXPECT_NO_THROW(schedule(Simulator::GetMaximumSimulationTime().GetTimeStep()));
  Simulator::Destroy();
}

}  // namespace
}  // namespace weft::parallel_simulator_impl_test
