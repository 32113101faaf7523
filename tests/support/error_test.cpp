// SPDX-License-Identifier: GPL-2.0-only
// Tests of the texts of errors and broken contracts.
#include "support/basics/error.hpp"

#include <gtest/gtest.h>

#include "support/basics/contract.hpp"

namespace weft::error_test {
namespace {

TEST(InputError, NamesThePlace) {
  EXPECT_STREQ(InputError({"a.yaml", 3}, "bad").what(), "a.yaml:3: bad");
  EXPECT_STREQ(InputError({"a.yaml", 0}, "bad").what(), "a.yaml: bad");
  EXPECT_STREQ(InputError({"--set k=1", 0}, "bad").what(), "--set k=1: bad");
  EXPECT_STREQ(InputError({}, "bad").what(), "bad");
}

TEST(Contract, SilentWhenItHolds) {
  int evaluated = 0;
  WEFT_EXPECT(++evaluated == 1, "evaluated {} times", evaluated);
  EXPECT_EQ(evaluated, 1);
}

TEST(Contract, NamesFileLineConditionAndValues) {
  int line = 0;
  try {
    const int sent = 3;
    line = __LINE__ + 1;
    WEFT_EXPECT(sent == 4, "sent {} of {}", sent, 4);
    FAIL() << "no exception";
  } catch (const InternalError& error) {
    const std::string expected = std::string(__FILE__) + ":" + std::to_string(line) +
                                 ": broken contract: sent == 4: sent 3 of 4; this is a bug in weft: please report it";
    EXPECT_EQ(error.what(), expected);
  }
}

}  // namespace
}  // namespace weft::error_test
