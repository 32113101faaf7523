// SPDX-License-Identifier: GPL-2.0-only
// Links that lose packets and fail lose every kind of them: ACKs, congestion notifications, pauses, credits of links
// and reports of queues. No run waits for one that is lost.
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/runtime/job.hpp"

namespace weft::lost_control_packets_test {
namespace {

using test::Job;

constexpr const char* lossy = "loss: [{link: all, probability: 0.02}], ";
// A switch that is off for a while takes with it whatever is on its links.
constexpr const char* failing = "failures: [{switch: switch0, at: 20 us, until: 45 us}], reconvergence: 10 us, ";
constexpr const char* star_of_8 = "{kind: star, hosts: 8, link_rate: 100 Gb/s, link_delay: 1 us}";
constexpr const char* dragonfly =
    "{kind: dragonfly, p: 2, a: 2, h: 1, link_rate: 100 Gb/s, link_delay: 1 us}";  // 3 groups, 12 hosts
constexpr const char* timers = "{timeout: 100 us, timeout_low: 50 us}";

// Runs an incast and an all-to-all under 100 seeds, on links that lose packets and on those that fail. Everything must
// be delivered. Returns the numbers of packets that all runs lost and sent.
CongestionTotals totals_of(const std::string& machine, const std::string& network, std::uint32_t hosts) {
  CongestionTotals sum;
  for (const char* faults : {lossy, failing})
    for (const std::string pattern : {"incast", "all_to_all"})
      for (const std::string recovery : {"go_back_n", "selective_repeat"})
        for (std::uint64_t seed = 1; seed <= 25; ++seed) {
          const std::string text =
              fmt::format("{{{}{}, recovery: {}, {}: {}}}", faults, network, recovery, recovery, timers);
          SCOPED_TRACE(fmt::format("{}, {}, seed {}", pattern, text, seed));
          Job job(
              machine,
              test::read_workload(fmt::format("{{kind: traffic, pattern: {}, ranks: {}, size: 40 kB}}", pattern, hosts),
                                  test::context_of(hosts)),
              test::network_of(text), {}, seed);
          job.complete();
          const CongestionTotals totals = job.machine.fabric->results().congestion();
          sum.lost += totals.lost;
          sum.pauses += totals.pauses;
          sum.cnps += totals.cnps;
          sum.repeated += totals.repeated;
        }
  EXPECT_GT(sum.lost, 1000U);
  return sum;
}

TEST(lost_control_packets, ACKs_of_many_packets_at_once) {
  EXPECT_GT(totals_of(star_of_8, "ack_interval: 8", 8).repeated, 1000U);
}

TEST(lost_control_packets, congestion_notifications) {
  EXPECT_GT(totals_of(star_of_8, "congestion_control: dcqcn, ecn: {kmin: 8 KiB, kmax: 32 KiB, pmax: 1}", 8).cnps, 500U);
}

TEST(lost_control_packets, pauses) {
  EXPECT_GT(totals_of(star_of_8, "flow_control: pfc, buffer: {size: 512 KiB}", 8).pauses, 500U);
}

TEST(lost_control_packets, credits_of_links) {
  EXPECT_GT(totals_of(star_of_8, "flow_control: credit, credit: {buffer: 16 KiB}", 8).repeated, 100U);
}

TEST(lost_control_packets, reports_of_queues) {
  EXPECT_GT(totals_of(dragonfly, "routing: dragonfly_ugal_g, queue_reports: {}", 12).repeated, 100U);
}

}  // namespace
}  // namespace weft::lost_control_packets_test
