// SPDX-License-Identifier: GPL-2.0-only
// Exchange and reductions, for any number of MPI ranks (one without mpirun).
// MPI ranks: 1 3
// Also in Release: threads and processes meet at another pace there, and the compiler orders more
#include "engine/process_group.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/mpi_session.hpp"
#include "support/basics/error.hpp"

namespace weft::process_group_test {
namespace {

ProcessGroup world(std::size_t largest_message = std::size_t{1} << 30) {
  return ProcessGroup(MPI_COMM_WORLD, largest_message);
}

std::vector<int> all_others(const ProcessGroup& group) {
  std::vector<int> others;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (rank != group.rank()) others.push_back(rank);
  }
  return others;
}

/// The message from `from` to `to` in `round`: its length and content are functions of the three.
std::vector<std::byte> batch(int from, int to, int round, std::size_t unit) {
  const std::size_t size = static_cast<std::size_t>((3 * from + 5 * to + round) % 4) * unit;  // also empty ones
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(i + static_cast<std::size_t>(31 * from + 7 * to + round));
  }
  return bytes;
}

void exchange_rounds(ProcessGroup group, std::size_t unit, int rounds) {
  const std::vector<int> neighbours = all_others(group);
  std::vector<std::vector<std::byte>> outgoing(neighbours.size());
  std::vector<std::vector<std::byte>> incoming(neighbours.size(), std::vector<std::byte>(17));
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < neighbours.size(); ++i) {
      outgoing[i] = batch(group.rank(), neighbours[i], round, unit);
    }
    group.exchange(neighbours, outgoing, incoming);
    for (std::size_t i = 0; i < neighbours.size(); ++i) {
      EXPECT_EQ(incoming[i], batch(neighbours[i], group.rank(), round, unit)) << "round " << round;
    }
  }
}

TEST(ProcessGroup, AloneNeedsNoMpi) {
  ProcessGroup group = ProcessGroup::alone();
  EXPECT_EQ(group.rank(), 0);
  EXPECT_EQ(group.size(), 1);
  EXPECT_EQ(group.sum(5), 5U);
  EXPECT_EQ(group.maximum(-5), -5);
  EXPECT_EQ(group.minimum(7), 7);
  group.exchange({}, {}, {});
}

TEST(ProcessGroup, Reductions) {
  const ProcessGroup group = world();
  const std::uint64_t size = static_cast<std::uint64_t>(group.size());
  EXPECT_EQ(group.sum(static_cast<std::uint64_t>(group.rank())), size * (size - 1) / 2);
  EXPECT_EQ(group.sum(UINT64_MAX), 0 - size);  // modulo 2^64
  EXPECT_EQ(group.maximum(-group.rank()), 0);
  EXPECT_EQ(group.minimum(-group.rank()), 1 - group.size());
}

// No process leaves before the last one has arrived, by the common clock of all processes of a host, and waiting takes
// almost no processor time.
TEST(ProcessGroup, RestsUntilAllHaveCome) {
  const ProcessGroup group = world();
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
  constexpr std::chrono::milliseconds late(200);
  const bool last = group.rank() == group.size() - 1;
  group.minimum(0);
  if (last) std::this_thread::sleep_for(late);
  const auto came = now();
  const std::clock_t used = std::clock();
  group.sleep_until_all_arrive();
  const double seconds = static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC;
  EXPECT_LE(group.maximum(came), group.minimum(now()));
  if (!last) {
    EXPECT_LT(seconds, std::chrono::duration<double>(late).count() / 2);
  }
}

TEST(ProcessGroup, ExchangesBatchesOfAllSizes) { exchange_rounds(world(), 1'000, 20); }

TEST(ProcessGroup, SplitsBatchesAboveTheLargestMessage) {
  constexpr std::size_t largest = 64;
  exchange_rounds(world(largest), largest, 8);      // exact multiples, and nothing
  exchange_rounds(world(largest), largest - 1, 8);  // just below them
  exchange_rounds(world(largest), largest + 1, 8);  // just above them
}

TEST(ProcessGroup, BatchesMayBeLarge) { exchange_rounds(world(), 3'000'000, 2); }

TEST(ProcessGroup, RefusesItselfAsNeighbour) {
  ProcessGroup group = world();
  const std::vector<int> neighbours{group.rank()};
  std::vector<std::vector<std::byte>> batches(1);
  EXPECT_THROW(group.exchange(neighbours, batches, batches), InternalError);
  std::vector<std::vector<std::byte>> two(2);
  EXPECT_THROW(group.exchange(neighbours, two, batches), InternalError);
}

TEST(MpiSession, KnowsWhenRanksShareCores) {
  EXPECT_FALSE(shares_cores(1));
  EXPECT_TRUE(shares_cores(1 << 20) || std::getenv("OMPI_MCA_orte_bound_at_launch") != nullptr);
}

}  // namespace
}  // namespace weft::process_group_test
