// SPDX-License-Identifier: GPL-2.0-only
// Collectives on links that lose packets: credits are as reliable as data.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/runtime/job.hpp"

namespace weft::lost_credits_test {
namespace {

using test::control_packet;
using test::Job;
using test::ListWorkload;
using test::one_packet;

// Whatever is lost, data, ACK, NACK, credit or the acknowledgement of one, all iterations end.
void expect_completion(const std::string& network, const std::string& algorithm, std::uint32_t ranks) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(fmt::format("{}, {}, seed {}", network, algorithm, seed));
    Job job(ranks,
            fmt::format("{{kind: collective, collective: all_reduce, algorithm: {}, ranks: {}, size: 16 kB, "
                        "iterations: 20}}",
                        algorithm, ranks),
            test::network_of(network), {}, seed);
    job.complete();
  }
}

TEST(lost_credits, are_given_again_with_each_way_to_recover) {
  for (const std::string recovery : {"go_back_n", "selective_repeat"})
    for (const std::string algorithm : {"ring", "double_binary_tree"})
      expect_completion(
          fmt::format("{{recovery: {}, loss: [{{link: all, probability: 0.05}}], congestion_control: dcqcn}}",
                      recovery),
          algorithm, 4);
}

TEST(lost_credits, are_given_again_after_a_failure) {
  expect_completion("{failures: [{switch: switch0, at: 5 us, until: 300 us}], reconvergence: 10 us}", "ring", 4);
}

// The only credit of a pipe of one slice at a time is lost: the next slice leaves when the timer of the receiver has
// run out and the credit has travelled again. The slice of 1000 B is delivered at T = one_packet(1000). An ACK leaves
// at T, the credit behind it; both are still on the first of their two links of 1 us at T + 0.5 us. The timer of the
// slice ran out a flight earlier, so that at T + 10 ms it comes again, and its ACK of 86 B takes 86 * 80 ps before the
// credit.
TEST(lost_credits, come_when_the_timer_has_run_out) {
  const Communicator both(0, 2);
  const Time delivered = one_packet(1000);
  const auto network = test::network_of(
      fmt::format("{{recovery: selective_repeat, selective_repeat: {{timeout: 10 ms, timeout_low: 10 ms}}, failures: "
                  "[{{link: [host1, switch0], at: {} ps, until: {} ps}}], reconvergence: 1 s}}",
                  delivered.ps() + 500'000, delivered.ps() + 500'001));
  auto list = std::make_unique<ListWorkload>(2);
  CollectiveTuning tuning;
  tuning.credits = 1;
  tuning.chunk = Bytes(1000);
  list->define(both, CollectiveKind::broadcast, Bytes(2000), "chain", tuning);
  for (std::uint32_t rank = 0; rank < 2; ++rank) list->call(rank, 0);
  Job job(2, std::move(list), network);
  job.complete();
  ASSERT_EQ(job.messages().size(), 2U);
  EXPECT_EQ(job.messages()[0].delivered, delivered.ps());
  EXPECT_EQ(job.messages()[1].issued, (delivered + Time::from_ms(10) + Time::from_ps(86 * 80) + control_packet).ps());
}

// A network that loses nothing carries one packet for each credit: slices, their ACKs and credits.
TEST(lost_credits, cost_nothing_where_none_are_lost) {
  for (const auto& [network, packets] : {std::pair{"{buffer: {size: 1 MiB}}", 3}, std::pair{"{}", 3},
                                         std::pair{"{loss: [{link: all, probability: 1e-9}]}", 4}}) {
    Job job(2, "{kind: collective, collective: broadcast, algorithm: chain, ranks: 2, size: 1000 B}",
            test::network_of(network));
    job.complete();
    EXPECT_EQ(job.machine.counters(NodeId(0)).packets + job.machine.counters(NodeId(1)).packets,
              static_cast<std::uint64_t>(packets))
        << network;
  }
}

}  // namespace
}  // namespace weft::lost_credits_test
