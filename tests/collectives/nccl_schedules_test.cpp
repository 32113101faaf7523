// SPDX-License-Identifier: GPL-2.0-only
// NCCL's trees, rounds of sends and receives, and PAT messages, against the tables that its code gives; Swing's peers.
#include <bit>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/nccl/nccl_p2p.hpp"
#include "collectives/steps/in_network.hpp"
#include "collectives/steps/nccl_sizes.hpp"
#include "collectives/steps/nccl_trees.hpp"
#include "tests/collectives/steps.hpp"

namespace weft::nccl_schedules_test {
namespace {

constexpr std::uint32_t no = no_rank;
struct Row {
  BinaryTreeNode first;
  BinaryTreeNode second;
};

void expect_node(const BinaryTreeNode& is, const BinaryTreeNode& should, std::uint32_t node) {
  EXPECT_EQ(is.up, should.up) << node;
  EXPECT_EQ(is.down0, should.down0) << node;
  EXPECT_EQ(is.down1, should.down1) << node;
}

// ncclGetDtree of NCCL src/graph/trees.cc, executed.
TEST(NcclTrees, TablesOfFourAndEight) {
  const std::vector<Row> four = {
      {{no, no, 2}, {1, no, no}}, {{2, no, no}, {3, 2, 0}}, {{0, 1, 3}, {1, no, no}}, {{2, no, no}, {no, no, 1}}};
  const std::vector<Row> eight = {{{no, no, 4}, {1, no, no}}, {{2, no, no}, {3, 2, 0}},  {{4, 1, 3}, {1, no, no}},
                                  {{2, no, no}, {7, 5, 1}},   {{0, 2, 6}, {5, no, no}},  {{6, no, no}, {3, 6, 4}},
                                  {{4, 5, 7}, {5, no, no}},   {{6, no, no}, {no, no, 3}}};
  for (const auto& table : {four, eight}) {
    const auto n = static_cast<std::uint32_t>(table.size());
    for (std::uint32_t node = 0; node < n; ++node) {
      expect_node(nccl_double_tree(n, node, 0), table[node].first, node);
      expect_node(nccl_double_tree(n, node, 1), table[node].second, node);
    }
  }
}

std::uint32_t depth(std::uint32_t n, std::uint32_t node, std::uint32_t tree) {
  std::uint32_t steps = 0;
  for (std::uint32_t up = nccl_double_tree(n, node, tree).up; up != no; up = nccl_double_tree(n, up, tree).up) ++steps;
  return steps;
}

TEST(NcclTrees, DepthAndInnerNodes) {
  // Both trees are ceil(log2 n) deep. A rank is an inner one in both trees never if n is even, and exactly once if odd.
  for (std::uint32_t n = 2; n <= 1024; n += n < 70 ? 1 : 53) {
    std::uint32_t both = 0;
    std::uint32_t deepest[2] = {0, 0};
    for (std::uint32_t node = 0; node < n; ++node) {
      std::uint32_t inner = 0;
      for (std::uint32_t tree = 0; tree < 2; ++tree) {
        const BinaryTreeNode place = nccl_double_tree(n, node, tree);
        deepest[tree] = std::max(deepest[tree], depth(n, node, tree));
        inner += place.down0 != no || place.down1 != no ? 1 : 0;
        for (const std::uint32_t child : {place.down0, place.down1}) {
          if (child == no) continue;
          EXPECT_EQ(nccl_double_tree(n, child, tree).up, node) << n;
        }
      }
      both += inner == 2 ? 1 : 0;
    }
    EXPECT_EQ(both, n == 2 ? 0U : n % 2) << n;
    const auto levels = static_cast<std::uint32_t>(std::bit_width(n - 1));
    EXPECT_EQ(deepest[0], levels) << n;
    EXPECT_EQ(deepest[1], levels) << n;
  }
}

TEST(NcclTrees, ServersAreChains) {
  // 4 servers of 8: the parent and the second child at the first member, the first child at the second one.
  const TreePlace root = nccl_tree_place(32, 8, 0, 0);
  EXPECT_EQ(root.parent, no);
  ASSERT_EQ(root.child_count, 2U);
  EXPECT_EQ(root.children[0], 16U);  // server 2
  EXPECT_EQ(root.children[1], 1U);
  const TreePlace second = nccl_tree_place(32, 8, 17, 0);  // server 2 has the children 1 and 3
  EXPECT_EQ(second.parent, 16U);
  ASSERT_EQ(second.child_count, 2U);
  EXPECT_EQ(second.children[0], 8U);
  EXPECT_EQ(nccl_tree_place(32, 8, 8, 0).parent, 17U);
  EXPECT_EQ(nccl_tree_place(32, 8, 24, 0).parent, 16U);
  EXPECT_EQ(nccl_tree_place(32, 8, 23, 0).child_count, 0U);
}

std::vector<std::uint32_t> deltas(std::uint32_t ranks, std::uint32_t server) {
  std::vector<std::uint32_t> all;
  for (P2pRounds rounds(ranks, server); !rounds.done(); rounds.advance()) all.push_back(rounds.peers(0).to);
  return all;
}

// ncclP2pSchedule of NCCL src/init.cc, executed.
TEST(NcclP2p, SendsOfRankZero) {
  EXPECT_EQ(deltas(8, 1), (std::vector<std::uint32_t>{0, 1, 3, 6, 2, 7, 5, 4}));
  EXPECT_EQ(deltas(16, 1), (std::vector<std::uint32_t>{0, 1, 3, 6, 10, 15, 5, 12, 4, 13, 7, 2, 14, 11, 9, 8}));
  const auto wide = deltas(32, 8);
  for (std::uint32_t group = 0; group < 4; ++group)
    for (std::uint32_t i = 0; i < 8; ++i)
      EXPECT_EQ(wide[8 * group + i], (std::vector<std::uint32_t>{0, 1, 3, 2})[group] * 8 + i);
}

TEST(NcclP2p, EveryPairOnceAndInTheSameRound) {
  for (const std::uint32_t server : {1U, 4U, 8U, 12U}) {
    for (std::uint32_t ranks = server; ranks <= 60; ranks += server) {
      std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
      for (P2pRounds rounds(ranks, server); !rounds.done(); rounds.advance()) {
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          const std::uint32_t to = rounds.peers(rank).to;
          EXPECT_EQ(rounds.peers(to).from, rank);
          pairs.emplace(rank, to);
        }
      }
      EXPECT_EQ(pairs.size(), std::size_t{ranks} * ranks);
    }
  }
}

class Pat : public testing_steps::AlgorithmTest {
 protected:
  Pat() : AlgorithmTest("pat") {}
  /// Messages and bytes that rank 0 sends to each peer, in the order of first use.
  std::vector<std::pair<std::uint32_t, std::pair<std::uint32_t, std::int64_t>>> to_peers() const {
    std::vector<std::pair<std::uint32_t, std::pair<std::uint32_t, std::int64_t>>> all;
    for (const Step& step : steps(0)) {
      if (!sends(step.primitive)) continue;
      if (all.empty() || all.back().first != step.send_peer) all.push_back({step.send_peer, {0, 0}});
      ++all.back().second.first;
      all.back().second.second += step.bytes.count();
    }
    return all;
  }
  std::vector<std::uint32_t> messages() const {
    std::vector<std::uint32_t> counts;
    for (const auto& [peer, sent] : to_peers()) counts.push_back(sent.first);
    return counts;
  }
};

TEST_F(Pat, EightRanks) {
  // Far ones first, with few blocks: 1 to the rank 4 before, then 2 and 4. reduce_scatter is the mirror image.
  call(CollectiveKind::all_gather, 8, 8 * 1000);
  EXPECT_EQ(to_peers(), (decltype(to_peers()){{4, {1, 1000}}, {6, {1, 2000}}, {7, {1, 4000}}}));
  call(CollectiveKind::reduce_scatter, 8, 8 * 1000);
  EXPECT_EQ(to_peers(), (decltype(to_peers()){{1, {1, 4000}}, {2, {1, 2000}}, {4, {1, 1000}}}));
}

TEST_F(Pat, MessagesPerDimension) {
  // 1 MiB per rank in chunks of 512 KiB, and 1 KiB per rank aggregated up to 64 KiB.
  call(CollectiveKind::all_gather, 16, 16 << 20);
  EXPECT_EQ(messages(), (std::vector<std::uint32_t>{2, 4, 8, 16}));
  call(CollectiveKind::all_gather, 1024, 1 << 20);
  EXPECT_EQ(messages(), (std::vector<std::uint32_t>{1, 1, 1, 1, 1, 1, 1, 2, 4, 8}));
}

TEST_F(Pat, SendsNothingTwice) {
  for (const std::uint32_t n : {2U, 3U, 5U, 12U, 31U, 64U})
    for (const auto kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      call(kind, n, 100 * std::int64_t{n});
      EXPECT_EQ(sent(), std::vector<std::int64_t>(n, 100 * (std::int64_t{n} - 1)));
    }
}

class Swing : public testing_steps::AlgorithmTest {
 protected:
  Swing() : AlgorithmTest("swing") {}
  std::vector<std::uint32_t> peers(std::uint32_t index, std::uint32_t channel = 0) const {
    std::vector<std::uint32_t> all;
    for (const Step& step : steps(index, channel))
      if (sends(step.primitive)) all.push_back(step.send_peer);
    return all;
  }
};

TEST_F(Swing, PeersAndSizes) {
  // rho = 1, -1, 3, -5: even ranks add it, odd ones subtract it; halves, quarters, ... and back.
  constexpr std::int64_t size = 16 * 1600;
  whole(CollectiveKind::all_reduce, 16, size);
  EXPECT_EQ(peers(0), (std::vector<std::uint32_t>{1, 15, 3, 11, 11, 3, 15, 1}));
  EXPECT_EQ(peers(5), (std::vector<std::uint32_t>{4, 6, 2, 10, 10, 2, 6, 4}));
  std::vector<std::int64_t> bytes;
  for (const Step& step : steps(3))
    if (sends(step.primitive)) bytes.push_back(step.bytes.count());
  EXPECT_EQ(bytes, (std::vector<std::int64_t>{size / 2, size / 4, size / 8, size / 16, size / 16, size / 8, size / 4,
                                              size / 2}));
}

TEST_F(Swing, TorusTakesDimensionsInTurn) {
  CollectiveCall& torus = whole(CollectiveKind::all_reduce, 32, 32 * 64);
  torus.tuning.dimensions = {8, 4};
  torus.tuning.channels = 4;
  // From (0, 0): x by 1, y by 1, x by -1, y by -1, x by 3.
  EXPECT_EQ(peers(0, 0), (std::vector<std::uint32_t>{1, 8, 7, 24, 3, 3, 24, 7, 8, 1}));
  EXPECT_EQ(peers(0, 1), (std::vector<std::uint32_t>{8, 1, 24, 7, 3, 3, 7, 24, 1, 8}));
  EXPECT_EQ(peers(0, 2), (std::vector<std::uint32_t>{7, 24, 1, 8, 5, 5, 8, 1, 24, 7}));
  EXPECT_EQ(replayed().violations, std::vector<std::string>{});
}

class ChunksInSwitches : public testing_steps::AlgorithmTest {
 protected:
  ChunksInSwitches() : AlgorithmTest("nvls_tree") {}
  std::int64_t of(MessageSizes (*sizes)(const CollectiveCall&, std::uint32_t), std::uint32_t servers,
                  std::uint32_t channels, std::int64_t bytes) {
    CollectiveCall& one = call(CollectiveKind::all_reduce, 8 * servers, bytes);
    one.tuning.channels = channels;
    return sizes(one, 8).chunk;
  }
};

// calcCollChunking of NCCL v2.27.3, src/enqueue.cc. 16 channels of 8 heads have 128 chunks at once: 128 KiB from 4
// times 16 MiB on, 32 KiB below 128 times 64 KiB.
TEST_F(ChunksInSwitches, OfNvlsTree) {
  EXPECT_EQ(of(nvls_tree_sizes, 2, 16, 64 << 20), 128 << 10);
  EXPECT_EQ(of(nvls_tree_sizes, 2, 16, (64 << 20) - 1), 64 << 10);
  EXPECT_EQ(of(nvls_tree_sizes, 2, 16, 8 << 20), 64 << 10);
  EXPECT_EQ(of(nvls_tree_sizes, 2, 16, (8 << 20) - 1), 32 << 10);
  EXPECT_EQ(of(nvls_tree_sizes, 4, 16, 1 << 30), 64 << 10);
  EXPECT_EQ(of(nvls_tree_sizes, 4, 16, 1), 32 << 10);
}

// ncclNvlsTreeSm100Tuning of NCCL 2.30, src/transport/nvls.cc, by servers, GPUs in each, GB/s of a NIC, and whether
// NICs are behind a CPU.
TEST_F(ChunksInSwitches, OfNvlsTreeOnBlackwell) {
  struct Machine {
    std::uint32_t servers, in_server;
    double nic;
    bool behind_cpu;
    std::uint32_t channels;
    std::int64_t kib;
  };
  for (const Machine& m : std::vector<Machine>{{1, 8, 50, false, 24, 128},
                                               {2, 4, 50, false, 32, 256},
                                               {2, 8, 50, false, 32, 64},
                                               {2, 8, 50, true, 32, 128},
                                               {2, 8, 100, false, 32, 128},
                                               {2, 72, 50, true, 32, 64},
                                               {4, 8, 100, false, 24, 256},
                                               {4, 16, 100, true, 32, 128},
                                               {4, 72, 100, true, 32, 64},
                                               {4, 8, 50, false, 24, 64},
                                               {3, 8, 50, true, 24, 128},
                                               {3, 8, 25, false, 32, 128},
                                               {4, 8, 25, false, 32, 64}}) {
    ServerChannels server;
    for (std::uint32_t place = 0; place < m.in_server; ++place) server.accelerators.push_back(place);
    ChannelSpeeds speeds;
    speeds.generation = ChannelSpeeds::Generation::blackwell;
    speeds.nic = m.nic;
    speeds.nics_behind_cpu = m.behind_cpu;
    CollectiveCall& one = call(CollectiveKind::all_reduce, m.servers * m.in_server, std::int64_t{1} << 40);
    one.graph = ChannelGraph::uniform(server, m.servers, 1, 64, speeds);
    EXPECT_EQ(nvls_channels(one), m.channels) << m.servers << " of " << m.in_server << ", " << m.nic;
    one.tuning.channels = m.channels;
    EXPECT_EQ(nvls_tree_sizes(one, m.in_server).chunk, m.kib << 10) << m.servers << " of " << m.in_server;
    // Before, as on Hopper but for 32 channels.
    one.tuning.nccl_version = NcclVersion::v2_27;
    EXPECT_EQ(nvls_channels(one), m.servers > 1 ? 32 : 24);
    EXPECT_EQ(nvls_tree_sizes(one, m.in_server).chunk, (m.servers >= 4 ? 64 : 128) << 10);
  }
}

// One channel of 8 heads, two hops: 2 * 64 chunks each of at least 256 KiB, else less; 2 * 8 of at least 64 KiB.
TEST_F(ChunksInSwitches, OfCollNet) {
  for (const auto& [bytes, chunk] : std::vector<std::pair<std::int64_t, std::int64_t>>{{512 << 20, 512 << 10},
                                                                                       {(512 << 20) - 1, 256 << 10},
                                                                                       {256 << 20, 256 << 10},
                                                                                       {(256 << 20) - 1, 128 << 10},
                                                                                       {16 << 20, 128 << 10},
                                                                                       {(16 << 20) - 1, 64 << 10},
                                                                                       {8 << 20, 64 << 10},
                                                                                       {(8 << 20) - 1, 32 << 10},
                                                                                       {1, 32 << 10}})
    EXPECT_EQ(of(collnet_sizes, 2, 1, bytes), chunk) << bytes;
}

class ChunksOfTrees : public testing_steps::AlgorithmTest {
 protected:
  ChunksOfTrees() : AlgorithmTest("double_binary_tree") {}
  /// Bytes of the first step on servers of 8, in 16 channels.
  std::int64_t of(std::uint32_t servers, std::int64_t bytes, Protocol protocol = Protocol::ll128) {
    CollectiveCall& one = call(CollectiveKind::all_reduce, 8 * servers, bytes);
    one.tuning.channels = 16;
    one.tuning.ranks_per_server = 8;
    one.tuning.protocol = protocol;
    return steps(0).front().bytes.count();
  }
};

// The same function, for NCCL_ALGO_TREE and NCCL_PROTO_LL128: with 8 servers 1 + log2 8 + 0.8 = 4.8 steps, so that
// 576,000 B are halved below 4.8 * 64 / 8 = 38.4 chunks for each channel while above 128 KiB, then below 9.6 while
// above 32 KiB; grains of 1,920 B. With one server 14.4 and 3.6 chunks. The quotients are whole numbers there as here.
TEST_F(ChunksOfTrees, OfLl128) {
  EXPECT_EQ(of(8, 512 << 20), 576'000);   // 58 chunks
  EXPECT_EQ(of(8, 256 << 20), 288'000);   // 29 of 576,000 B, 58 of half of them
  EXPECT_EQ(of(8, 128 << 20), 144'000);   // 29 of 288,000 B, 58 of half of them
  EXPECT_EQ(of(8, 64 << 20), 37 * 1920);  // 29 of 144,000 B, so 72,000 B
  EXPECT_EQ(of(8, 16 << 20), 37 * 1920);  // 14 of 72,000 B are enough
  EXPECT_EQ(of(8, 8 << 20), 18 * 1920);   // 7 of 72,000 B, 14 of half of them
  EXPECT_EQ(of(8, 4 << 20), 9 * 1920);    // 7 of 36,000 B
  EXPECT_EQ(of(1, 4 << 20), 18 * 1920);   // 3 of 72,000 B, 7 of half of them
  EXPECT_EQ(of(1, 2 << 20), 9 * 1920);    // 3 of 36,000 B
  EXPECT_EQ(of(8, 64 << 20, Protocol::simple), std::int64_t{512} << 10);
}

}  // namespace
}  // namespace weft::nccl_schedules_test
