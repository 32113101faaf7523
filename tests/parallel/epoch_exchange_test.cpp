// SPDX-License-Identifier: GPL-2.0-only
// The barrier between epochs, within one host and between hosts.
// MPI ranks: 1 2 3 5
// Also in Release: threads and processes meet at another pace there, and the compiler orders more
#include "engine/epoch_exchange.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/error.hpp"

namespace weft::epoch_exchange_test {
namespace {

std::vector<int> all_others(const ProcessGroup& group) {
  std::vector<int> others;
  for (int rank = 0; rank < group.size(); ++rank)
    if (rank != group.rank()) others.push_back(rank);
  return others;
}

/// The batch from `from` to `to` at a barrier: length and content are functions of the three; it may be empty.
std::vector<std::byte> batch(int from, int to, int barrier, std::size_t unit) {
  std::vector<std::byte> bytes(static_cast<std::size_t>((3 * from + 5 * to + barrier) % 4) * unit);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i + static_cast<std::size_t>(31 * from + 7 * to + barrier));
  return bytes;
}

/// Passes many barriers; returns the number of batches that needed MPI messages.
std::uint64_t wait_often(const EpochExchange::Options& options, std::size_t unit, int barriers) {
  ProcessGroup group(MPI_COMM_WORLD);
  const std::vector<int> neighbours = all_others(group);
  std::vector<Batch> outgoing(neighbours.size());
  EpochExchange boundary(group, neighbours, options);
  for (int barrier = 0; barrier < barriers; ++barrier) {
    for (std::size_t i = 0; i < neighbours.size(); ++i) {
      // In pieces: a batch that does not fit leaves the shared memory while it grows.
      const std::vector<std::byte> bytes = batch(group.rank(), neighbours[i], barrier, unit);
      for (std::size_t at = 0; at < bytes.size(); at += unit / 2)
        outgoing[i].append(bytes.data() + at, std::min(unit / 2, bytes.size() - at));
    }
    // Each vote is of one rank only, another one at each barrier.
    const bool mine = barrier % group.size() == group.rank();
    const EpochVote vote{mine ? Time::from_ps(barrier) : Time::from_ps(barrier + 1 + group.rank()),
                         mine && barrier % 7 == 0, mine && barrier % 5 == 0,
                         static_cast<std::uint64_t>(mine ? barrier + 100 : barrier)};
    std::vector<std::vector<std::byte>> incoming(neighbours.size());
    boundary.arrive(vote, outgoing);
    // The others may be at this barrier, or have arrived at the next one, while this process does something else.
    if (barrier % 3 == group.rank() % 3) std::this_thread::sleep_for(std::chrono::microseconds(200));
    const EpochVote all = boundary.wait(outgoing, [&incoming](std::size_t neighbour, std::span<const std::byte> bytes) {
      EXPECT_FALSE(bytes.empty());
      EXPECT_TRUE(incoming[neighbour].empty());
      incoming[neighbour].assign(bytes.begin(), bytes.end());
    });
    EXPECT_EQ(all.next, Time::from_ps(barrier));
    EXPECT_EQ(all.stop, barrier % 7 == 0);
    EXPECT_EQ(all.pause, barrier % 5 == 0);
    EXPECT_EQ(all.critical, static_cast<std::uint64_t>(barrier + 100));
    for (std::size_t i = 0; i < neighbours.size(); ++i) {
      EXPECT_EQ(incoming[i], batch(neighbours[i], group.rank(), barrier, unit)) << "barrier " << barrier;
      EXPECT_TRUE(outgoing[i].empty());
    }
  }
  const std::uint64_t batches = boundary.mpi_batches();
  // The next exchange is done by all together.
  boundary.arrive({Time(), /*stop=*/true, false, 0}, outgoing);
  boundary.wait(outgoing, [](std::size_t, std::span<const std::byte>) { FAIL() << "nothing was sent"; });
  // A process that is the last at every barrier never waits; the others do.
  EXPECT_EQ(group.sum(boundary.wait_seconds() > 0 ? 1 : 0) > 0, group.size() > 1);
  return group.sum(batches);
}

constexpr std::size_t shared_bytes = std::size_t{8} << 20;

TEST(EpochExchange, WithinAHostBatchesThatFitNeedNoMessages) {
  for (const bool turns : {true, false}) EXPECT_EQ(wait_often({shared_bytes, 0, turns}, 500, 300), 0U);
}

TEST(EpochExchange, LargerBatchesOverflowIntoMessages) {
  // A slot has at least 4 KiB, so that all batches but the empty ones are too large for it.
  for (const bool turns : {true, false}) {
    const std::uint64_t messages = wait_often({1, 0, turns}, 5'000, 40);
    EXPECT_EQ(messages > 0, ProcessGroup(MPI_COMM_WORLD).size() > 1);
  }
}

TEST(EpochExchange, BatchesOfExactlyASlotFit) { EXPECT_EQ(wait_often({1, 0}, 4096 / 3, 40), 0U); }

TEST(EpochExchange, OneProcessPerHost) {
  const std::uint64_t messages = wait_often({shared_bytes, 1}, 500, 100);
  const auto size = static_cast<std::uint64_t>(ProcessGroup(MPI_COMM_WORLD).size());
  EXPECT_EQ(messages, size * (size - 1) * 100);
}

TEST(EpochExchange, SeveralHostsOfTwoProcesses) {
  wait_often({shared_bytes, 2}, 500, 300);
  wait_often({1, 2}, 9'000, 40);
}

TEST(EpochExchange, OnlyNeighboursExchange) {
  ProcessGroup group(MPI_COMM_WORLD);
  if (group.size() < 3) return;  // all are neighbours
  std::vector<int> neighbours;   // a line of processes
  if (group.rank() > 0) neighbours.push_back(group.rank() - 1);
  if (group.rank() + 1 < group.size()) neighbours.push_back(group.rank() + 1);
  std::vector<Batch> outgoing(neighbours.size());
  EpochExchange boundary(group, neighbours);
  for (int barrier = 0; barrier < 50; ++barrier) {
    for (Batch& one : outgoing) one.append(static_cast<std::uint64_t>(group.rank()));
    int taken = 0;
    boundary.arrive({}, outgoing);
    boundary.wait(outgoing, [&](std::size_t neighbour, std::span<const std::byte> bytes) {
      ++taken;
      EXPECT_EQ(bytes[0], static_cast<std::byte>(neighbours[neighbour]));
    });
    EXPECT_EQ(taken, static_cast<int>(neighbours.size()));
  }
}

TEST(EpochExchange, AnotherRunHasOtherBatches) {
  ProcessGroup group(MPI_COMM_WORLD);
  const std::vector<int> neighbours = all_others(group);
  EpochExchange boundary(group, neighbours);
  for (int run = 0; run < 3; ++run) {
    std::vector<Batch> outgoing(neighbours.size());
    for (int barrier = 0; barrier < 5; ++barrier) {
      const int number = 5 * run + barrier;
      for (Batch& one : outgoing) one.append(number);
      int taken = 0;
      boundary.arrive({}, outgoing);
      boundary.wait(outgoing, [&](std::size_t /*neighbour*/, std::span<const std::byte> bytes) {
        ++taken;
        std::size_t at = 0;
        EXPECT_EQ(take_record<int>(bytes, at), number);
        EXPECT_EQ(at, bytes.size());
      });
      EXPECT_EQ(taken, static_cast<int>(neighbours.size()));
    }
    boundary.end_loans();
    for (Batch& one : outgoing) one.append(run);  // in memory of its own
  }
}

TEST(EpochExchange, RefusesItselfAsNeighbour) {
  ProcessGroup group(MPI_COMM_WORLD);
  const std::vector<int> neighbours{group.rank()};
  EXPECT_THROW(EpochExchange(group, neighbours), InternalError);
}

}  // namespace
}  // namespace weft::epoch_exchange_test
