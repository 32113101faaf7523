// SPDX-License-Identifier: GPL-2.0-only
// Every registered collective algorithm for 2 to 33 and for 48, 63, 64 and 100 ranks, with 1 to 8 credits.
// Runs in: full
// Also in Release: all numbers of ranks; with sanitizers some
#include <cctype>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "schedule/collective/collective.hpp"
#include "schedule/collective/collective_check.hpp"

namespace weft::collectives_of_many_ranks_test {
namespace {

struct Case {
  std::string algorithm;
  CollectiveKind kind = CollectiveKind::all_reduce;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& [name, entry] : CollectiveRegistry::instance().entries())
    for (const std::string& kind : collective_kind_names())
      if (entry.make()->supports(*parse_collective_kind(kind))) cases.push_back({name, *parse_collective_kind(kind)});
  return cases;
}

class ManyRanks : public testing::TestWithParam<Case> {
 protected:
  void check(std::uint32_t ranks, std::int64_t size, std::uint32_t channels, std::uint32_t credits) {
    const Communicator communicator(0, ranks);
    CollectiveCall call;
    call.kind = GetParam().kind;
    call.algorithm = GetParam().algorithm;
    call.communicator = &communicator;
    call.size = Bytes(size);
    call.root = has_root(call.kind) ? ranks / 3 : 0;
    call.tuning.channels = channels;
    call.tuning.credits = credits;
    call.tuning.chunk = Bytes(credits == 0 ? 0 : 48);
    const CollectiveReplay result = replay(*find_collective(call.algorithm), call);
    ASSERT_TRUE(result.violations.empty())
        << fmt::format("{} {} of {} B, {} ranks, {} channels, {} credits:\n{}", call.algorithm, to_text(call.kind),
                       size, ranks, channels, credits, fmt::join(result.violations, "\n"));
    ASSERT_GE(result.total_sent(), min_bytes_sent(call));
  }
};

TEST_P(ManyRanks, IsRight) {
#ifdef __SANITIZE_ADDRESS__  // a replay takes about thirty times as long then, and looks for other mistakes
  const std::vector<std::uint32_t> counts = {2, 3, 7, 8, 13};
#else
  std::vector<std::uint32_t> counts = {48, 63, 64, 100};
  for (std::uint32_t ranks = 2; ranks <= 33; ++ranks) counts.push_back(ranks);
#endif
  for (const std::uint32_t ranks : counts) {
    // Two chunks per block and a few bytes more, and one byte. With each number of credits, or of many ranks with one.
    for (std::uint32_t credits = 1; credits <= 8; ++credits) {
      if (ranks > 16 && credits != 1 + ranks % 8) continue;
      ASSERT_NO_FATAL_FAILURE(check(ranks, 97 * std::int64_t{ranks} + 5, 1 + (ranks + credits) % 2, credits));
    }
    ASSERT_NO_FATAL_FAILURE(check(ranks, 1, 1, 0));
  }
}

std::string case_name(const testing::TestParamInfo<Case>& tested) {
  return fmt::format("{}_{}", tested.param.algorithm, to_text(tested.param.kind));
}
INSTANTIATE_TEST_SUITE_P(Registered, ManyRanks, testing::ValuesIn(all_cases()), case_name);

}  // namespace
}  // namespace weft::collectives_of_many_ranks_test
