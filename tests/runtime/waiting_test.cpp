// SPDX-License-Identifier: GPL-2.0-only
// Descriptions of waits: ranks that wait for each other, and every kind of operation half-way.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/job.hpp"

namespace weft::waiting_test {
namespace {

using test::Job;
using test::us;
using Lines = std::vector<std::string>;

std::string program(int ranks, const std::string& operations) {
  return "kind: program\nranks: " + std::to_string(ranks) + "\noperations:\n" + operations;
}

TEST(deadlock, of_two_ranks_that_receive_before_they_send) {
  Job job(3, program(3,
                     "  - {rank: 0, id: get, recv: 1 kB, from: 1, tag: 7}\n"
                     "  - {rank: 1, id: get, recv: 2 kB, from: 0}\n"
                     "  - {rank: 0, id: put, send: 2 kB, to: 1, after: get}\n"
                     "  - {rank: 1, send: 1 kB, to: 0, tag: 7, after: get}\n"
                     "  - {rank: 2, compute: 1 us}\n"));
  EXPECT_TRUE(job.workload->from_user());
  job.run();
  EXPECT_EQ(job.runtime.unfinished(), 2U);
  EXPECT_EQ(job.runtime.waiting(9),
            (Lines{"rank 0: operation 0 'get' (line 4), recv of 1 kB from rank 1, tag 7: no such message has come",
                   "rank 0: operation 2 'put' (line 6), send of 2 kB to rank 1, tag 0: waits for 1 operation before it",
                   "rank 1: operation 1 'get' (line 5), recv of 2 kB from rank 0, tag 0: no such message has come",
                   "rank 1: operation 3 (line 7), send of 1 kB to rank 0, tag 7: waits for 1 operation before it"}));
  // The first lines if all would be too many.
  const Lines all = job.runtime.waiting(9);
  for (std::size_t max = 0; max < 4; ++max)
    EXPECT_EQ(job.runtime.waiting(max), Lines(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(max)));
}

TEST(deadlock, of_collectives_in_different_orders_on_one_stream) {
  Job job(2, program(2,
                     "  - {rank: 0, id: go, recv: 1 kB, from: 1, stream: communication}\n"
                     "  - {id: sum, collective: all_reduce, size: 1 kB}\n"
                     "  - {rank: 1, send: 1 kB, to: 0, after: sum}\n"));
  job.run();
  const Lines lines = job.runtime.waiting(9);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0], "rank 0: operation 0 'go' (line 4), recv of 1 kB from rank 1, tag 0: no such message has come");
  EXPECT_EQ(lines[1], "rank 0: operation 1 'sum' (line 5), all_reduce number 0: waits for its stream or communicator");
  EXPECT_EQ(lines[2],
            "rank 1: operation 1 'sum' (line 5), all_reduce number 0: channel 0, step 1 (recv_reduce_copy_send from "
            "rank 0 to rank 0) waits");
  EXPECT_EQ(lines[3], "rank 1: operation 2 (line 6), send of 1 kB to rank 0, tag 0: waits for 1 operation before it");
}

TEST(waiting, names_what_runs) {
  Job job(2, program(2,
                     "  - {rank: 0, compute: 2 ms, label: forward}\n"
                     "  - {rank: 0, compute: 1 ms}\n"
                     "  - {rank: 0, send: 1 MB, to: 1}\n"
                     "  - {rank: 1, recv: 1 MB, from: 0}\n"));
  job.run_until(us(1));
  EXPECT_EQ(job.runtime.waiting(9),
            (Lines{"rank 0: operation 0 'forward' (line 4), compute of 2 ms: has not completed",
                   "rank 0: operation 1 (line 5), compute of 1 ms: waits for its stream or communicator",
                   "rank 0: operation 2 (line 6), send of 1 MB to rank 1, tag 0: has not completed",
                   "rank 1: operation 3 (line 7), recv of 1 MB from rank 0, tag 0: no such message has come"}));
  job.complete();
}

TEST(waiting, is_nothing_when_all_is_done) {
  Job job(2, "{kind: collective, collective: all_reduce, size: 1 MB}");
  EXPECT_EQ(job.runtime.unfinished(), 2U);  // not begun
  job.complete();
  EXPECT_EQ(job.runtime.waiting(9), Lines());
}

TEST(waiting, a_collective_half_way_names_its_step) {
  Job job(3, "{kind: collective, collective: all_reduce, size: 3 kB}");
  job.run_until(us(1));
  // Every rank has sent its chunk to the next one and waits for that of the one before.
  EXPECT_EQ(job.runtime.waiting(1), (Lines{"rank 0: operation 0 'all_reduce 0' (line 1), all_reduce number 0: channel "
                                           "0, step 1 (recv_reduce_send from rank 2 to "
                                           "rank 1) waits"}));
}

}  // namespace
}  // namespace weft::waiting_test
