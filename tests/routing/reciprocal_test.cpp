// SPDX-License-Identifier: GPL-2.0-only
// Division without dividing equals division.
#include "routing/algorithm/reciprocal.hpp"

#include <gtest/gtest.h>

#include "support/basics/random.hpp"

namespace weft::reciprocal_test {
namespace {

TEST(Reciprocal, ExactOverAllHostsOfFatTrees) {
  for (std::uint32_t k = 2; k <= 256; k += 2) {
    for (const std::uint32_t divisor : {1U, k / 2, k / 2 * (k / 2)}) {
      const Reciprocal reciprocal(divisor);
      for (std::uint32_t n = 0; n < k * k * k / 4; ++n)
        if (reciprocal.quotient(n) != n / divisor) FAIL() << n << " / " << divisor;
    }
  }
}

TEST(Reciprocal, ExactAroundMultiplesUpToTheLimit) {
  for (std::uint64_t i = 0; i < 2000; ++i) {
    // Small divisors one by one, then random ones of every size.
    const auto random = static_cast<std::uint32_t>(random_bits(1, i, 0) >> (33 + random_below(31, 1, i, 1)));
    const std::uint32_t divisor = i < 1000 ? static_cast<std::uint32_t>(i) + 1 : random | 1U;
    const Reciprocal reciprocal(divisor);
    for (std::uint64_t j = 0; j < 200; ++j) {
      const std::uint64_t multiple = random_below(Reciprocal::numerators / divisor + 1, 2, i, j) * divisor;
      for (const std::uint64_t n : {multiple - 1, multiple, multiple + 1, std::uint64_t{Reciprocal::numerators - 1}}) {
        if (n >= Reciprocal::numerators) continue;
        const auto small = static_cast<std::uint32_t>(n);
        ASSERT_EQ(reciprocal.quotient(small), small / divisor) << small << " / " << divisor;
      }
    }
  }
}

}  // namespace
}  // namespace weft::reciprocal_test
