// SPDX-License-Identifier: GPL-2.0-only
// Channels of communicators over servers: rings and trees as NCCL joins them, and whether algorithms on them are right.
#include "nccl/machine_channels.hpp"

#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collectives/nccl_trees.hpp"
#include "schedule/collective_check.hpp"
#include "tests/topologies/properties.hpp"

namespace weft {
namespace {

using testing::machine;

class Cluster {
 public:
  explicit Cluster(const std::string& server, std::int64_t nic_gbps = 400)
      : topology_(machine("{kind: star, hosts: 64, link_rate: 400 Gb/s, link_delay: 1 us, server: " + server + "}")),
        channels_(std::dynamic_pointer_cast<const ServerShape>(topology_.shape), Bandwidth::from_gbps(nic_gbps)) {}
  std::shared_ptr<const ChannelGraph> of(const std::vector<std::uint32_t>& hosts) { return channels_.graph(hosts); }
  std::shared_ptr<const ChannelGraph> of_first(std::uint32_t count) {
    std::vector<std::uint32_t> hosts(count);
    std::iota(hosts.begin(), hosts.end(), 0U);
    return of(hosts);
  }

 private:
  Topology topology_;
  MachineChannels channels_;
};

const char* const hopper = "{design: hgx_h100, wiring: packed, pxn: true}";

std::string ring(const ChannelGraph& graph, std::uint32_t channel) {
  std::vector<std::uint32_t> members;
  for (std::uint32_t i = 0; i < graph.size(); ++i) members.push_back(graph.ring_member(channel, i));
  // From member 0 on, as NCCL prints rings.
  std::rotate(members.begin(), std::find(members.begin(), members.end(), 0U), members.end());
  return fmt::format("{}", fmt::join(members, " "));
}

/// NCCL's log: down0/down1/down2->rank->up.
std::string tree(const ChannelGraph& graph, std::uint32_t channel, std::uint32_t member) {
  const TreePlace place = nccl_tree_place(graph, channel, member, channel / graph.found() % 2);
  const auto name = [](std::uint32_t rank) { return rank == no_rank ? std::string("-1") : std::to_string(rank); };
  std::vector<std::string> down{"-1", "-1", "-1"};
  for (std::uint32_t i = 0; i < place.child_count; ++i) down[i] = name(place.children[i]);
  std::sort(down.begin(), down.begin() + place.child_count);
  return fmt::format("{}->{}->{}", fmt::join(down, "/"), member, name(place.parent));
}

// Rings of pairs of channels go in opposite directions, and change places in every second server, so that each hop
// between servers leaves and arrives at NICs of the same number.
TEST(MachineChannels, RingsOfTwoHopperServers) {
  Cluster cluster(hopper);
  const auto graph = cluster.of_first(16);
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->found(), 8U);
  EXPECT_EQ(graph->channels(), 16U);
  EXPECT_EQ(graph->per_server(), 8U);
  EXPECT_EQ(ring(*graph, 0), "0 7 6 5 4 3 2 1 9 10 11 12 13 14 15 8");
  EXPECT_EQ(ring(*graph, 1), "0 8 15 14 13 12 11 10 9 1 2 3 4 5 6 7");
  EXPECT_EQ(ring(*graph, 2), "0 7 6 5 4 3 11 12 13 14 15 8 9 10 2 1");
  EXPECT_EQ(ring(*graph, 7), "0 1 2 3 4 5 6 14 13 12 11 10 9 8 15 7");
  for (std::uint32_t channel = 8; channel < 16; ++channel) EXPECT_EQ(ring(*graph, channel), ring(*graph, channel - 8));
  // Rails: what leaves a server at GPU g arrives at GPU g of the other one.
  for (std::uint32_t channel = 0; channel < 16; ++channel)
    for (std::uint32_t i = 0; i < 16; ++i) {
      const std::uint32_t here = graph->ring_member(channel, i);
      const std::uint32_t next = graph->ring_member(channel, (i + 1) % 16);
      if (here / 8 != next / 8) {
        EXPECT_EQ(here % 8, next % 8) << channel;
      }
    }
}

TEST(MachineChannels, TreesOfTwoHopperServers) {
  Cluster cluster(hopper);
  const auto graph = cluster.of_first(16);
  EXPECT_EQ(tree(*graph, 0, 0), "1/8/-1->0->-1");
  EXPECT_EQ(tree(*graph, 8, 0), "1/-1/-1->0->8");
  EXPECT_EQ(tree(*graph, 2, 0), "1/-1/-1->0->7");
  EXPECT_EQ(tree(*graph, 1, 0), "-1/-1/-1->0->7");
  EXPECT_EQ(tree(*graph, 3, 11), "12/-1/-1->11->3");
}

TEST(MachineChannels, FourServers) {
  Cluster cluster(hopper);
  const auto graph = cluster.of_first(32);
  EXPECT_EQ(ring(*graph, 0), "0 7 6 5 4 3 2 1 9 10 11 12 13 14 15 8 16 23 22 21 20 19 18 17 25 26 27 28 29 30 31 24");
  // The first tree: 0 <- 2 <- {1, 3}; the second one mirrored: 3 <- 1 <- {2, 0}.
  EXPECT_EQ(tree(*graph, 0, 16), "17/24/8->16->0");
  EXPECT_EQ(tree(*graph, 8, 24), "25/8/-1->24->-1");
}

TEST(MachineChannels, MembersInAnyOrderAndNumber) {
  Cluster cluster(hopper);
  // Three of the first server and two of the second one, not in order.
  const auto graph = cluster.of({12, 1, 3, 9, 0});
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->servers(), 2U);
  EXPECT_EQ(graph->per_server(), 0U);
  EXPECT_EQ(graph->server_of(0), 0U);  // servers in the order of their first members
  EXPECT_EQ(graph->server_of(4), 1U);
  for (std::uint32_t channel = 0; channel < graph->channels(); ++channel) {
    std::vector<bool> seen(5, false);
    for (std::uint32_t position = 0; position < 5; ++position) {
      const std::uint32_t member = graph->ring_member(channel, position);
      EXPECT_EQ(graph->ring_position(channel, member), position);
      seen[member] = true;
    }
    EXPECT_EQ(seen, std::vector<bool>(5, true));
  }
  EXPECT_EQ(cluster.of({0, 1, 0}), nullptr);  // two on one GPU
}

TEST(MachineChannels, OneGpuOfEachServerHasItsOwnNic) {
  Cluster cluster(hopper);
  const auto graph = cluster.of({3, 11, 19});
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->per_server(), 1U);
  for (std::uint32_t channel = 0; channel < graph->channels(); ++channel) {
    EXPECT_EQ(graph->ring_in(0, channel).nic_in, 3U);
    EXPECT_EQ(graph->ring_in(0, channel).nic_out, 3U);
  }
}

struct Case {
  const char* name;
  const char* server;
  std::vector<std::uint32_t> hosts;
};

/// All that run on the machine's channels do what they are to do, whatever the machine and the members.
class OnChannels : public ::testing::TestWithParam<Case> {};

TEST_P(OnChannels, CollectivesAreRight) {
  Cluster cluster(GetParam().server);
  const auto& hosts = GetParam().hosts;
  const Communicator members(0, static_cast<std::uint32_t>(hosts.size()));
  for (const char* algorithm : {"ring", "bidirectional_ring", "double_binary_tree"}) {
    const auto found = find_collective(algorithm);
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
          CollectiveKind::broadcast, CollectiveKind::reduce, CollectiveKind::send_recv, CollectiveKind::barrier}) {
      if (!found->supports(kind)) continue;
      for (const std::int64_t size : {std::int64_t{5}, std::int64_t{40'000}, std::int64_t{3'000'001}}) {
        CollectiveCall call;
        call.kind = kind;
        call.communicator = &members;
        call.size = Bytes(size);
        call.root = members.size() - 1;
        call.algorithm = algorithm;
        call.graph = cluster.of(hosts);
        ASSERT_NE(call.graph, nullptr);
        call.tuning.channels = found->usual_channels(call);
        EXPECT_EQ(call.tuning.channels, call.graph->channels());
        const CollectiveReplay result = replay(*found, call);
        EXPECT_TRUE(result.violations.empty())
            << algorithm << ' ' << to_text(kind) << ' ' << size << ": " << result.violations.front();
      }
    }
  }
}

const char* const ampere_mesh =
    "{gpus: 4, inside: mesh, nvlink_rate: 100 GB/s, nvlink_delay: 100 ns, architecture: ampere, nics: 4, pcie_rate: "
    "252 "
    "Gb/s, pcie_delay: 200 ns, pxn: true}";

INSTANTIATE_TEST_SUITE_P(
    Machines, OnChannels,
    ::testing::Values(
        Case{"one_server", hopper, {0, 1, 2, 3, 4, 5, 6, 7}}, Case{"two_of_a_server", hopper, {5, 2}},
        Case{"two_servers", hopper, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        Case{"three_servers_uneven", hopper, {16, 0, 1, 9, 17, 2, 8, 18, 23}},
        Case{"one_of_each", hopper, {1, 10, 17, 26, 35}},
        Case{"ampere", "{design: dgx_a100}", {0, 1, 2, 3, 8, 9, 10, 11}},
        Case{"mesh", ampere_mesh, {0, 1, 2, 3, 4, 5, 6, 7}},
        Case{"mi300x", "{design: mi300x}", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        Case{"frontier", "{design: frontier_node}", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        Case{"rack", "{design: gb200_nvl72, nics: 1}", {0, 1, 2, 40, 71}}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace weft
