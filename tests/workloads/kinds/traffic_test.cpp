// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `traffic`: patterns, starting times, splitting over queue pairs, complaints.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/kinds/traffic_pattern.hpp"

namespace weft::test::traffic_test {
namespace {

using Flow = std::pair<std::uint32_t, std::uint32_t>;

/// (source, destination) of all messages.
std::vector<Flow> flows_of(const Workload& workload) {
  std::vector<Flow> flows;
  for (std::uint32_t rank = 0; rank < workload.ranks(); ++rank)
    for (const Operation& operation : operations_of(workload, rank)) {
      EXPECT_EQ(operation.kind, Operation::Kind::send);
      flows.emplace_back(rank, operation.peer.value());
    }
  return flows;
}

TEST(Permutation, IsABijectionWithoutFixedPoints) {
  for (const std::uint32_t ranks : {2U, 3U, 4U, 5U, 7U, 16U, 128U, 1000U, 16384U})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto order = random_derangement(ranks, seed);
      ASSERT_EQ(order.size(), ranks);
      EXPECT_EQ(std::set<std::uint32_t>(order.begin(), order.end()).size(), ranks);
      EXPECT_LT(*std::max_element(order.begin(), order.end()), ranks);
      for (std::uint32_t i = 0; i < ranks; ++i) EXPECT_NE(order[i], i);
      EXPECT_EQ(order, random_derangement(ranks, seed));
    }
  EXPECT_NE(random_derangement(16, 1), random_derangement(16, 2));
}

TEST(Permutation, AllDerangementsAreEquallyLikely) {
  // Four ranks have 9 derangements. With n draws each count has standard deviation sqrt(n p (1 - p)).
  const int draws = 9000;
  std::map<std::vector<std::uint32_t>, int> seen;
  for (int seed = 0; seed < draws; ++seed) ++seen[random_derangement(4, static_cast<std::uint64_t>(seed))];
  EXPECT_EQ(seen.size(), 9U);
  const double p = 1.0 / 9;
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, draws * p, 4 * std::sqrt(draws * p * (1 - p)));
}

TEST(Traffic, PermutationCoversAllHosts) {
  auto context = context_of(16);
  const std::string text = "{kind: traffic, pattern: permutation, size: 1 MiB}";
  const auto flows = flows_of(*read_workload(text, context));
  ASSERT_EQ(flows.size(), 16U);
  std::set<std::uint32_t> destinations;
  for (const auto& [source, destination] : flows) {
    EXPECT_NE(source, destination);
    destinations.insert(destination);
  }
  EXPECT_EQ(destinations.size(), 16U);
  context.seed = 2;
  EXPECT_NE(flows, flows_of(*read_workload(text, context)));
}

TEST(Traffic, ShiftAllToAllIncastPairs) {
  const auto context = context_of(4);
  EXPECT_EQ(flows_of(*read_workload("{kind: traffic, pattern: permutation, shift: 6, size: 1 B}", context)),
            (std::vector<Flow>{{0, 2}, {1, 3}, {2, 0}, {3, 1}}));
  EXPECT_EQ(flows_of(*read_workload("{kind: traffic, pattern: permutation, shift: -1, size: 1 B}", context)),
            (std::vector<Flow>{{0, 3}, {1, 0}, {2, 1}, {3, 2}}));
  EXPECT_EQ(flows_of(*read_workload("{kind: traffic, pattern: all_to_all, ranks: 3, size: 1 B}", context)),
            (std::vector<Flow>{{0, 1}, {0, 2}, {1, 2}, {1, 0}, {2, 0}, {2, 1}}));
  EXPECT_EQ(flows_of(*read_workload("{kind: traffic, pattern: incast, size: 1 B}", context)),
            (std::vector<Flow>{{1, 0}, {2, 0}, {3, 0}}));
  EXPECT_EQ(
      flows_of(*read_workload("{kind: traffic, pattern: incast, destination: 2, sources: 2, size: 1 B}", context)),
      (std::vector<Flow>{{0, 2}, {3, 2}}));
  EXPECT_EQ(flows_of(*read_workload(
                "{kind: traffic, pattern: pairs, pairs: [[3, 0], [0, 2], [3, 1], [3, 0]], size: 1 B}", context)),
            (std::vector<Flow>{{0, 2}, {3, 0}, {3, 1}, {3, 0}}));
}

// 16 ranks in groups of 4 that send to the next group: each of its ranks is as likely. Chi-square of three degrees of
// freedom: mean 3, variance 6.
TEST(Traffic, UniformDrawsADestinationAtEachStart) {
  const auto context = context_of(16);
  const std::string starts = ", size: 1 B, start: {process: periodic, interval: 1 us, count: 4000}}";
  for (const std::uint32_t shift : {0U, 1U}) {
    const auto workload =
        read_workload("{kind: traffic, pattern: uniform, group: 4, shift: " + std::to_string(shift) + starts, context);
    for (const std::uint32_t rank : {2U, 13U}) {
      std::map<std::uint32_t, double> times;
      for (const Operation& operation : operations_of(*workload, rank)) ++times[operation.peer.value()];
      EXPECT_EQ(times.count(rank), 0U);
      const double choices = shift == 0 ? 3 : 4;
      EXPECT_EQ(times.size(), choices);
      double sum = 0;
      for (const auto& [destination, count] : times) {
        EXPECT_EQ(destination / 4, (rank / 4 + shift) % 4);
        sum += (count - 4000 / choices) * (count - 4000 / choices) / (4000 / choices);
      }
      EXPECT_LT(sum, 3 + 5 * std::sqrt(6.0));
    }
  }
  std::set<std::uint32_t> all;
  const auto everyone = read_workload("{kind: traffic, pattern: uniform" + starts, context);
  for (const Operation& operation : operations_of(*everyone, 5)) all.insert(operation.peer.value());
  EXPECT_EQ(all.size(), 15U);
  const std::string pattern = "kind: traffic\npattern: uniform\nsize: 1 B\n";
  expect_complaint(pattern + "group: 3\n", context, "x.yaml:4", {"groups of 3 ranks do not fit 16"});
  expect_complaint(pattern + "group: 1\n", context, "x.yaml:4", {"itself"});
  expect_complaint(pattern + "shift: 1\n", context, "x.yaml:4", {"without 'group'"});
}

TEST(Traffic, BytesAreSplitOverQueuePairs) {
  const auto workload =
      read_workload("{kind: traffic, pattern: pairs, pairs: [[0, 1]], size: 1003 B, queue_pairs: 4}", context_of(2));
  const auto operations = operations_of(*workload, 0);
  ASSERT_EQ(operations.size(), 4U);
  std::int64_t total = 0;
  for (std::uint32_t q = 0; q < 4; ++q) {
    EXPECT_EQ(operations[q].queue_pair, q);
    EXPECT_EQ(operations[q].bytes.count(), 1003 / 4 + (q < 1003 % 4 ? 1 : 0));
    total += operations[q].bytes.count();
  }
  EXPECT_EQ(total, 1003);
  EXPECT_EQ(workload->estimate().messages, 4U);
  EXPECT_EQ(workload->estimate().bytes, Bytes(1003));
  EXPECT_TRUE(workload->program(Rank(1))->accepts_unexpected());
  EXPECT_TRUE(operations_of(*workload, 1).empty());
}

TEST(Traffic, EmptyFlowIsOneEmptyMessage) {
  const auto workload = read_workload("{kind: traffic, pattern: incast, size: 0 B, queue_pairs: 4}", context_of(3));
  const auto operations = operations_of(*workload, 1);
  ASSERT_EQ(operations.size(), 1U);
  EXPECT_EQ(operations[0].bytes, Bytes(0));
  EXPECT_EQ(workload->estimate().messages, 2U);
}

TEST(Traffic, ListOfStartsRepeatsEveryFlowInOrderOfTime) {
  const auto workload = read_workload(
      "{kind: traffic, pattern: all_to_all, ranks: 3, size: 1 B, start: [20 us, 0 ns, 10 us]}", context_of(4));
  const auto operations = operations_of(*workload, 0);
  ASSERT_EQ(operations.size(), 3U * 2U);
  for (std::size_t i = 0; i < operations.size(); ++i)
    EXPECT_EQ(operations[i].not_before, Time::from_us(10 * static_cast<std::int64_t>(i / 2)));
}

/// Wire bytes of one flow, by hand: payload, and 82 B for each packet of up to 4096 B.
std::int64_t wire_bytes(std::int64_t size) { return size + (size + 4095) / 4096 * 82; }

TEST(Traffic, PeriodicLoadIsAFractionOfThePort) {
  // Two flows per start: interval = 2 * wire * 8 / (rate * load).
  const auto workload = read_workload(
      "{kind: traffic, pattern: all_to_all, ranks: 3, size: 10000 B, start: {process: periodic, load: 0.5, count: 4}}",
      context_of(4));
  const auto interval = std::llround(2.0 * static_cast<double>(wire_bytes(10000)) * 8e12 / (400e9 * 0.5));
  const auto operations = operations_of(*workload, 2);
  ASSERT_EQ(operations.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_EQ(operations[i].not_before.ps(), static_cast<std::int64_t>(i / 2) * interval);
}

TEST(Traffic, PoissonGapsHaveTheMeanAndSpreadOfTheirLaw) {
  const int count = 20000;
  const auto workload = read_workload(
      "{kind: traffic, pattern: incast, size: 4096 B, start: {process: poisson, load: 0.8, count: 20000}}",
      context_of(3));
  const double mean = static_cast<double>(wire_bytes(4096)) * 8e12 / (400e9 * 0.8);
  std::vector<Operation> first;
  for (const std::uint32_t source : {1U, 2U}) {
    const auto operations = operations_of(*workload, source);
    ASSERT_EQ(operations.size(), static_cast<std::size_t>(count));
    double sum = 0, squares = 0;
    Time previous;
    for (const Operation& operation : operations) {
      const auto gap = static_cast<double>((operation.not_before - previous).ps());
      EXPECT_GE(gap, 0);
      sum += gap;
      squares += gap * gap;
      previous = operation.not_before;
    }
    // Of n exponential gaps the mean has standard error m / sqrt(n), and the mean square, 2 m^2, m^2 sqrt(20 / n).
    EXPECT_NEAR(sum / count, mean, 4 * mean / std::sqrt(count));
    EXPECT_NEAR(squares / count, 2 * mean * mean, 4 * mean * mean * std::sqrt(20.0 / count));
    if (!first.empty()) {
      EXPECT_NE(first[0].not_before, operations[0].not_before);
    }
    first = operations;
  }
}

TEST(Traffic, StopsAtATime) {
  const auto workload = read_workload(
      "{kind: traffic, pattern: incast, size: 1 B, start: {process: periodic, interval: 3 us, stop: 9 us}}",
      context_of(2));
  const auto operations = operations_of(*workload, 1);
  ASSERT_EQ(operations.size(), 3U);  // at 0, 3 and 6 us
  EXPECT_EQ(workload->estimate().messages, 3U);
}

TEST(Traffic, ConstantOnAndOffPeriods) {
  const auto workload = read_workload(
      "{kind: traffic, pattern: incast, size: 1 B, start: {process: on_off, on: 10 us, off: 20 us, law: constant, "
      "interval: 4 us, count: 7}}",
      context_of(4));
  for (const std::uint32_t source : {1U, 3U}) {
    std::vector<std::int64_t> us;
    for (const Operation& operation : operations_of(*workload, source))
      us.push_back(operation.not_before.ps() / 1000000);
    EXPECT_EQ(us, (std::vector<std::int64_t>{0, 4, 8, 30, 34, 38, 60}));
  }
}

/// On and off periods of a source, from its starts: gaps longer than the interval are off, and the rest of an interval.
struct Periods {
  double on_share = 0;  ///< starts times interval, over all time
  std::vector<double> off;
};
Periods periods_of(const Workload& workload, std::uint32_t sources, double interval, double end) {
  Periods periods;
  double starts = 0;
  for (std::uint32_t source = 1; source <= sources; ++source) {
    Time previous;
    for (const Operation& operation : operations_of(workload, source)) {
      const auto gap = static_cast<double>((operation.not_before - previous).ps());
      if (starts > 0 && gap > interval * 1.5) periods.off.push_back(gap);
      previous = operation.not_before;
      ++starts;
    }
  }
  periods.on_share = starts * interval / (end * sources);
  return periods;
}

// A source that is on for 1 ms and off for 3 ms on average is on a quarter of the time. Within T, alternating
// exponential periods of means a and b give that share a variance of 2 (a b)^2 / ((a + b)^3 T) (Cox, Renewal Theory,
// 1962, 7.3); an on period of length t has ceil(t / d) starts for t / d on average, which is d / 2 more: a share of d /
// (2 (a + b)).
TEST(Traffic, ExponentialOnAndOffPeriodsHaveTheirShare) {
  const auto workload = read_workload(
      "{kind: traffic, pattern: incast, size: 1 B, start: {process: on_off, on: 1 ms, off: 3 ms, interval: 10 us, "
      "stop: "
      "4 s}}",
      context_of(17));
  const double on = 1e9, off = 3e9, interval = 1e7, end = 4e12;
  const Periods periods = periods_of(*workload, 16, interval, end);
  const double bias = interval / 2 / (on + off);
  const double deviation = std::sqrt(2 * on * on * off * off / (std::pow(on + off, 3) * 16 * end));
  EXPECT_NEAR(periods.on_share, 0.25 + bias, 4 * deviation);
  // As many starts are expected as there are, but for that.
  EXPECT_NEAR(static_cast<double>(workload->estimate().messages), 0.25 * end / interval * 16, 16);
}

// Beyond x, Pareto's law with mean m and shape a leaves (x_m / x)^a of all periods, x_m = m (a - 1) / a.
TEST(Traffic, ParetoPeriodsHaveTheTailOfTheirLaw) {
  const auto workload = read_workload(
      "{kind: traffic, pattern: incast, size: 1 B, start: {process: on_off, on: 100 us, off: 900 us, interval: 10 us, "
      "law: "
      "pareto, shape: 1.5, stop: 10 s}}",
      context_of(3));
  const Periods periods = periods_of(*workload, 2, 1e7, 1e13);
  const auto count = static_cast<double>(periods.off.size());
  ASSERT_GT(count, 10000);
  for (const double x : {1e9, 3e9, 1e10}) {
    // A gap is an off period and up to an interval more, which moves the tail by a * interval / x of itself at most.
    const double tail = std::pow(3e8 / x, 1.5);
    const auto beyond =
        static_cast<double>(std::count_if(periods.off.begin(), periods.off.end(), [x](double gap) { return gap > x; }));
    EXPECT_GT(beyond / count, tail - 4 * std::sqrt(tail / count)) << x;
    EXPECT_LT(beyond / count, tail * (1 + 1.5 * 1e7 / x) + 4 * std::sqrt(tail / count)) << x;
  }
}

TEST(Traffic, OnlyBackgroundTrafficIsWithoutEnd) {
  const std::string text = "{kind: traffic, pattern: incast, size: 1 B, start: {process: periodic, interval: 3 us}}";
  expect_complaint(text, context_of(2), "x.yaml:1", {"neither 'count' nor 'stop'"});
  WorkloadContext endless = context_of(2);
  endless.endless = true;
  const auto workload = read_workload(text, endless);
  EXPECT_EQ(workload->estimate().messages, 0U);
  const auto program = workload->program(Rank(1));
  Operation operation;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(program->next(operation));
  EXPECT_EQ(operation.not_before, Time::from_us(2997));
  const auto start = [](const std::string& map) {
    return "{kind: traffic, pattern: incast, size: 1 B, start: {process: on_off, interval: 1 us, count: 1, " + map +
           "}}";
  };
  expect_complaint(start("on: 0 s, off: 1 us"), context_of(2), "x.yaml:1", {"found 0"});
  expect_complaint(start("on: 1 us"), context_of(2), "x.yaml:1", {"off"});
  expect_complaint(start("on: 1 us, off: 1 us, shape: 2"), context_of(2), "x.yaml:1", {"only 'law: pareto'"});
  expect_complaint(start("on: 1 us, off: 1 us, law: pareto, shape: 1"), context_of(2), "x.yaml:1", {"shape"});
}

// Of n draws below u, the count has standard deviation sqrt(n u (1 - u)); between two points the law is linear.
TEST(Traffic, SizesAreDrawnFromTheirDistribution) {
  const std::string start = ", start: {process: periodic, interval: 1 us, count: 20000}}";
  const auto workload = read_workload(
      "{kind: traffic, pattern: incast, sizes: [[0 B, 0], [10 kB, 50], [10 kB, 60], [30 kB, 100]]" + start,
      context_of(3));
  const double count = 20000;
  double sum = 0;
  std::map<std::string, double> seen;
  std::set<std::int64_t> other;
  for (const Operation& operation : operations_of(*workload, 1)) {
    const std::int64_t bytes = operation.bytes.count();
    EXPECT_GE(bytes, 1);
    EXPECT_LE(bytes, 30000);
    sum += static_cast<double>(bytes);
    if (bytes < 5000) ++seen["quarter"];
    if (bytes == 10000) ++seen["step"];
    if (bytes > 20000) ++seen["fifth"];
    other.insert(bytes);
  }
  for (const auto& [name, share] : std::map<std::string, double>{{"quarter", 0.25}, {"step", 0.1}, {"fifth", 0.2}})
    EXPECT_NEAR(seen[name], count * share, 4 * std::sqrt(count * share * (1 - share))) << name;
  // Mean 0.5 * 5 kB + 0.1 * 10 kB + 0.4 * 20 kB; mean square 0.5 * 10^2/3 + 0.1 * 10^2 + 0.4 * (10^2 + 300 + 30^2)/3.
  const double mean = 11500, square = 1e6 * (50.0 / 3 + 10 + 0.4 * 1300 / 3);
  EXPECT_NEAR(sum / count, mean, 4 * std::sqrt((square - mean * mean) / count));
  EXPECT_EQ(workload->estimate().bytes.count(), 2 * 20000 * 11500LL);
  EXPECT_NE(operations_of(*workload, 1)[0].bytes, operations_of(*workload, 2)[0].bytes);
  EXPECT_GT(other.size(), 5000U);
  // The mean of the points of web searches, by hand.
  const auto web = read_workload("{kind: traffic, pattern: incast, sizes: web_search" + start, context_of(2));
  EXPECT_NEAR(static_cast<double>(web->estimate().bytes.count()) / 20000, 1711250, 1);
}

// Flows of 0 to 8192 B, all as likely, in packets of up to 4096 B: one and a half on average, each with 82 B more.
TEST(Traffic, LoadCountsTheMeanOfADistribution) {
  const auto workload = read_workload(
      "{kind: traffic, pattern: incast, sizes: [[0 B, 0], [8192 B, 100]], start: {process: periodic, load: 0.5, count: "
      "3}}",
      context_of(2));
  const auto operations = operations_of(*workload, 1);
  ASSERT_EQ(operations.size(), 3U);
  EXPECT_EQ(operations[2].not_before.ps(), 2 * std::llround((4096 + 1.5 * 82) * 8e12 / (400e9 * 0.5)));
}

TEST(Traffic, FlowsMayHaveQueuePairsOfTheirOwn) {
  const auto workload = read_workload(
      "{kind: traffic, pattern: pairs, pairs: [[0, 1], [0, 1]], size: 10 B, queue_pairs: 2, reuse_queue_pairs: false, "
      "start: [0 us, 1 us]}",
      context_of(2));
  std::vector<std::uint32_t> numbers;
  for (const Operation& operation : operations_of(*workload, 0)) numbers.push_back(operation.queue_pair);
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

// Three of 16 ranks send to another one at each start, which is the same for all: every rank is as often the
// destination (chi-square of 15 degrees of freedom: mean 15, variance 30) and as often a source.
TEST(Traffic, RandomIncastsHaveCommonStarts) {
  const int starts = 8000;
  const auto workload = read_workload(
      "{kind: traffic, pattern: incast, destination: random, sources: 3, size: 4096 B, "
      "start: {process: poisson, load: 0.02, count: 8000}}",
      context_of(16));
  EXPECT_EQ(workload->estimate().messages, 3U * starts);
  std::map<Time, std::set<std::uint32_t>> sources, destinations;
  std::map<std::uint32_t, double> sent, received;
  for (std::uint32_t rank = 0; rank < 16; ++rank)
    for (const Operation& operation : operations_of(*workload, rank)) {
      EXPECT_NE(operation.peer.value(), rank);
      sources[operation.not_before].insert(rank);
      destinations[operation.not_before].insert(operation.peer.value());
      ++sent[rank];
    }
  ASSERT_EQ(sources.size(), static_cast<std::size_t>(starts));
  for (const auto& [time, ranks] : sources) EXPECT_EQ(ranks.size(), 3U);
  for (const auto& [time, ranks] : destinations) {
    ASSERT_EQ(ranks.size(), 1U);
    ++received[*ranks.begin()];
  }
  double sum = 0;
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    const double expected = starts / 16.0;
    sum += (received[rank] - expected) * (received[rank] - expected) / expected;
    const double share = 3.0 / 16;
    EXPECT_NEAR(sent[rank], starts * share, 4 * std::sqrt(starts * share * (1 - share)));
  }
  EXPECT_LT(sum, 15 + 5 * std::sqrt(30.0));
  // The load is that of all hosts together: 3 flows of 16 ports at each start.
  const double mean = 3.0 / 16 * static_cast<double>(wire_bytes(4096)) * 8e12 / (400e9 * 0.02);
  EXPECT_NEAR(static_cast<double>(sources.rbegin()->first.ps()) / starts, mean, 4 * mean / std::sqrt(starts));
}

TEST(Traffic, ComplaintsAboutSizes) {
  const auto context = context_of(4);
  const std::string start = "kind: traffic\npattern: permutation\n";
  expect_complaint(start + "sizes: web_serch\n", context, "x.yaml:3", {"did you mean 'web_search'"});
  expect_complaint(start + "size: 1 B\nsizes: hadoop\n", context, "x.yaml:4", {"both 'size' and 'sizes'"});
  expect_complaint(start + "sizes:\n- [0 B, 0]\n- [1 kB, 50]\n", context, "x.yaml:3", {"2 points", "50 %", "100 %"});
  expect_complaint(start + "sizes:\n- [0 B, 10]\n- [1 kB, 100]\n", context, "x.yaml:4", {"first point has 10 %"});
  expect_complaint(start + "sizes:\n- [1 kB, 0]\n- [1 B, 100]\n", context, "x.yaml:5", {"1 B follow 1000 B"});
  expect_complaint(start + "sizes:\n- [1 B, 0]\n- [2 B, 50]\n- [3 B, 40]\n", context, "x.yaml:6", {"40 % follow 50 %"});
  expect_complaint(start + "sizes:\n- [1 B, 0]\n- 3\n", context, "x.yaml:5", {"a point is"});
  expect_complaint(start + "sizes: []\n", context, "x.yaml:3", {"0 points"});
  const std::string path = testing::TempDir() + "/flow_sizes.txt";
  const auto expect_of_file = [&](const std::string& text, const std::string& line, const std::string& part) {
    std::ofstream(path) << text;
    expect_complaint(start + "sizes: " + path + "\n", context, path + line, {part});
  };
  expect_of_file("0 0\n\n10 x\n", ":3", "10000 15");
  expect_of_file("# a comment\n0 0\n10\n", ":3", "found '10'");
  expect_of_file("0 0\n10 50\n5 100\n", ":3", "5 B follow 10 B");
  expect_of_file("0 0\n10 50\n", ":2", "100 %");
}

TEST(Traffic, IntervalIsTaken) {
  const auto workload =
      read_workload("{kind: traffic, pattern: incast, size: 1 B, start: {process: periodic, interval: 3 us, count: 3}}",
                    context_of(2));
  const auto operations = operations_of(*workload, 1);
  ASSERT_EQ(operations.size(), 3U);
  EXPECT_EQ(operations[2].not_before, Time::from_us(6));
  EXPECT_EQ(workload->estimate().bytes, Bytes(3));
}

TEST(Traffic, Complaints) {
  const auto context = context_of(16);
  const std::string start = "kind: traffic\npattern: permutation\nsize: 1 B\n";
  expect_complaint(start + "ranks: 17\n", context, "x.yaml:4", {"17 ranks", "16 hosts"});
  expect_complaint(start + "ranks: 1\n", context, "x.yaml:2", {"at least 2 ranks"});
  expect_complaint(start + "shift: 32\n", context, "x.yaml:4", {"itself"});
  expect_complaint(start + "start: 5\n", context, "x.yaml:4", {"unit"});
  expect_complaint(start + "start: []\n", context, "x.yaml:4", {"at least one"});
  expect_complaint(start + "start: {process: posson, load: 1, count: 1}\n", context, "x.yaml:4",
                   {"did you mean 'poisson'"});
  expect_complaint(start + "start:\n  process: poisson\n  load: 0.5\n  interval: 1 us\n  count: 1\n", context,
                   "x.yaml:6", {"both"});
  expect_complaint(start + "start: {process: poisson, count: 1}\n", context, "x.yaml:4", {"neither"});
  expect_complaint(start + "start: {process: poisson, load: -1, count: 1}\n", context, "x.yaml:4", {"-1"});
  expect_complaint(start + "start: {process: poisson, load: 1}\n", context, "x.yaml:4", {"count"});
  expect_complaint(start + "start: {process: poisson, interval: 1 s, count: 100000000000}\n", context, "x.yaml:4",
                   {"range"});
  expect_complaint(start + "queue_pair: 2\n", context, "x.yaml:4", {"did you mean 'queue_pairs'"});
  expect_complaint(start + "destination: 2\n", context, "x.yaml:4", {"destination"});
  expect_complaint("kind: traffic\npattern: permuation\n", context, "x.yaml:2", {"did you mean 'permutation'"});
  const std::string incast = "kind: traffic\npattern: incast\nsize: 1 B\n";
  expect_complaint(incast + "destination: 16\n", context, "x.yaml:4", {"rank 16", "0 to 15"});
  expect_complaint(incast + "sources: 16\n", context, "x.yaml:4", {"16"});
  const std::string pairs = "kind: traffic\npattern: pairs\nsize: 1 B\npairs:\n- [0, 1]\n";
  expect_complaint(pairs + "- [0, 16]\n", context, "x.yaml:6", {"rank 16", "0 to 15"});
  expect_complaint(pairs + "- [-1, 1]\n", context, "x.yaml:6", {"rank -1"});
  expect_complaint(pairs + "- [3, 3]\n", context, "x.yaml:6", {"itself"});
  expect_complaint(pairs + "- [3]\n", context, "x.yaml:6", {"[source, destination]"});
  expect_complaint(pairs + "- 3\n", context, "x.yaml:6", {"[source, destination]"});
}

}  // namespace
}  // namespace weft::test::traffic_test
