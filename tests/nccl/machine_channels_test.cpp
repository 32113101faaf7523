// SPDX-License-Identifier: GPL-2.0-only
// Channels of communicators over servers: rings and trees as NCCL joins them, and whether algorithms on them are right.
#include "nccl/machine_channels.hpp"

#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collectives/steps/nccl_trees.hpp"
#include "graph/shapes/reduction_shape.hpp"
#include "schedule/collective/collective_check.hpp"
#include "schedule/pairs/peer_messages.hpp"
#include "support/basics/error.hpp"
#include "tests/topologies/properties.hpp"

namespace weft::machine_channels_test {
namespace {

using test::machine;

class Cluster {
 public:
  explicit Cluster(const std::string& server, std::int64_t nic_gbps = 400)
      : topology_(machine("{kind: star, hosts: 128, link_rate: 400 Gb/s, link_delay: 1 us, server: " + server + "}")),
        channels_(std::dynamic_pointer_cast<const ServerShape>(machine_of(topology_).shape),
                  Bandwidth::from_gbps(nic_gbps)) {}
  std::shared_ptr<const ChannelGraph> of(const std::vector<std::uint32_t>& hosts) { return channels_.graph(hosts); }
  std::string xml(const std::vector<std::uint32_t>& hosts) { return channels_.first_server_xml(hosts); }
  std::shared_ptr<const ChannelGraph> of_first(std::uint32_t count) {
    std::vector<std::uint32_t> hosts(count);
    std::iota(hosts.begin(), hosts.end(), 0U);
    return of(hosts);
  }

 private:
  Topology topology_;
  MachineChannels channels_;
};

/// One for each kind of server: it stores its search, which takes seconds.
Cluster& cluster_of(const std::string& server) {
  static std::map<std::string, Cluster> clusters;
  return clusters.try_emplace(server, server).first->second;
}

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
  Cluster& cluster = cluster_of(hopper);
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
  // Rails: data that leaves a server at GPU g arrives at GPU g of the other one.
  for (std::uint32_t channel = 0; channel < 16; ++channel)
    for (std::uint32_t i = 0; i < 16; ++i) {
      const std::uint32_t here = graph->ring_member(channel, i);
      const std::uint32_t next = graph->ring_member(channel, (i + 1) % 16);
      if (here / 8 != next / 8) {
        EXPECT_EQ(here % 8, next % 8) << channel;
      }
    }
}

// Two DGX A100 with 8 NICs of 25 GB/s behind 16 lanes of PCIe 4.0, which count 24: 8 rings of 24, 16 channels, each
// ring back at its own NIC; 192 GB/s as logged in github.com/NVIDIA/nccl/issues/812. A balanced tree takes half of each
// NIC from the second GPU, which is only reached over the host bridge: where that was missing there was one tree, and
// one ring with it (github.com/NVIDIA/nccl/issues/1876).
TEST(MachineChannels, RingsAndTreesOfTwoAmpereServers) {
  Cluster cluster("{design: dgx_a100, wiring: packed, pxn: true}", 200);
  const auto graph = cluster.of_first(16);
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->found(), 8U);
  EXPECT_EQ(graph->channels(), 16U);
  EXPECT_EQ(graph->speeds().ring_inter * graph->found(), 192);
  EXPECT_EQ(graph->speeds().tree_inter, 24);
  EXPECT_EQ(graph->speeds().tree_intra, 30);
}

// Of a Hopper's rings, one of eight leaves the server at the GPU's own NIC. An Ampere's leave over the NIC of another
// GPU, to which the way leads over the links, as do all rings inside one server.
TEST(MachineChannels, ShareOfRingsOnTheLinks) {
  EXPECT_EQ(cluster_of(hopper).of_first(16)->speeds().rings_on_links, 7.0 / 8);
  EXPECT_EQ(cluster_of(hopper).of_first(8)->speeds().rings_on_links, 1);
  Cluster& ampere = cluster_of("{design: dgx_a100, wiring: packed, pxn: true}");
  EXPECT_EQ(ampere.of_first(16)->speeds().rings_on_links, 1);
}

TEST(MachineChannels, TreesOfTwoHopperServers) {
  Cluster& cluster = cluster_of(hopper);
  const auto graph = cluster.of_first(16);
  EXPECT_EQ(tree(*graph, 0, 0), "1/8/-1->0->-1");
  EXPECT_EQ(tree(*graph, 8, 0), "1/-1/-1->0->8");
  EXPECT_EQ(tree(*graph, 2, 0), "1/-1/-1->0->7");
  EXPECT_EQ(tree(*graph, 1, 0), "-1/-1/-1->0->7");
  EXPECT_EQ(tree(*graph, 3, 11), "12/-1/-1->11->3");
}

TEST(MachineChannels, FourServers) {
  Cluster& cluster = cluster_of(hopper);
  const auto graph = cluster.of_first(32);
  EXPECT_EQ(ring(*graph, 0), "0 7 6 5 4 3 2 1 9 10 11 12 13 14 15 8 16 23 22 21 20 19 18 17 25 26 27 28 29 30 31 24");
  // The first tree: 0 <- 2 <- {1, 3}; the second one mirrored: 3 <- 1 <- {2, 0}.
  EXPECT_EQ(tree(*graph, 0, 16), "17/24/8->16->0");
  EXPECT_EQ(tree(*graph, 8, 24), "25/8/-1->24->-1");
}

TEST(MachineChannels, MembersInAnyOrderAndNumber) {
  Cluster& cluster = cluster_of(hopper);
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
  Cluster& cluster = cluster_of(hopper);
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

/// All algorithms on the machine's channels are correct, for any machine and any members.
class OnChannels : public ::testing::TestWithParam<Case> {};

TEST_P(OnChannels, CollectivesAreRight) {
  Cluster& cluster = cluster_of(GetParam().server);
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

// Sends and receives distribute their parts to channels by the graph (nccl_p2p.cpp).
TEST_P(OnChannels, SendsAndReceivesAreRight) {
  Cluster& cluster = cluster_of(GetParam().server);
  const auto& hosts = GetParam().hosts;
  const Communicator members(0, static_cast<std::uint32_t>(hosts.size()));
  const auto found = find_collective("nccl_p2p");
  for (const CollectiveKind kind :
       {CollectiveKind::all_to_all, CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::send_recv}) {
    for (const std::int64_t size : {std::int64_t{5}, std::int64_t{400'000}, std::int64_t{9'000'001}}) {
      CollectiveCall call;
      call.kind = kind;
      call.communicator = &members;
      call.size = Bytes(size);
      call.root = members.size() - 1;
      call.algorithm = "nccl_p2p";
      call.graph = cluster.of(hosts);
      ASSERT_NE(call.graph, nullptr);
      call.tuning.ranks_per_server = call.graph->per_server();
      call.tuning.channels = found->usual_channels(call);
      const CollectiveReplay result = replay(*found, call);
      EXPECT_TRUE(result.violations.empty()) << to_text(kind) << ' ' << size << ": " << result.violations.front();
      for (std::uint32_t index = 0; index < members.size(); ++index) {
        const std::vector<bool> without = found->lanes_without_steps(call, index);
        for (std::uint32_t lane = 0; lane < found->lanes(call) && members.size() > 1; ++lane) {
          Step step;
          ASSERT_EQ(without.at(lane), !found->steps(call, index, lane)->next(step)) << index << ' ' << lane;
        }
      }
    }
  }
}

/// Sends and receives among the first ranks.
class Pairs {
 public:
  Pairs(Cluster& cluster, std::uint32_t ranks, NcclVersion version = NcclVersion::v2_30)
      : members_(std::make_unique<Communicator>(0, ranks)) {
    call_.communicator = members_.get();
    call_.graph = cluster.of_first(ranks);
    call_.tuning.ranks_per_server = call_.graph->per_server();
    call_.tuning.nccl_version = version;
  }
  Pairs ll() && {
    call_.tuning.protocol = Protocol::ll;
    return std::move(*this);
  }
  Pairs of_chunk(std::int64_t bytes) && {
    call_.tuning.p2p_chunk = Bytes(bytes);
    return std::move(*this);
  }
  std::uint32_t channels() const { return peer_channels(call_); }
  std::uint32_t parts(std::int64_t bytes) const { return peer_parts(call_, bytes); }
  std::uint32_t works(std::int64_t bytes) const { return peer_works(call_, bytes).all; }
  std::uint32_t messages(std::int64_t bytes) const { return peer_works(call_, bytes).messages; }
  bool small(std::int64_t bytes) const { return is_small_to_peer(call_, bytes, call_.graph->channels()); }

 private:
  std::unique_ptr<Communicator> members_;
  CollectiveCall call_;
};
constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;

// Two channels for each of 18 NVLinks make 36, rounded up to a power of two and at most the 32 of sends; of 8 GPUs all
// have room for 4 parts each at first (src/enqueue.cc).
TEST(MachineChannels, PartsOfMessagesInAServer) {
  const Pairs two(cluster_of(hopper), 2);
  EXPECT_EQ(two.channels(), 32U);
  EXPECT_EQ(two.parts(1), 1U);
  EXPECT_EQ(two.parts(64 * kib + 1), 2U);  // parts of 64 KiB at least
  EXPECT_EQ(two.parts(std::int64_t{1} << 40), 32U);
  const Pairs eight(cluster_of(hopper), 8);
  EXPECT_EQ(eight.parts(64 * mib), 4U);  // of 16 MiB at most
  EXPECT_EQ(eight.parts(64 * mib + 1), 8U);
}

// 8 messages of 4 parts are one for each of the 32 channels, the own copy included; with 32 parts all channels have all
// 8, of which 7 are messages.
TEST(MachineChannels, MessagesOfABlockInAServer) {
  const Pairs eight(cluster_of(hopper), 8);
  EXPECT_EQ(eight.works(64 * mib), 1U);
  EXPECT_EQ(eight.messages(64 * mib), 1U);
  EXPECT_EQ(eight.works(64 * mib + 1), 2U);
  EXPECT_EQ(eight.messages(64 * mib + 1), 2U);  // 56 parts of others on 32 channels
  EXPECT_EQ(eight.works(256 * mib + 1), 8U);
  EXPECT_EQ(eight.messages(256 * mib + 1), 7U);
}

// Up to 2.28 a message takes LL up to 16 KiB for each channel that it may have, since then for each that it has: of 8
// GPUs 512 KiB on 32 channels, or 64 KiB on the 1 of its 64 KiB.
TEST(MachineChannels, SmallMessagesInAServer) {
  for (const std::uint32_t ranks : {2U, 8U}) {
    for (const NcclVersion version : {NcclVersion::v2_23, NcclVersion::v2_27, NcclVersion::v2_28}) {
      const Pairs early(cluster_of(hopper), ranks, version);
      EXPECT_TRUE(early.small(512 * kib)) << ranks;
      EXPECT_FALSE(early.small(512 * kib + 1)) << ranks;
    }
    const Pairs current(cluster_of(hopper), ranks);
    EXPECT_TRUE(current.small(16 * kib)) << ranks;
    EXPECT_FALSE(current.small(16 * kib + 1)) << ranks;
  }
}

// Then its parts are of 8 KiB to 2 MiB, by a step of 64 KiB of LL's buffers, later of 64 KiB, by Simple's.
TEST(MachineChannels, PartsOfSmallMessages) {
  const auto early = Pairs(cluster_of(hopper), 2, NcclVersion::v2_28).ll();
  EXPECT_EQ(early.parts(8 * kib), 1U);
  EXPECT_EQ(early.parts(8 * kib + 1), 2U);
  EXPECT_EQ(early.parts(512 * kib), 16U);  // two peers' fit the 32 channels
  EXPECT_EQ(Pairs(cluster_of(hopper), 8, NcclVersion::v2_28).ll().parts(512 * kib), 4U);
  EXPECT_EQ(Pairs(cluster_of(hopper), 2).ll().parts(16 * kib), 1U);
}

// Over the network a channel for each 14 GB/s of the NIC, so many that those of an eighth of the ranks fit the 16 of
// sends: 4 with 400 Gb/s up to 32 ranks, then 2, from 128 on 1; 2 with 200 Gb/s.
TEST(MachineChannels, PartsOfMessagesBetweenServers) {
  Cluster& cluster = cluster_of(hopper);
  EXPECT_EQ(cluster.of_first(16)->speeds().peer_channels, 4U);
  EXPECT_EQ(Pairs(cluster, 16).works(mib), 8U);  // those with a server begin on one channel (src/include/channel.h)
  EXPECT_EQ(cluster.of_first(32)->speeds().peer_channels, 4U);
  EXPECT_EQ(cluster.of_first(64)->speeds().peer_channels, 2U);
  EXPECT_EQ(cluster.of_first(128)->speeds().peer_channels, 1U);
  EXPECT_EQ(Cluster(hopper, 200).of_first(16)->speeds().peer_channels, 2U);
}

// Parts of half a chunk to a chunk, which is 128 KiB unless NCCL_P2P_NET_CHUNKSIZE says otherwise; one at first, as 16
// ranks have 16 channels.
TEST(MachineChannels, PartsByChunkBetweenServers) {
  const Pairs usual(cluster_of(hopper), 16);
  EXPECT_EQ(usual.parts(128 * kib), 1U);
  EXPECT_EQ(usual.parts(128 * kib + 1), 2U);
  EXPECT_EQ(usual.parts(256 * kib + 1), 4U);
  const auto larger = Pairs(cluster_of(hopper), 16).of_chunk(512 * kib);
  EXPECT_EQ(larger.parts(512 * kib), 1U);
  EXPECT_EQ(larger.parts(512 * kib + 1), 2U);
}

// Up to 2.28 two channels, or one once two of each rank's are more than four for each of the 16 channels: from 33 ranks
// on (src/graph/paths.cc at 178b6b75, ncclTopoGetNchannels), whatever the NIC carries. In a server as later.
TEST(MachineChannels, EarlyPartsOfMessagesBetweenServers) {
  Cluster& cluster = cluster_of(hopper);
  const auto of = [&cluster](std::uint32_t ranks) { return cluster.of_first(ranks); };
  EXPECT_EQ(of(8)->speeds().early_peer_channels, of(8)->speeds().peer_channels);
  EXPECT_EQ(of(16)->speeds().early_peer_channels, 2U);
  EXPECT_EQ(of(32)->speeds().early_peer_channels, 2U);
  EXPECT_EQ(of(64)->speeds().early_peer_channels, 1U);
  EXPECT_EQ(of(128)->speeds().early_peer_channels, 1U);
  EXPECT_EQ(Cluster(hopper, 200).of_first(16)->speeds().early_peer_channels, 2U);
  EXPECT_EQ(Pairs(cluster, 32, NcclVersion::v2_28).parts(mib), 2U);
  EXPECT_EQ(Pairs(cluster, 32).parts(mib), 4U);
}

// A written graph is read again: the same rings and trees.
TEST(MachineChannels, GraphFile) {
  const std::string path = ::testing::TempDir() + "/nccl_graphs_of_test.xml";
  std::vector<std::uint32_t> hosts(16);
  std::iota(hosts.begin(), hosts.end(), 0U);
  Cluster searched(hopper);
  const std::string xml = searched.xml(hosts);
  EXPECT_NE(
      xml.find("<graph id=\"0\" pattern=\"4\" crossnic=\"2\" nchannels=\"8\" speedintra=\"48\" speedinter=\"48\""),
      std::string::npos)
      << xml;
  std::ofstream(path) << xml;
  Cluster given("{design: hgx_h100, wiring: packed, pxn: true, nccl_graphs: " + path + "}");
  EXPECT_EQ(given.xml(hosts), xml);
  const auto one = searched.of(hosts);
  const auto other = given.of(hosts);
  for (std::uint32_t channel = 0; channel < one->channels(); ++channel) {
    EXPECT_EQ(ring(*one, channel), ring(*other, channel));
    for (std::uint32_t member = 0; member < 16; ++member)
      EXPECT_EQ(tree(*one, channel, member), tree(*other, channel, member));
  }
  // Rings in the order of another machine.
  std::string turned = xml;
  const auto first = turned.find("<channel>");
  const auto end = turned.find("</channel>");
  turned.replace(first, end - first,
                 "<channel>\n<net dev=\"0\"/>\n<gpu dev=\"0\"/><gpu dev=\"2\"/><gpu dev=\"4\"/><gpu dev=\"6\"/><gpu "
                 "dev=\"7\"/><gpu dev=\"5\"/><gpu dev=\"3\"/><gpu dev=\"1\"/><net dev=\"1\"/>\n");
  std::ofstream(path) << turned;
  EXPECT_EQ(ring(*Cluster("{design: hgx_h100, pxn: true, nccl_graphs: " + path + "}").of(hosts), 0).substr(0, 15),
            "0 2 4 6 7 5 3 1");
}

TEST(MachineChannels, WrongGraphFiles) {
  const std::string path = ::testing::TempDir() + "/wrong_nccl_graphs.xml";
  const auto complaint = [&](const std::string& text) {
    std::ofstream(path) << text;
    try {
      Cluster("{design: hgx_h100, nccl_graphs: " + path + "}").of_first(16);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(complaint("<system/>").find("no <graphs>"), std::string::npos);
  EXPECT_NE(complaint("<graphs version=\"1\"></graphs>").find("the rings are missing"), std::string::npos);
  const std::string begin =
      "<graphs version=\"1\">\n<graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"1\" speedintra=\"20\" "
      "speedinter=\"20\" typeintra=\"NVL\" typeinter=\"PIX\" samechannels=\"1\"><channel>\n";
  const std::string end = "</channel></graph></graphs>";
  EXPECT_NE(complaint(begin + "<net dev=\"9\"/>" + end).find(":3"), std::string::npos);
  EXPECT_NE(complaint(begin + "<net dev=\"0\"/><gpu dev=\"1\"/><net dev=\"0\"/>" + end).find("visits 1 accelerators"),
            std::string::npos);
}

// RCCL's table for eight MI300X (src/graph/rome_models.cc, rome_model_79 and rome_model_81): each of 7 links of a GPU
// carries equally many rings, so that rings have the rate of all of them. 28 rings of 8 links on 7 x 8 directions are 4
// on each; over two servers 32 rings of 7 links inside are 4 on each, and each NIC is in 4 rings in each direction.
TEST(MachineChannels, RingsOfATable) {
  Cluster cluster("{design: mi300x}");
  const auto loads = [](const ChannelGraph& graph, std::uint32_t servers) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> inside;
    for (std::uint32_t channel = 0; channel < graph.channels(); ++channel) {
      for (std::uint32_t i = 0; i < graph.size(); ++i) {
        const std::uint32_t from = graph.ring_member(channel, i);
        const std::uint32_t to = graph.ring_member(channel, (i + 1) % graph.size());
        if (from / 8 == to / 8) ++inside[{from, to}];
      }
    }
    EXPECT_EQ(inside.size(), 7U * 8 * servers);
    std::set<std::uint32_t> different;
    for (const auto& [link, count] : inside) different.insert(count);
    return different;
  };
  const auto one = cluster.of_first(8);
  EXPECT_EQ(one->channels(), 56U);
  EXPECT_EQ(loads(*one, 1), std::set<std::uint32_t>{2 * 4});
  const auto two = cluster.of_first(16);
  EXPECT_EQ(two->channels(), 64U);
  EXPECT_EQ(loads(*two, 2), std::set<std::uint32_t>{2 * 4});
  // The second server's ring is that of the first one backwards.
  EXPECT_EQ(ring(*two, 1).substr(0, 24), "0 2 4 3 5 7 6 14 15 13 1");
  // The table is for the design as it is.
  EXPECT_GT(Cluster("{design: mi300x, gpus: 4, nics: 4}").of_first(4)->channels(), 0U);
  EXPECT_EQ(
      Cluster("{design: mi300x, rings: {one_server: {orders: [[7, 6, 5, 4, 3, 2, 1, 0]]}}}").of_first(8)->channels(),
      2U);
  // Half of a server's GPUs are not in the table, and RCCL has no numbers for them.
  EXPECT_GT(cluster.of({0, 1, 2, 3})->channels(), 0U);
  EXPECT_EQ(two->speeds().tuner, "rccl_mi300x");
  EXPECT_EQ(cluster.of({0, 1, 2, 3, 8, 9, 10, 11})->speeds().tuner, "");
  EXPECT_EQ(Cluster("{design: mi300x, collective_tuner: none}").of_first(16)->speeds().tuner, "");
  EXPECT_EQ(Cluster("{design: mi300x, rings: none}").of_first(16)->speeds().tuner, "");
}

// A message to the next server goes to the GPU of the same number, whether the servers are even or odd in number
// (rome_models.cc, parseRome4P2H, ringTail1 and ringTail2); each link inside carries as many rings as any other.
TEST(MachineChannels, RingsThatStayOnTheirRails) {
  Cluster cluster("{design: mi300x}");
  for (const std::uint32_t servers : {2U, 3U, 4U, 5U}) {
    const auto graph = cluster.of_first(8 * servers);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> inside;
    for (std::uint32_t channel = 0; channel < graph->channels(); ++channel) {
      for (std::uint32_t i = 0; i < graph->size(); ++i) {
        const std::uint32_t from = graph->ring_member(channel, i);
        const std::uint32_t to = graph->ring_member(channel, (i + 1) % graph->size());
        if (from / 8 == to / 8)
          ++inside[{from, to}];
        else
          EXPECT_EQ(from % 8, to % 8) << servers << " servers, channel " << channel;
      }
    }
    EXPECT_EQ(inside.size(), 7U * 8 * servers);
    for (const auto& [link, count] : inside) EXPECT_EQ(count, 8U);
  }
}

TEST(MachineChannels, WrongTables) {
  const auto complaint = [](const std::string& rings) {
    try {
      Cluster(
          "{gpus: 3, inside: mesh, nvlink_rate: 64 GB/s, nvlink_delay: 100 ns, nics: 1, pcie_rate: 50 GB/s, "
          "pcie_delay: 1 us, "
          "rings: " +
          rings + "}");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(complaint("{one_server: {orders: [[0, 2, 1]]}}"), "");
  EXPECT_NE(complaint("{one_server: {orders: [[0, 2]]}}").find("found 2 GPUs; expected all 3"), std::string::npos);
  EXPECT_NE(complaint("{one_server: {orders: [[0, 2, 0]]}}").find("GPU 0 is in the ring twice"), std::string::npos);
  EXPECT_NE(complaint("{one_server: {orders: [[0, 2, 3]]}}").find("3"), std::string::npos);
  EXPECT_NE(complaint("{one_server: {repeat: 0, orders: [[0, 2, 1]]}}").find("repeat"), std::string::npos);
  EXPECT_NE(complaint("{several_servers: {orders: [[0, 2, 1]], last: [[0, 2, 1]]}}").find("expected `alternate: true`"),
            std::string::npos);
  EXPECT_NE(complaint("{several_servers: {orders: [[0, 2, 1]], alternate: true, last: [[0, 2, 1]]}}")
                .find("found only one of them"),
            std::string::npos);
  EXPECT_NE(complaint("{several_servers: {orders: [[0, 2, 1]], alternate: true, last: [[0, 2, 1], [0, 1, 2]]}}")
                .find("found 2 rings; expected 1"),
            std::string::npos);
  EXPECT_NE(complaint("none, collective_tuner: rccl_mi30x").find("did you mean 'rccl_mi300x'"), std::string::npos);
  EXPECT_NE(complaint("none, collective_tuner: rccl_mi300x").find("expected `rings` with several_servers"),
            std::string::npos);
}

const char* const ampere_mesh =
    "{gpus: 4, inside: mesh, nvlink_rate: 100 GB/s, nvlink_delay: 100 ns, architecture: ampere, nics: 4, pcie_rate: "
    "252 "
    "Gb/s, pcie_delay: 200 ns, pxn: true}";

const std::vector<Case> cases = {
    Case{"one_server", hopper, {0, 1, 2, 3, 4, 5, 6, 7}},
    Case{"two_of_a_server", hopper, {5, 2}},
    Case{"two_servers", hopper, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
    Case{"three_servers_uneven", hopper, {16, 0, 1, 9, 17, 2, 8, 18, 23}},
    Case{"one_of_each", hopper, {1, 10, 17, 26, 35}},
    Case{"ampere", "{design: dgx_a100}", {0, 1, 2, 3, 8, 9, 10, 11}},
    Case{"mesh", ampere_mesh, {0, 1, 2, 3, 4, 5, 6, 7}},
    Case{"mi300x", "{design: mi300x}", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
    Case{"frontier", "{design: frontier_node}", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
    Case{"rack", "{design: gb200_nvl72, nics: 1}", {0, 1, 2, 40, 71}}};

INSTANTIATE_TEST_SUITE_P(Machines, OnChannels, ::testing::ValuesIn(cases),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace weft::machine_channels_test
