// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/books/rank_book.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

Time at(std::int64_t ps) { return Time::from_ps(ps); }

// The host launches from 0 to 30 and from 60 to 90. The device computes from 10 to 20 and waits for a message from 70
// to 100; it is paused from 110 to 120. So the host alone was busy for 10 + 10 ps until 30, and for 10 ps from 60 on;
// of the rest, nothing was running from 30 to 60 and from 100 to 130.
TEST(RankBook, CountsWhatWaitsForTheHost) {
  SortedRecords<RankSpan> undecided;
  RankBook book(0, NodeId(0), true, undecided);
  book.open(at(0));
  const auto begin = [&](std::int64_t ps, Worker worker) {
    book.account(at(ps));
    book.begin_compute(worker);
  };
  const auto end = [&](std::int64_t ps, Worker worker) {
    book.account(at(ps));
    book.end_compute(worker);
  };
  begin(0, Worker::host);
  begin(10, Worker::device);
  end(20, Worker::device);
  end(30, Worker::host);
  begin(60, Worker::host);
  book.account(at(70));
  book.begin_communication(Operation::Kind::recv, at(70));
  end(90, Worker::host);
  book.account(at(100));
  book.end_communication(Operation::Kind::recv, at(70), at(80));
  begin(110, Worker::nobody);
  end(120, Worker::nobody);
  const RankRecord record = book.record(at(130));
  EXPECT_EQ(record.host, 60);
  EXPECT_EQ(record.compute, 10);
  EXPECT_EQ(record.exposed, 30);
  EXPECT_EQ(record.idle, 130 - 10 - 30);
  EXPECT_EQ(record.parts[TimePart::host], 30);
  EXPECT_EQ(record.parts[TimePart::idle], 60);
  EXPECT_EQ(record.parts.total(), 130);
}

// What is under way counts until the run ends.
TEST(RankBook, CountsLaunchesThatHaveNotEnded) {
  SortedRecords<RankSpan> undecided;
  RankBook book(0, NodeId(0), true, undecided);
  book.open(at(0));
  book.begin_compute(Worker::host);
  const RankRecord record = book.record(at(7));
  EXPECT_EQ(record.host, 7);
  EXPECT_EQ(record.parts[TimePart::host], 7);
  EXPECT_EQ(record.parts[TimePart::idle], 0);
}

}  // namespace
}  // namespace weft
