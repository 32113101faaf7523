// SPDX-License-Identifier: GPL-2.0-only
// Large arrays begin at a huge page, small ones anywhere, and growing from one to the other loses nothing.
#include "support/system/huge_pages.hpp"

#include <cstdint>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

namespace weft::huge_pages_test {
namespace {

bool begins_huge_page(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory) % huge_page == 0; }

struct alignas(64) Line {
  std::uint64_t value;
};

TEST(HugePages, LargeArraysBeginAtOne) {
  const HugeVector<std::uint64_t> large(huge_page / sizeof(std::uint64_t) + 1, 7);
  EXPECT_TRUE(begins_huge_page(large.data()));
  EXPECT_EQ(large.back(), 7U);
}

TEST(HugePages, GrowingKeepsContents) {
  HugeVector<Line> lines;
  const std::uint64_t count = 3 * huge_page / sizeof(Line);
  for (std::uint64_t i = 0; i < count; ++i) {
    lines.push_back({i});
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(lines.data()) % alignof(Line), 0U);
  }
  EXPECT_TRUE(begins_huge_page(lines.data()));
  for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(lines[i].value, i);
}

TEST(HugePages, TooManyIsAnError) {
  HugeAllocator<Line> allocator;
  EXPECT_THROW(static_cast<void>(allocator.allocate(std::numeric_limits<std::size_t>::max())),
               std::bad_array_new_length);
}

}  // namespace
}  // namespace weft::huge_pages_test
