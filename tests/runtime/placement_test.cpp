// SPDX-License-Identifier: GPL-2.0-only
// Ranks on other hosts than those of their numbers, and several on one host.
#include <gtest/gtest.h>

#include "tests/runtime/job.hpp"

namespace weft::test::placement_test {
namespace {

/// Sends, receives and collectives of four ranks, all of which talk to all.
std::unique_ptr<ListWorkload> busy_ranks(const Communicator& all) {
  auto workload = std::make_unique<ListWorkload>(4);
  const std::uint32_t sum = workload->define(all, CollectiveKind::all_reduce, Bytes(400'000));
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const auto sent = workload->send(rank, (rank + 1) % 4, 30'000 + 1000 * rank, 7);
    const auto got = workload->recv(rank, (rank + 3) % 4, 30'000 + 1000 * ((rank + 3) % 4), 7);
    workload->call(rank, sum, {sent, got});
  }
  return workload;
}

// Hosts of a star are equal: all events have the same times for any placement of the ranks. (Packets that come at the
// same time are served in an order that depends on ports; a ring has none.)
TEST(PlacementRun, HostsOfAStarAreAlike) {
  const Communicator all(0, 4);
  Job packed(6, busy_ranks(all));
  Job placed(6, busy_ranks(all), {}, Placement::listed({5, 0, 3, 2}));
  packed.complete();
  placed.complete();
  ASSERT_EQ(packed.messages().size(), placed.messages().size());
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    for (std::uint64_t id = 0; id < 3; ++id) EXPECT_EQ(packed.end(rank, id), placed.end(rank, id)) << rank << " " << id;
}

TEST(PlacementRun, TablesNameRanksAndHosts) {
  auto workload = std::make_unique<ListWorkload>(2);
  workload->send(0, 1, 1000);
  workload->recv(1, 0, 1000);
  Job job(6, std::move(workload), {}, Placement::listed({5, 2}));
  job.complete();
  ASSERT_EQ(job.messages().size(), 1U);
  EXPECT_EQ(job.messages()[0].source, 0U);  // ranks
  EXPECT_EQ(job.messages()[0].destination, 1U);
  EXPECT_EQ(job.messages()[0].id, std::uint64_t{5} << 32);  // the first message of host 5
  EXPECT_EQ(job.rank(0).node, 5U);
  EXPECT_EQ(job.rank(1).node, 2U);
  EXPECT_EQ(job.operation(1, 0).rank, 1U);
}

// Ranks 0 and 1 on hosts 0 and 1, ranks 2 and 3 on the same. Each pair sends once, at the same time; the port of host 0
// serves its queue pairs in turn. 100 Gb/s are 80 ps per byte, a frame has 82 B more (tests/runtime/job.hpp).
TEST(PlacementRun, RanksOfOneHostShareItsPort) {
  const auto pairs = [](std::uint32_t count) {
    auto workload = std::make_unique<ListWorkload>(2 * count);
    for (std::uint32_t pair = 0; pair < count; ++pair) {
      workload->send(2 * pair, 2 * pair + 1, 8192, 3);
      workload->recv(2 * pair + 1, 2 * pair, 8192, 3);
      workload->compute(2 * pair, Time::from_us(pair + 1));
    }
    return workload;
  };
  Job alone(2, pairs(1));
  Job both(2, pairs(2), {}, Placement::listed({0, 1, 0, 1}));
  alone.complete();
  both.complete();
  const Time frame = Time::from_ps(80 * (4096 + 82));
  // Packets take turns: a b a b. The first flow ends one frame later than alone, the second two.
  EXPECT_EQ(both.end(1, 0), alone.end(1, 0) + frame);
  EXPECT_EQ(both.end(3, 0), alone.end(1, 0) + frame * 2);
  // But they compute on their own.
  EXPECT_EQ(both.end(0, 1), Time::from_us(1));
  EXPECT_EQ(both.end(2, 1), Time::from_us(2));
  EXPECT_EQ(both.rank(2).node, 0U);
}

TEST(PlacementRun, CollectivesOfRanksOnTheSameHosts) {
  const Communicator even(0, 3, 0, 2);
  const Communicator odd(0, 3, 1, 2);  // the same number: they never compete
  auto workload = std::make_unique<ListWorkload>(6);
  const std::uint32_t first = workload->define(even, CollectiveKind::all_reduce, Bytes(300'000));
  const std::uint32_t second = workload->define(odd, CollectiveKind::all_reduce, Bytes(150'000));
  for (std::uint32_t rank = 0; rank < 6; ++rank) workload->call(rank, rank % 2 == 0 ? first : second);
  Job job(3, std::move(workload), {}, Placement::listed({0, 0, 1, 1, 2, 2}));
  job.complete();
  // A ring of three sends 2 (n - 1) / n of the buffer from each rank.
  EXPECT_EQ(job.rank(0).bytes_sent, 400'000);
  EXPECT_EQ(job.rank(5).bytes_sent, 200'000);
}

}  // namespace
}  // namespace weft::test::placement_test
