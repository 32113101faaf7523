// SPDX-License-Identifier: GPL-2.0-only
// Go-back-N where the network keeps step with the sender: no run repeats the same packets for ever.
#include <cstdint>

#include <gtest/gtest.h>

#include "tests/runtime/job.hpp"

namespace weft::go_back_n_test {
namespace {

using test::Job;

// From 400 to 100 Gb/s: of four packets one finds room in the full queue, always the same of each four. The one that is
// missing is none of them, until the sender has waited for its timer and the queue is empty. Then at least as many pass
// as an empty queue of alpha / (1 + alpha) of 300 kB takes (Choudhury and Hahne 1998, equation 4): 7 whole frames of
// 4178 B. So 245 packets are there after 35 timeouts at most, each 320 us after the last of 9 bursts in vain, which
// takes 256 KiB at 100 Gb/s = 21 us or less.
TEST(go_back_n, a_queue_in_step_with_the_sender_lets_it_through_in_the_end) {
  Job job("{kind: line, links: 2, link_rate: [400 Gb/s, 100 Gb/s], link_delay: 500 ns}",
          test::read_workload("{kind: traffic, pattern: pairs, pairs: [[0, 1]], size: 1 MB}", test::context_of(2)),
          test::network_of("{buffer: {size: 300 kB}}"));
  job.complete();
  const CongestionTotals totals = job.machine.fabric->results().congestion();
  EXPECT_GT(totals.timeouts, 0U);
  EXPECT_LE(totals.timeouts, 35U);
  ASSERT_EQ(job.messages().size(), 1U);
  EXPECT_LT(job.messages()[0].delivered, 35 * (Time::from_us(320) + 9 * Time::from_us(21)).ps());
}

// Two senders, a slow link in the middle and small packets.
TEST(go_back_n, two_senders_over_a_slow_link_get_through) {
  Job job(
      "{kind: graph, hosts: 3, switches: 3, links: [{from: host0, to: switch0, rate: 25 Gb/s, delay: 1 ps}, "
      "{from: host1, to: switch1, rate: 25 Gb/s, delay: 1 ps}, {from: host2, to: switch2, rate: 25 Gb/s, delay: 1 ps}, "
      "{from: switch0, to: switch1, rate: 8 Gb/s, delay: 50007 ps}, {from: switch1, to: switch2, rate: 8 Gb/s, delay: "
      "50007 ps}]}",
      test::read_workload("{kind: program, ranks: 3, operations: [{rank: 1, send: 17 KiB, to: 2}, {rank: 2, recv: 17 "
                          "KiB, from: 1}, {rank: 0, send: 96555 B, to: 2}, {rank: 2, recv: 96555 B, from: 0}]}",
                          test::context_of(3)),
      test::network_of("{mtu: 258 B, header: 1 B, buffer: {size: 97 KiB}}"));
  job.complete();
}

}  // namespace
}  // namespace weft::go_back_n_test
