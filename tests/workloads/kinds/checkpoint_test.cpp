// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `checkpoint`: times on an idle star in closed form, volumes, complaints.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "tests/runtime/job.hpp"

namespace weft::test::checkpoint_test {
namespace {

// The star of tests/runtime/job.hpp: 80 ps per byte, two links of 1 us, frames of 82 B beyond their payload, ACKs of 86
// B.
constexpr std::int64_t byte_ps = 80;
constexpr std::int64_t path_ps = 2'000'000;
constexpr std::int64_t frame_ps = (4096 + 82) * byte_ps;
constexpr std::int64_t word_ps = (64 + 82) * byte_ps;
constexpr std::int64_t ack_ps = 86 * byte_ps;

/// The last bit of `frames` full frames, sent back to back from 0 on, at the other end of two links.
constexpr std::int64_t arrival_ps(std::int64_t frames) { return (frames + 1) * frame_ps + path_ps; }
/// A word on two links.
constexpr std::int64_t answer_ps = 2 * word_ps + path_ps;

std::int64_t finished(Job& job, std::uint32_t rank) { return job.rank(rank).finished; }

// Without a device the word that all is stored follows the ACK of the last frame.
TEST(Checkpoint, WriteAtTheSpeedOfTheNetwork) {
  Job job(2, "{kind: checkpoint, ranks: 1, targets: 1, size: 64 KiB, piece: 16 KiB}");
  job.complete();
  EXPECT_EQ(finished(job, 0), arrival_ps(16) + ack_ps + answer_ps);
}

// A device that needs longer for a piece than the network works from the first piece's arrival on: P pieces of (latency
// + bytes / rate) each. 16 KiB at 8 Gb/s are 16.384 us, and 4 frames 1.34 us.
TEST(Checkpoint, WriteAtTheSpeedOfTheDevice) {
  Job job(
      2,
      "{kind: checkpoint, ranks: 1, targets: 1, size: 64 KiB, piece: 16 KiB, device_rate: 8 Gb/s, device_latency: 3 "
      "us}");
  job.complete();
  const std::int64_t service = 16384 * 1000 + 3'000'000;
  EXPECT_EQ(finished(job, 0), arrival_ps(4) + 4 * service + answer_ps);
  EXPECT_EQ(job.rank(1).compute, 4 * service);
}

// Two writers, and a device that serves their pieces in turn. Its first piece arrives between 4 and 8 frames after the
// start, as the switch alternates the frames of both; then it never waits. The first writer's last piece is the one
// before the last.
TEST(Checkpoint, OneTargetServesItsRanksInTurn) {
  Job job(3, "{kind: checkpoint, ranks: 2, targets: 1, size: 48 KiB, piece: 16 KiB, device_rate: 8 Gb/s}");
  job.complete();
  const std::int64_t service = 16384 * 1000;
  const std::int64_t last = finished(job, 1);
  EXPECT_GE(last, arrival_ps(4) + 6 * service + answer_ps);
  EXPECT_LE(last, arrival_ps(8) + 6 * service + answer_ps);
  EXPECT_EQ(finished(job, 0), last - service);
}

// Two targets have one writer each, which do not compete: both as alone.
TEST(Checkpoint, ShardsGoRoundTheTargets) {
  Job job(4, "{kind: checkpoint, ranks: 2, targets: 2, size: 64 KiB, piece: 16 KiB}");
  job.complete();
  EXPECT_EQ(finished(job, 0), arrival_ps(16) + ack_ps + answer_ps);
  EXPECT_EQ(finished(job, 1), finished(job, 0));
  for (const MessageRecord& row : job.messages()) EXPECT_EQ(row.source % 2, row.destination % 2);
  Job odd(7, "{kind: checkpoint, ranks: 5, targets: 2, size: 1000 B}");
  odd.complete();
  EXPECT_EQ(odd.rank(5).bytes_received, 3 * 1000);  // ranks 0, 2, 4
  EXPECT_EQ(odd.rank(6).bytes_received, 2 * 1000);
}

// A request of one word; then the pieces. The device works on a piece while the one before travels.
TEST(Checkpoint, Read) {
  Job quick(2, "{kind: checkpoint, operation: read, ranks: 1, targets: 1, size: 64 KiB, piece: 16 KiB}");
  quick.complete();
  EXPECT_EQ(finished(quick, 0), answer_ps + ack_ps + arrival_ps(16));
  Job slow(
      2, "{kind: checkpoint, operation: read, ranks: 1, targets: 1, size: 64 KiB, piece: 16 KiB, device_rate: 8 Gb/s}");
  slow.complete();
  EXPECT_EQ(finished(slow, 0), answer_ps + 4 * 16384 * 1000 + arrival_ps(4));
}

// Rounds begin at multiples of the interval, or when the one before has ended.
TEST(Checkpoint, RoundsByTheClockOrOneAfterAnother) {
  const std::int64_t once = arrival_ps(4) + ack_ps + answer_ps;
  Job spread(2, "{kind: checkpoint, ranks: 1, targets: 1, size: 16 KiB, interval: 50 us, count: 3}");
  spread.complete();
  EXPECT_EQ(finished(spread, 0), 2 * 50'000'000 + once);
  Job dense(2, "{kind: checkpoint, ranks: 1, targets: 1, size: 16 KiB, count: 3}");
  dense.complete();
  // The next round's first frame waits for the ACK of the word, which has come at the same moment.
  EXPECT_EQ(finished(dense, 0), 3 * once + 2 * ack_ps);
  EXPECT_EQ(dense.rank(0).bytes_sent, 3 * 16384);
}

TEST(Checkpoint, EstimateIsWhatIsSent) {
  for (const std::string operation : {"write", "read"}) {
    Job job(9, "{kind: checkpoint, operation: " + operation +
                   ", ranks: 6, targets: 3, size: 70001 B, piece: 20 kB, count: 2, device_latency: 1 us}");
    job.complete();
    EXPECT_EQ(job.messages().size(), job.workload->estimate().messages);
    std::int64_t bytes = 0;
    for (const MessageRecord& row : job.messages()) bytes += row.bytes;
    EXPECT_EQ(bytes, job.workload->estimate().bytes.count());
    EXPECT_EQ(job.rank(6).compute, job.workload->estimate().compute.ps());
  }
}

// One operation after another, whatever the limit of reading ahead: sends before the recvs that wait for them.
TEST(Checkpoint, ProgramsAreReadPieceByPiece) {
  Job job(10, "{kind: checkpoint, ranks: 8, targets: 2, size: 2 MiB, piece: 16 KiB, count: 3, device_rate: 100 Gb/s}");
  for (const std::uint32_t rank : {0U, 9U}) {
    const auto program = job.workload->program(Rank(rank));
    EXPECT_LE(program->read_ahead(), 130U);
  }
  job.complete();
}

TEST(Checkpoint, Complaints) {
  const auto expect = [](const std::string& keys, const std::string& part) {
    expect_complaint("{kind: checkpoint, " + keys + "}", context_of(8), "x.yaml:1", {part});
  };
  expect("ranks: 4, size: 1 B", "targets");
  expect("ranks: 7, targets: 2, size: 1 B", "7 ranks and 2 storage targets, but the machine has 8 hosts");
  expect("ranks: 2, targets: 3, size: 1 B", "1 of them would have nothing to do");
  expect("targets: 1, size: 0 B", "found 0 B");
  expect("targets: 1, size: 1 B, piece: 0 B", "found 0 B");
  expect("targets: 1, size: 1 B, operation: load", "'load'");
  expect("targets: 1, size: 1 B, interval: 1000000 s, count: 1000000", "beyond the range of simulated time");
  expect("targets: 1, size: 1 B, intervall: 1 s", "did you mean 'interval'?");
}

TEST(Checkpoint, StorageHostsAreTheTargetsByDefault) {
  WorkloadContext context = context_of(6);  // of 8 hosts, two of which are storage
  context.storage = {6, 7};
  const auto workload = read_workload("{kind: checkpoint, size: 1 B}", context);
  EXPECT_EQ(workload->ranks(), 8U);
  EXPECT_EQ(workload->storage_ranks(), 2U);
  const auto small = read_workload("{kind: checkpoint, size: 1 B, ranks: 1}", context);
  EXPECT_EQ(small->ranks(), 2U);
  EXPECT_EQ(small->storage_ranks(), 1U);
  expect_complaint("{kind: checkpoint, size: 1 B, ranks: 7}", context, "x.yaml:1", {"7 ranks", "6 hosts"});
}

}  // namespace
}  // namespace weft::test::checkpoint_test
