// SPDX-License-Identifier: GPL-2.0-only
// Sorting in runs on disk, against std::sort.
#include "support/system/sorted_records.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/error.hpp"

namespace weft::sorted_records_test {
namespace {

using Numbers = std::vector<std::uint64_t>;

Numbers sorted_by(SortedRecords<std::uint64_t> records, const Numbers& numbers) {
  for (const std::uint64_t number : numbers) records.add(number);
  records.sort();
  Numbers result;
  for (std::uint64_t number = 0; records.next(number);) result.push_back(number);
  return result;
}

// In memory, one merge, and several passes of merges: 5,000 records in runs of 7 are 715 runs, of which 3 go together.
TEST(SortedRecords, GiveEverythingInOrder) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {0U, 1U, 7U, 8U, 300U, 5000U}) {
    Numbers numbers(count);
    for (std::uint64_t& number : numbers) number = random() % 1000;
    Numbers due = numbers;
    std::sort(due.begin(), due.end());
    EXPECT_EQ(sorted_by(SortedRecords<std::uint64_t>(), numbers), due) << count;
    EXPECT_EQ(sorted_by(SortedRecords<std::uint64_t>(100, 64), numbers), due) << count;
    EXPECT_EQ(sorted_by(SortedRecords<std::uint64_t>(7, 3), numbers), due) << count;
  }
}

TEST(SortedRecords, AreReadByManyAtATime) {
  for (const std::size_t run : {std::size_t{7}, std::size_t{10'000}}) {
    SortedRecords<std::uint64_t> records(run, 3);
    for (std::uint64_t number = 1000; number-- > 0;) records.add(number * 37 % 1000);
    records.sort();
    records.sort();  // does nothing
    EXPECT_EQ(records.size(), 1000U);
    SortedRecords<std::uint64_t>::Cursor ahead(records), behind(records);
    std::uint64_t number = 0;
    for (std::uint64_t i = 0; i < 500; ++i) ASSERT_TRUE(ahead.next(number));
    EXPECT_EQ(number, 499U);
    for (std::uint64_t i = 0; i < 1000; ++i) {
      ASSERT_TRUE(behind.next(number));
      EXPECT_EQ(number, i);
    }
    EXPECT_FALSE(behind.next(number));
    ASSERT_TRUE(ahead.next(number));
    EXPECT_EQ(number, 500U);
  }
}

TEST(TemporaryFile, HasWhatWasAppendedOnDiskAndInMemory) {
  TemporaryFile file;
  const std::string piece = "0123456789";
  for (std::size_t i = 0; i < TemporaryFile::in_memory / 10 + 100; ++i) file.append(piece.data(), piece.size());
  std::string read(25, ' ');
  for (const std::uint64_t from : {std::uint64_t{0}, std::uint64_t{TemporaryFile::in_memory} - 3, file.size() - 25}) {
    ASSERT_EQ(file.read(from, read.data(), read.size()), read.size());
    for (std::size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i], piece[(from + i) % 10]);
  }
  EXPECT_EQ(file.read(file.size() - 3, read.data(), read.size()), 3U);
  EXPECT_EQ(file.read(file.size(), read.data(), read.size()), 0U);
}

TEST(TemporaryFile, SaysWhichFolderTakesNothing) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  setenv("TMPDIR", "/proc/self", 1);  // a folder in which no one can create files
  TemporaryFile file;
  const std::vector<char> much(TemporaryFile::in_memory + 1);
  try {
    file.append(much.data(), much.size());
    ADD_FAILURE() << "a file in /proc/self";
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("/proc/self"), std::string::npos) << error.what();
  }
  if (before != nullptr)
    setenv("TMPDIR", kept.c_str(), 1);
  else
    unsetenv("TMPDIR");
}

}  // namespace
}  // namespace weft::sorted_records_test
