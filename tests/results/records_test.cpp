// SPDX-License-Identifier: GPL-2.0-only
// The values that records derive from their sums.
#include "results/tables/records.hpp"

#include <gtest/gtest.h>

namespace weft::records_test {
namespace {

// Nine ranks, each of which has computed, or has communicated, for all of the job's time. The difference of the means
// in floating point is -2.9e-11.
TEST(records, a_job_without_idle_time) {
  JobRecord job;
  job.ranks = 9;
  job.end = 500'017;
  job.compute = 5 * job.end;
  job.exposed = 4 * job.end;
  EXPECT_EQ(job.idle(), 0);
  job.exposed -= 9;
  EXPECT_EQ(job.idle(), 1);
}

}  // namespace
}  // namespace weft::records_test
