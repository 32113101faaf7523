// SPDX-License-Identifier: GPL-2.0-only
// Every congestion control in one closed loop: 2 and 16 senders, started one after the other, reach fair shares of a
// full port.
#include <cstdio>
#include <map>

#include <gtest/gtest.h>

#include "tests/transport/bottleneck_loop.hpp"

namespace weft::congestion_loop_test {
namespace {

/// The time that an algorithm may take, and the capacity that it may leave unused.
struct Case {
  std::string parameters;
  std::int64_t gbps;
  std::int64_t mtu;
  std::int64_t until_ms;
  double min_throughput;
  double min_fairness;
  Bytes window = Bytes::max();
};

/// Throughputs: rates that probe leave the port idle for moments, HPCC aims at 95 %. Fairness by Jain's index; 0.99
/// means a coefficient of variation of the shares of 10 %. Two parameter sets are not the defaults, for reasons that
/// belong to the algorithms: TIMELY is patched, because any split is a fixed point of the original (Zhu et al., CoNEXT
/// 2016), and begins with a sixteenth of the line; the adapters' DCQCN needs what a lossless network has, a bound on
/// bytes in flight, because it recovers by its clock, marks or not.
const std::multimap<std::string, Case>& cases() {
  static const std::multimap<std::string, Case> all{
      {"dcqcn", {"", 40, 1000, 200, 0.98, 0.99}},
      {"dcqcn", {"preset: connectx", 100, 4096, 200, 0.98, 0.98, Bytes::kib(256)}},
      {"dctcp", {"", 100, 1000, 40, 0.999, 0.99}},
      {"hpcc", {"flows: 16", 100, 1000, 20, 0.95, 0.99}},
      {"nscc", {"", 100, 1000, 20, 0.999, 0.99}},
      {"swift", {"", 100, 4096, 40, 0.999, 0.99}},
      {"timely", {"{variant: patched, initial_rate: 625 Mb/s}", 10, 1000, 400, 0.98, 0.99}},
  };
  return all;
}

void run(const std::string& name, const Case& c, int senders) {
  BottleneckLoop::Settings settings;
  for (int i = 0; i < senders; ++i) settings.starts.push_back(Time::from_us(1 + 100 * i));
  settings.rate = Bandwidth::from_gbps(c.gbps);
  settings.mtu = Bytes(c.mtu);
  settings.window = c.window;
  settings.until = Time::from_ms(c.until_ms);
  settings.measure_from = Time::from_ms(c.until_ms / 2);
  BottleneckLoop loop(*congestion_control(name, c.parameters), settings);
  loop.run();
  std::printf("%-6s %2d senders at %3d Gb/s: throughput %.4f, fairness %.4f, mean queue %.0f B %s\n", name.c_str(),
              senders, static_cast<int>(c.gbps), loop.utilisation(), loop.fairness(), loop.mean_queue(),
              c.parameters.c_str());
  EXPECT_GE(loop.utilisation(), c.min_throughput) << name;
  EXPECT_LE(loop.utilisation(), 1.001) << name;
  EXPECT_GE(loop.fairness(), c.min_fairness) << name;
}

// Those whose receivers pull have separate tests: the loop has no receiver.
TEST(congestion_loop, every_algorithm_whose_sender_decides_has_a_case) {
  for (const std::string& name : CongestionControlRegistry::instance().names())
    EXPECT_EQ(cases().contains(name), name != "none" && !congestion_control(name)->services().pulls) << name;
}

TEST(congestion_loop, two_senders_share_fairly) {
  for (const auto& [name, c] : cases()) run(name, c, 2);
}

TEST(congestion_loop, sixteen_senders_share_fairly) {
  for (const auto& [name, c] : cases()) run(name, c, 16);
}

}  // namespace
}  // namespace weft::congestion_loop_test
