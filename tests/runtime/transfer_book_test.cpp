// SPDX-License-Identifier: GPL-2.0-only
// Tests of transfers while a rank computes nothing.
#include "runtime/books/transfer_book.hpp"

#include <gtest/gtest.h>

namespace weft::transfer_book_test {
namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

Pairs undecided(const TransferBook& book) {
  Pairs result;
  for (const TimeSpan& span : book.undecided()) result.emplace_back(span.begin, span.end);
  return result;
}

TEST(TransferBook, ASendIsATransferAtOnce) {
  TransferBook book;
  book.start_send();
  book.start_collective();
  book.add(10, 15);
  book.end_send();
  book.add(15, 40);
  EXPECT_EQ(book.transferring(), 5);
  EXPECT_EQ(undecided(book), (Pairs{{15, 40}}));
}

TEST(TransferBook, ARecvIsOneFromTheSendingOfItsMessage) {
  TransferBook book;
  book.start_recv(0);
  book.add(0, 10);
  book.add(20, 30);  // it has computed in between
  book.end_recv(0, 8);
  EXPECT_EQ(book.transferring(), 2 + 10);
  EXPECT_EQ(undecided(book), Pairs{});
}

TEST(TransferBook, AMessageThatWasSentBeforeCountsFromTheRecvOn) {
  TransferBook book;
  book.start_recv(5);
  book.add(5, 10);
  book.end_recv(5, 1);
  EXPECT_EQ(book.transferring(), 5);
}

TEST(TransferBook, RecvsAtTheSameTimeCountOnce) {
  TransferBook book;
  book.start_recv(0);
  book.start_recv(0);
  book.add(0, 10);
  book.end_recv(0, 4);  // 4 to 10
  book.add(10, 12);
  book.end_recv(0, 2);  // 2 to 12
  EXPECT_EQ(book.transferring(), 10);
  EXPECT_EQ(undecided(book), Pairs{});
}

TEST(TransferBook, WhatIsLeftOfACollectiveIsForOthersToDecide) {
  TransferBook book;
  book.start_recv(0);
  book.add(0, 10);  // no collective: if it is no transfer, it is waiting
  book.start_collective();
  book.add(10, 20);
  book.end_collective();
  book.start_recv(20);
  book.end_recv(0, 18);
  EXPECT_EQ(book.transferring(), 2);
  EXPECT_EQ(undecided(book), (Pairs{{10, 18}}));
  book.end_recv(20, 20);
  EXPECT_EQ(undecided(book), (Pairs{{10, 18}}));
}

}  // namespace
}  // namespace weft::transfer_book_test
