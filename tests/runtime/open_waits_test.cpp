// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/books/open_waits.hpp"

#include <gtest/gtest.h>

#include "runtime/books/explanation.hpp"

namespace weft {
namespace {

// Two lanes. One handles a slice for 40 ps and then waits for 60, the other one waits for all of 100 ps. Lane by lane:
// (40 + 0) / 2 = 20 ps of handling, and (60 + 100) / 2 = 80 of waiting.
TEST(OpenWaits, CountLanes) {
  TimeParts parts;
  OpenWaits open;
  open.pass(40);
  open.settle(parts, 1, 2);
  EXPECT_EQ(parts[TimePart::handling], 20);
  open.pass(60);
  open.settle(parts, 0, 2);
  EXPECT_EQ(open.take(), 80);
  EXPECT_EQ(open.open(), 0);
}

// What rounding leaves is not lost: a third of 10 ps twice.
TEST(OpenWaits, AddUpToTheTime) {
  TimeParts parts;
  OpenWaits open;
  for (int i = 0; i < 2; ++i) {
    open.pass(10);
    open.settle(parts, 1, 3);
  }
  EXPECT_EQ(parts[TimePart::handling], 6);
  EXPECT_EQ(open.open(), 14);
  // All lanes are at their end.
  open.pass(5);
  open.settle(parts, 0, 0);
  EXPECT_EQ(parts[TimePart::handling], 11);
}

// A message that took 30 ps, 20 of these in queues, ends a wait of 40 ps, of which 10 were for its sender: 10 peers, 10
// transfer, 20 queueing. Of these, 8 ps are open: a fifth of each.
TEST(OpenWaits, AreDividedAsTheWholeWait) {
  TimeParts message;
  message[TimePart::transfer] = 10;
  message[TimePart::queueing] = 20;
  const TimeParts parts = parts_of_wait(BecauseOfMessage{message}, 40, 8);
  EXPECT_EQ(parts[TimePart::peers], 2);
  EXPECT_EQ(parts[TimePart::transfer], 2);
  EXPECT_EQ(parts[TimePart::queueing], 4);
  // 7 ps: 1.75, 1.75 and 3.5, rounded down, and the rest to the longest part.
  const TimeParts uneven = parts_of_wait(BecauseOfMessage{message}, 40, 7);
  EXPECT_EQ(uneven[TimePart::peers], 1);
  EXPECT_EQ(uneven[TimePart::transfer], 1);
  EXPECT_EQ(uneven[TimePart::queueing], 5);
  // A wait of no known length: the last 8 ps of the message.
  EXPECT_EQ(parts_of_wait(BecauseOfMessage{message}, 0, 8)[TimePart::queueing], 8);
}

// Of 10 ps before a message was sent, its sender took 4 to post it.
TEST(OpenWaits, CountPosting) {
  TimeParts message;
  message[TimePart::transfer] = 30;
  TimeParts parts;
  BecauseOfMessage{message, Time::from_ps(4)}.add_to(parts, 40);
  EXPECT_EQ(parts[TimePart::transfer], 30);
  EXPECT_EQ(parts[TimePart::handling], 4);
  EXPECT_EQ(parts[TimePart::peers], 6);
  // A wait of 32 ps began 2 ps before the message was sent.
  TimeParts short_wait;
  BecauseOfMessage{message, Time::from_ps(4)}.add_to(short_wait, 32);
  EXPECT_EQ(short_wait[TimePart::handling], 2);
  EXPECT_EQ(short_wait[TimePart::peers], 0);
}

}  // namespace
}  // namespace weft
