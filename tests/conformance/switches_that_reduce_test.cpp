// SPDX-License-Identifier: GPL-2.0-only
// Algorithms with aggregators are right for all ways of dealing ranks to servers and leaves, with 1 to 8 credits; and
// send the bytes of NCCL's and SHARP's papers.
#include <array>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "schedule/collective/collective.hpp"
#include "schedule/collective/collective_check.hpp"
#include "tests/collectives/altered.hpp"

namespace weft::switches_that_reduce_test {
namespace {

CollectiveCall call_of(const std::string& algorithm, const Communicator& ranks, std::int64_t size) {
  CollectiveCall call;
  call.algorithm = algorithm;
  call.communicator = &ranks;
  call.size = Bytes(size);
  call.tuning.chunk = Bytes(48);
  return call;
}

CollectiveReplay expect_right(const CollectiveCall& call) {
  const CollectiveReplay result = replay(*find_collective(call.algorithm), call);
  EXPECT_TRUE(result.violations.empty()) << fmt::format(
      "{} of {} B, {} ranks, {} per server, {} per leaf, {} channels, {} credits:\n{}", call.algorithm,
      call.size.count(), call.communicator->size(), call.tuning.ranks_per_server, call.tuning.ranks_per_leaf,
      call.tuning.channels, call.tuning.credits, fmt::join(result.violations, "\n"));
  return result;
}

TEST(SwitchesThatReduce, AnyServersAndLeaves) {
  std::size_t done = 0;
  for (const std::uint32_t ranks : {2U, 3U, 6U, 8U, 12U, 16U, 24U, 30U}) {
    const Communicator communicator(0, ranks);
    for (std::uint32_t server = 1; server <= ranks; ++server) {
      for (std::uint32_t leaf = 0; leaf <= ranks; ++leaf) {
        for (const char* algorithm : {"nvls_tree", "collnet"}) {
          if (algorithm == std::string("nvls_tree") && leaf != 0) continue;
          CollectiveCall call = call_of(algorithm, communicator, 97 * std::int64_t{ranks} + 5);
          call.tuning.ranks_per_server = server;
          call.tuning.ranks_per_leaf = leaf;
          call.tuning.channels = 1 + ranks % 3;
          call.tuning.credits = 1 + (server + leaf) % 8;
          const auto found = find_collective(algorithm);
          EXPECT_EQ(found->refuses(call).empty(),
                    ranks % server == 0 && (leaf == 0 || algorithm == std::string("nvls_tree") ||
                                            (ranks % leaf == 0 && leaf % server == 0)))
              << found->refuses(call);
          if (!found->refuses(call).empty()) continue;
          expect_right(call);
          ++done;
          if (HasFatalFailure() || HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(done, 100U);
}

/// Bytes that ranks send, summed up, of S bytes: all chunks are full.
TEST(SwitchesThatReduce, Bytes) {
  constexpr std::uint32_t ranks = 24;
  constexpr std::int64_t size = 48 * 24 * 3;
  const Communicator communicator(0, ranks);
  // collnet, g in a server: (g-1)/g S to the others for their sums, S/g to the network, (g-1) S/g to the others.
  for (const std::uint32_t server : {1U, 2U, 3U, 6U, 12U, 24U}) {
    CollectiveCall call = call_of("collnet", communicator, size);
    call.tuning.ranks_per_server = server;
    for (const Bytes sent : expect_right(call).sent) EXPECT_EQ(sent.count(), (2 * (server - 1) + 1) * size / server);
  }
  // nvls_tree: S + S/g to the switch of each GPU; between N servers each of the g trees carries S/g up and down N - 1
  // edges.
  for (const std::uint32_t server : {2U, 3U, 6U, 12U}) {
    CollectiveCall call = call_of("nvls_tree", communicator, size);
    call.tuning.ranks_per_server = server;
    std::int64_t sent = 0;
    for (const Bytes bytes : expect_right(call).sent) sent += bytes.count();
    EXPECT_EQ(sent, ranks * (size + size / server) + 2 * (ranks / server - 1) * size);
  }
  // nvls: S + S/n of each GPU; all_gather its block, reduce_scatter everything.
  for (const auto& [kind, each] :
       {std::pair{CollectiveKind::all_reduce, size + size / ranks}, std::pair{CollectiveKind::all_gather, size / ranks},
        std::pair{CollectiveKind::reduce_scatter, size}}) {
    CollectiveCall call = call_of("nvls", communicator, size);
    call.kind = kind;
    for (const Bytes sent : expect_right(call).sent) EXPECT_EQ(sent.count(), each);
  }
}

TEST(SwitchesThatReduce, AnAggregatorThatLosesAStepIsNamed) {
  const Communicator communicator(0, 8);
  for (const char* name : {"nvls", "nvls_tree", "collnet"}) {
    CollectiveCall call = call_of(name, communicator, 64 * 8);
    call.tuning.ranks_per_server = name == std::string("nvls") ? 0 : 4;
    const testing_steps::Faulty without_first_step(
        *find_collective(name), [](std::uint32_t index, std::uint32_t lane, std::uint64_t number, const Step&) {
          return index != 8 || lane != 0 || number != 0;
        });
    const CollectiveReplay result = replay(without_first_step, call);
    const std::string text = fmt::format("{}", fmt::join(result.violations, "\n"));
    EXPECT_NE(text.find("rank 8, "), std::string::npos) << name << "\n" << text;
    EXPECT_NE(text.find("channel 0, lane 0, step "), std::string::npos) << name << "\n" << text;
  }
}

}  // namespace
}  // namespace weft::switches_that_reduce_test
