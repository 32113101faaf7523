// SPDX-License-Identifier: GPL-2.0-only
// Every registered collective algorithm is held to the contract of CollectiveAlgorithm, by replay.
// Also in Release: all numbers of ranks; with sanitizers some
#include <cctype>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "schedule/collective/collective.hpp"
#include "schedule/collective/collective_check.hpp"
#include "support/basics/random.hpp"
#include "tests/collectives/altered.hpp"

namespace weft::collectives_test {
namespace {

using testing_steps::Faulty;

#ifdef __SANITIZE_ADDRESS__  // a replay takes about thirty times as long then, and looks for other mistakes
constexpr std::uint32_t rank_counts[] = {1, 2, 3, 4, 5};
constexpr std::uint32_t ranks_of_all_tunings = 3;
#else
constexpr std::uint32_t rank_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12};
constexpr std::uint32_t ranks_of_all_tunings = 5;
#endif

struct Case {
  std::string algorithm;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t ranks = 0;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& [name, entry] : CollectiveRegistry::instance().entries()) {
    const auto algorithm = entry.make();
    for (const std::string& kind_name : collective_kind_names()) {
      const CollectiveKind kind = parse_collective_kind(kind_name).value();
      if (!algorithm->supports(kind)) continue;
      for (const std::uint32_t ranks : rank_counts) cases.push_back({name, kind, ranks});
    }
  }
  return cases;
}

std::string case_name(const testing::TestParamInfo<Case>& tested) {
  const Case& c = tested.param;
  std::string name = fmt::format("{}_{}_{}", c.algorithm, to_text(c.kind), c.ranks);
  for (char& letter : name)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  return name;
}

std::string describe(const CollectiveCall& call) {
  return fmt::format("{} {} of {} B, {} ranks, root {}, channels {}, chunk {}, slices {}, credits {}", call.algorithm,
                     to_text(call.kind), call.size.count(), call.communicator->size(), call.root, call.tuning.channels,
                     call.tuning.chunk.count(), call.tuning.slices, call.tuning.credits);
}

/// Lanes that an algorithm declares to have no steps have none.
void expect_no_steps(const CollectiveAlgorithm& algorithm, const CollectiveCall& call) {
  for (std::uint32_t index = 0; index < call.communicator->size(); ++index) {
    const std::vector<bool> without = algorithm.lanes_without_steps(call, index);
    for (std::uint32_t lane = 0; lane < without.size(); ++lane) {
      Step step;
      ASSERT_FALSE(without[lane] && algorithm.steps(call, index, lane)->next(step))
          << describe(call) << ", rank " << index << ", lane " << lane;
    }
  }
}

class Conformance : public testing::TestWithParam<Case> {
 protected:
  void check(Bytes size, const CollectiveTuning& tuning) {
    const Case& c = GetParam();
    const Communicator communicator(0, c.ranks);
    const auto algorithm = CollectiveRegistry::instance().find(c.algorithm)->make();
    // With all roots of few ranks, and with the first, a middle and the last one of many.
    std::vector<std::uint32_t> roots = {0};
    for (std::uint32_t root = 1; has_root(c.kind) && root < c.ranks; ++root)
      if (c.ranks <= 5 || root == c.ranks / 2 || root + 1 == c.ranks) roots.push_back(root);
    for (const std::uint32_t root : roots) {
      CollectiveCall call;
      call.kind = c.kind;
      call.communicator = &communicator;
      call.size = size;
      call.root = root;
      call.algorithm = c.algorithm;
      call.tuning = tuning;
      const CollectiveReplay result = replay(*algorithm, call);
      ASSERT_TRUE(result.violations.empty()) << describe(call) << "\n"
                                             << fmt::format("{}", fmt::join(result.violations, "\n"));
      ASSERT_EQ(result.sent.size(), c.ranks);
      ASSERT_GE(result.total_sent(), min_bytes_sent(call)) << describe(call);
      expect_no_steps(*algorithm, call);
    }
  }
};

TEST_P(Conformance, SmallChunks) {
  const std::int64_t n = GetParam().ranks;
  constexpr std::int64_t chunk = 64;
  const std::vector<std::int64_t> sizes = {0,
                                           1,
                                           15,
                                           16,
                                           17,
                                           16 * n - 1,
                                           7 * n + 3,
                                           n * chunk - 1,
                                           n * chunk,
                                           n * chunk + 1,
                                           3 * n * chunk,
                                           3 * n * chunk + 16,
                                           2 * n * chunk + 17 * n + 5};
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> slices_and_credits = {{0, 0}, {1, 1}, {1, 2},
                                                                                   {2, 1}, {2, 4}, {3, 2}};
  // Few ranks are tested with every combination of size, channels and credits. More ranks are tested with a third of
  // the combinations, which still contain every pair of values of two of the three (pairwise testing).
  const std::size_t stride = n <= ranks_of_all_tunings ? 1 : 3;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (std::uint32_t channels = 1; channels <= 3; ++channels) {
      for (std::size_t k = (i + channels) % stride; k < slices_and_credits.size(); k += stride) {
        CollectiveTuning tuning;
        tuning.channels = channels;
        tuning.chunk = Bytes(chunk);
        tuning.slices = slices_and_credits[k].first;
        tuning.credits = slices_and_credits[k].second;
        ASSERT_NO_FATAL_FAILURE(check(Bytes(sizes[i]), tuning));
      }
    }
  }
}

TEST_P(Conformance, ChunksThatAreNoMultipleOfTheAlignment) {
  const std::int64_t n = GetParam().ranks;
  for (const std::int64_t chunk : {1, 7, 50}) {
    for (const std::int64_t size : {n * chunk, 2 * n * chunk + 1, 100 + n}) {
      CollectiveTuning tuning;
      tuning.channels = 2;
      tuning.chunk = Bytes(chunk);
      tuning.slices = 2;
      ASSERT_NO_FATAL_FAILURE(check(Bytes(size), tuning));
    }
  }
}

TEST_P(Conformance, ChunksOfTheAlgorithm) {
  const std::int64_t n = GetParam().ranks;
  const std::int64_t loop = n * Bytes::mib(2).count();
  for (const std::int64_t size : {loop - 1, loop, loop + 1, 2 * loop + 12345}) {
    for (std::uint32_t channels = 1; channels <= 3; ++channels) {
      CollectiveTuning tuning;
      tuning.channels = channels;
      ASSERT_NO_FATAL_FAILURE(check(Bytes(size), tuning));
    }
  }
}

/// Bytes of blocks that differ: many that are empty, a rank that gets hardly any and one that gets most of them.
std::vector<std::int64_t> uneven_bytes(std::uint32_t ranks, bool pairs, std::uint64_t seed) {
  std::vector<std::int64_t> bytes;
  for (std::uint64_t i = 0; i < (pairs ? std::uint64_t{ranks} * ranks : ranks); ++i) {
    const auto low = static_cast<std::int64_t>(random_bits(seed, 1, i) % 97);
    const bool hot = i % ranks == seed % ranks;
    bytes.push_back(low < 30 ? 0 : hot ? 50 * low : low);
  }
  return bytes;
}

TEST_P(Conformance, BlocksThatDiffer) {
  const Case& c = GetParam();
  const auto algorithm = CollectiveRegistry::instance().find(c.algorithm)->make();
  if (!algorithm->takes_block_tables(c.kind)) GTEST_SKIP() << "blocks are equal";
  const Communicator communicator(0, c.ranks);
  CollectiveCall call;
  call.kind = c.kind;
  call.communicator = &communicator;
  call.algorithm = c.algorithm;
  for (std::uint64_t seed = 0; seed < 6; ++seed)
    for (const std::int64_t chunk : {0, 64}) {
      call.blocks =
          std::make_shared<BlockTable>(c.ranks, uneven_bytes(c.ranks, c.kind == CollectiveKind::all_to_all, seed));
      call.size = Bytes(call.blocks->total());
      call.tuning.chunk = Bytes(chunk);
      call.tuning.channels = 1 + static_cast<std::uint32_t>(seed % 3);
      const CollectiveReplay result = replay(*algorithm, call);
      ASSERT_TRUE(result.violations.empty()) << describe(call) << ", seed " << seed << "\n"
                                             << fmt::format("{}", fmt::join(result.violations, "\n"));
    }
}

// Data from a rank to a rank of another server crosses between servers once, along the rail of the receiver, and is
// sent inside the server of the sender if that is not on this rail: sum over pairs, whatever their sizes.
TEST(Hierarchical, BytesOfAnUnevenAllToAllInsideServersAndBetweenThem) {
  const auto algorithm = CollectiveRegistry::instance().find("hierarchical")->make();
  for (const auto& [ranks, server] : {std::pair(8U, 4U), std::pair(12U, 3U), std::pair(16U, 2U), std::pair(6U, 6U)})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const Communicator communicator(0, ranks);
      CollectiveCall call;
      call.kind = CollectiveKind::all_to_all;
      call.communicator = &communicator;
      call.algorithm = "hierarchical";
      call.tuning.ranks_per_server = server;
      call.blocks = std::make_shared<BlockTable>(ranks, uneven_bytes(ranks, true, seed));
      call.size = Bytes(call.blocks->total());
      std::vector<std::int64_t> sent(ranks), between(ranks);
      for (std::uint32_t from = 0; from < ranks; ++from)
        for (std::uint32_t to = 0; to < ranks; ++to) {
          const std::int64_t bytes = call.blocks->bytes(from, to);
          const std::uint32_t relay = from / server * server + to % server;
          if (relay != from) sent[from] += bytes;
          if (relay != to) sent[relay] += bytes;
          if (relay != to) between[relay] += bytes;
        }
      const CollectiveReplay result = replay(*algorithm, call);
      ASSERT_TRUE(result.violations.empty()) << fmt::format("{}", fmt::join(result.violations, "\n"));
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(result.sent[rank].count(), sent[rank]) << ranks << " ranks, rank " << rank;
        EXPECT_EQ(result.sent_between_servers[rank].count(), between[rank]) << ranks << " ranks, rank " << rank;
      }
    }
}

TEST_P(Conformance, EndedStreamsStayEnded) {
  const Case& c = GetParam();
  const Communicator communicator(0, c.ranks);
  const auto algorithm = CollectiveRegistry::instance().find(c.algorithm)->make();
  CollectiveCall call;
  call.kind = c.kind;
  call.communicator = &communicator;
  call.size = Bytes(1000);
  const auto stream = algorithm->steps(call, c.ranks - 1, 0);
  Step step;
  while (stream->next(step)) continue;
  EXPECT_FALSE(stream->next(step));
}

INSTANTIATE_TEST_SUITE_P(Registered, Conformance, testing::ValuesIn(all_cases()), case_name);

TEST(Conformance, SomethingIsRegistered) { EXPECT_FALSE(all_cases().empty()); }

/// Whatever single step of rank 1 is dropped or wrong, the replay of any registered algorithm must notice.
class Faults : public testing::TestWithParam<Case> {
 protected:
  /// For each step of rank 1 on which `change` acts (returns true): replays with that step alone changed, or dropped.
  void expect_all_caught(const std::function<bool(Step&)>& change, bool drop = false) {
    const Case& c = GetParam();
    const Communicator communicator(0, c.ranks);
    CollectiveCall call;
    call.kind = c.kind;
    call.algorithm = c.algorithm;
    call.communicator = &communicator;
    call.size = Bytes(64 * c.ranks * 2 + 32);
    call.tuning.chunk = Bytes(64);
    const auto algorithm = find_collective(c.algorithm);
    for (std::uint32_t lane = 0; lane < algorithm->lanes(call); ++lane) {
      bool more = true;
      for (std::uint64_t target = 0; more; ++target) {
        more = false;
        bool acted = false;
        const Faulty faulty(*algorithm,
                            [&](std::uint32_t index, std::uint32_t of_lane, std::uint64_t number, Step& step) {
                              if (index != 1 || of_lane != lane || number != target) return true;
                              more = true;
                              acted = step.primitive != Primitive::nop && change(step);
                              return !(acted && drop);
                            });
        const CollectiveReplay result = replay(faulty, call);
        EXPECT_EQ(result.violations.empty(), !acted) << describe(call) << ", lane " << lane << ", step " << target;
      }
    }
  }
};

std::vector<Case> fault_cases() {
  std::vector<Case> cases = all_cases();
  // A barrier only counts known members: hearing of a member once more is no fault.
  std::erase_if(cases, [](const Case& c) { return c.ranks != 4 || c.kind == CollectiveKind::barrier; });
  return cases;
}

TEST_P(Faults, MissingStep) {
  expect_all_caught([](Step&) { return true; }, true);
}

TEST_P(Faults, WrongInput) {
  if (GetParam().algorithm == "scatter_allgather") GTEST_SKIP() << "its ring also carries bytes that nobody keeps";
  expect_all_caught([](Step& step) {
    step.input_offset += Bytes(step.input_offset.count() > 0 ? -1 : 1);
    return reads(step.primitive);
  });
}

TEST_P(Faults, WrongOutput) {
  expect_all_caught([](Step& step) {
    step.output_offset += Bytes(step.output_offset.count() > 0 ? -1 : 1);
    return stores(step.primitive);
  });
}

TEST_P(Faults, ShortChunk) {
  expect_all_caught([](Step& step) {
    step.bytes -= Bytes(1);
    return true;
  });
}

TEST_P(Faults, WrongSlicing) {
  expect_all_caught([](Step& step) {
    if (!sends(step.primitive) && !receives(step.primitive)) return false;
    step.slice -= Bytes(1);
    return true;
  });
}

TEST_P(Faults, ReducedOnceTooOften) {
  expect_all_caught([](Step& step) {
    if (step.primitive == Primitive::recv_copy_send) {
      step.primitive = Primitive::recv_reduce_copy_send;
    } else if (step.primitive == Primitive::recv) {
      step.primitive = Primitive::recv_reduce_copy;
    } else {
      return false;
    }
    return true;
  });
}

TEST_P(Faults, NotReduced) {
  expect_all_caught([](Step& step) {
    if (step.primitive == Primitive::recv_reduce_copy_send) {
      step.primitive = Primitive::recv_copy_send;
    } else if (step.primitive == Primitive::recv_reduce_copy) {
      step.primitive = Primitive::recv;
    } else {
      return false;
    }
    return true;
  });
}

TEST_P(Faults, WrongPeer) {
  expect_all_caught([](Step& step) {
    step.send_peer = (step.send_peer + 1) % 4;
    return sends(step.primitive);
  });
}

INSTANTIATE_TEST_SUITE_P(Registered, Faults, testing::ValuesIn(fault_cases()), case_name);

}  // namespace
}  // namespace weft::collectives_test
