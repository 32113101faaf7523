// SPDX-License-Identifier: GPL-2.0-only
// The meeting between windows, within one host and between hosts.
// MPI ranks: 1 2 3 5
#include "engine/window_exchange.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/error.hpp"

namespace weft::window_exchange_test {
namespace {

std::vector<int> all_others(const ProcessGroup& group) {
  std::vector<int> others;
  for (int rank = 0; rank < group.size(); ++rank)
    if (rank != group.rank()) others.push_back(rank);
  return others;
}

/// What `from` sends to `to` at a meeting: length and content are functions of the three; also nothing.
std::vector<std::byte> batch(int from, int to, int meeting, std::size_t unit) {
  std::vector<std::byte> bytes(static_cast<std::size_t>((3 * from + 5 * to + meeting) % 4) * unit);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i + static_cast<std::size_t>(31 * from + 7 * to + meeting));
  return bytes;
}

/// Meets many times; gives how many batches needed MPI messages.
std::uint64_t meet_often(const WindowExchange::Options& options, std::size_t unit, int meetings) {
  ProcessGroup group(MPI_COMM_WORLD);
  const std::vector<int> neighbours = all_others(group);
  std::vector<Batch> outgoing(neighbours.size());
  WindowExchange border(group, neighbours, options);
  for (int meeting = 0; meeting < meetings; ++meeting) {
    for (std::size_t i = 0; i < neighbours.size(); ++i) {
      // In pieces: what does not fit leaves the shared memory while the batch grows.
      const std::vector<std::byte> bytes = batch(group.rank(), neighbours[i], meeting, unit);
      for (std::size_t at = 0; at < bytes.size(); at += unit / 2)
        outgoing[i].append(bytes.data() + at, std::min(unit / 2, bytes.size() - at));
    }
    // Each vote is of one rank only, another one at each meeting.
    const bool mine = meeting % group.size() == group.rank();
    const WindowVote vote{mine ? Time::from_ps(meeting) : Time::from_ps(meeting + 1 + group.rank()),
                          mine && meeting % 7 == 0, mine && meeting % 5 == 0,
                          static_cast<std::uint64_t>(mine ? meeting + 100 : meeting)};
    std::vector<std::vector<std::byte>> incoming(neighbours.size());
    border.come(vote, outgoing);
    // The others may be at this meeting, or have come to the next one, while this process does something else.
    if (meeting % 3 == group.rank() % 3) std::this_thread::sleep_for(std::chrono::microseconds(200));
    const WindowVote all = border.meet(outgoing, [&incoming](std::size_t neighbour, std::span<const std::byte> bytes) {
      EXPECT_FALSE(bytes.empty());
      EXPECT_TRUE(incoming[neighbour].empty());
      incoming[neighbour].assign(bytes.begin(), bytes.end());
    });
    EXPECT_EQ(all.next, Time::from_ps(meeting));
    EXPECT_EQ(all.stop, meeting % 7 == 0);
    EXPECT_EQ(all.pause, meeting % 5 == 0);
    EXPECT_EQ(all.critical, static_cast<std::uint64_t>(meeting + 100));
    for (std::size_t i = 0; i < neighbours.size(); ++i) {
      EXPECT_EQ(incoming[i], batch(neighbours[i], group.rank(), meeting, unit)) << "meeting " << meeting;
      EXPECT_TRUE(outgoing[i].empty());
    }
  }
  const std::uint64_t batches = border.mpi_batches();
  // What follows is done together.
  border.come({Time(), /*stop=*/true, false, 0}, outgoing);
  border.meet(outgoing, [](std::size_t, std::span<const std::byte>) { FAIL() << "nothing was sent"; });
  // Who is the last at every meeting never waits; the others do.
  EXPECT_EQ(group.sum(border.wait_seconds() > 0 ? 1 : 0) > 0, group.size() > 1);
  return group.sum(batches);
}

constexpr std::size_t shared_bytes = std::size_t{8} << 20;

TEST(WindowExchange, WithinAHostBatchesThatFitNeedNoMessages) {
  for (const bool turns : {true, false}) EXPECT_EQ(meet_often({shared_bytes, 0, turns}, 500, 300), 0U);
}

TEST(WindowExchange, LargerBatchesOverflowIntoMessages) {
  // A slot has at least 4 KiB, so that all batches but the empty ones are too large for it.
  for (const bool turns : {true, false}) {
    const std::uint64_t messages = meet_often({1, 0, turns}, 5'000, 40);
    EXPECT_EQ(messages > 0, ProcessGroup(MPI_COMM_WORLD).size() > 1);
  }
}

TEST(WindowExchange, BatchesOfExactlyASlotFit) { EXPECT_EQ(meet_often({1, 0}, 4096 / 3, 40), 0U); }

TEST(WindowExchange, OneProcessPerHost) {
  const std::uint64_t messages = meet_often({shared_bytes, 1}, 500, 100);
  const auto size = static_cast<std::uint64_t>(ProcessGroup(MPI_COMM_WORLD).size());
  EXPECT_EQ(messages, size * (size - 1) * 100);
}

TEST(WindowExchange, SeveralHostsOfTwoProcesses) {
  meet_often({shared_bytes, 2}, 500, 300);
  meet_often({1, 2}, 9'000, 40);
}

TEST(WindowExchange, OnlyNeighboursExchange) {
  ProcessGroup group(MPI_COMM_WORLD);
  if (group.size() < 3) return;  // all are neighbours
  std::vector<int> neighbours;   // a line of processes
  if (group.rank() > 0) neighbours.push_back(group.rank() - 1);
  if (group.rank() + 1 < group.size()) neighbours.push_back(group.rank() + 1);
  std::vector<Batch> outgoing(neighbours.size());
  WindowExchange border(group, neighbours);
  for (int meeting = 0; meeting < 50; ++meeting) {
    for (Batch& one : outgoing) one.append(static_cast<std::uint64_t>(group.rank()));
    int taken = 0;
    border.come({}, outgoing);
    border.meet(outgoing, [&](std::size_t neighbour, std::span<const std::byte> bytes) {
      ++taken;
      EXPECT_EQ(bytes[0], static_cast<std::byte>(neighbours[neighbour]));
    });
    EXPECT_EQ(taken, static_cast<int>(neighbours.size()));
  }
}

TEST(WindowExchange, AnotherRunHasOtherBatches) {
  ProcessGroup group(MPI_COMM_WORLD);
  const std::vector<int> neighbours = all_others(group);
  WindowExchange border(group, neighbours);
  for (int run = 0; run < 3; ++run) {
    std::vector<Batch> outgoing(neighbours.size());
    for (int meeting = 0; meeting < 5; ++meeting) {
      const int number = 5 * run + meeting;
      for (Batch& one : outgoing) one.append(number);
      int taken = 0;
      border.come({}, outgoing);
      border.meet(outgoing, [&](std::size_t /*neighbour*/, std::span<const std::byte> bytes) {
        ++taken;
        std::size_t at = 0;
        EXPECT_EQ(take_record<int>(bytes, at), number);
        EXPECT_EQ(at, bytes.size());
      });
      EXPECT_EQ(taken, static_cast<int>(neighbours.size()));
    }
    border.end_loans();
    for (Batch& one : outgoing) one.append(run);  // in memory of its own
  }
}

TEST(WindowExchange, RefusesItselfAsNeighbour) {
  ProcessGroup group(MPI_COMM_WORLD);
  const std::vector<int> neighbours{group.rank()};
  EXPECT_THROW(WindowExchange(group, neighbours), InternalError);
}

}  // namespace
}  // namespace weft::window_exchange_test
