// SPDX-License-Identifier: GPL-2.0-only
// The fingerprint: order does not matter, any field of any row does.
#include "results/tables/fingerprint.hpp"

#include <set>

#include <gtest/gtest.h>

#include "tests/results/sample_run.hpp"

namespace weft::fingerprint_test {
namespace {

TEST(Fingerprint, IsASumOverRowsInAnyOrderAndDeal) {
  const std::vector<MessageRecord> all = sample::messages({});
  std::uint64_t parts = 0;
  for (std::uint32_t process = 0; process < 4; ++process) {
    const std::vector<MessageRecord> rows = sample::messages({1, process, 4});
    parts += fingerprint_sum<MessageRecord>(rows);
  }
  EXPECT_EQ(parts, fingerprint_sum<MessageRecord>(all));
  const std::vector<MessageRecord> reversed(all.rbegin(), all.rend());
  EXPECT_EQ(fingerprint_sum<MessageRecord>(reversed), fingerprint_sum<MessageRecord>(all));
}

TEST(Fingerprint, EachFieldMatters) {
  const MessageRecord base = sample::message(1, 2);
  std::set<std::uint64_t> seen = {fingerprint(base)};
  const auto expect_new = [&](auto change) {
    MessageRecord row = base;
    change(row);
    EXPECT_TRUE(seen.insert(fingerprint(row)).second);
  };
  expect_new([](MessageRecord& row) { ++row.id; });
  expect_new([](MessageRecord& row) { ++row.source; });
  expect_new([](MessageRecord& row) { ++row.destination; });
  expect_new([](MessageRecord& row) { ++row.bytes; });
  expect_new([](MessageRecord& row) { ++row.issued; });
  expect_new([](MessageRecord& row) { ++row.delivered; });
  expect_new([](MessageRecord& row) { ++row.ideal; });
  expect_new([](MessageRecord& row) { ++row.packets; });
  expect_new([](MessageRecord& row) { ++row.collective; });
  expect_new([](MessageRecord& row) { ++row.tag; });
  expect_new([](MessageRecord& row) { std::swap(row.issued, row.delivered); });
}

TEST(Fingerprint, RowsThatSwapAFieldAreSeen) {
  MessageRecord a = sample::message(1, 0);
  MessageRecord b = sample::message(1, 1);
  const std::uint64_t before = fingerprint(a) + fingerprint(b);
  std::swap(a.delivered, b.delivered);
  EXPECT_NE(fingerprint(a) + fingerprint(b), before);
}

TEST(Fingerprint, RecordTypesDiffer) {
  LinkClassRecord marked;
  marked.marked = 1;  // one in which nothing has happened does not count
  const std::set<std::uint64_t> seen = {fingerprint(MessageRecord{}), fingerprint(CollectivePart{}),
                                        fingerprint(LinkRecord{}),    fingerprint(marked),
                                        fingerprint(RankRecord{}),    fingerprint(TransferRecord{})};
  EXPECT_EQ(seen.size(), 6U);
  EXPECT_EQ(fingerprint(LinkClassRecord{}), 0U);
}

}  // namespace
}  // namespace weft::fingerprint_test
