// SPDX-License-Identifier: GPL-2.0-only
// Every node has one owner, parts are balanced, and the facts of the cut are true.
#include "graph/partition/partition.hpp"

#include <algorithm>
#include <csignal>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/topologies/machine.hpp"

namespace weft::partition_test {
namespace {

using test::machine;

const Bytes min_frame(84);

Topology fat_tree(std::uint32_t k) {
  return machine(fmt::format("{{kind: fat_tree, k: {}, link_rate: 400 Gb/s, link_delay: 500 ns}}", k));
}

Partition split(const Topology& topology, std::uint32_t parts, const std::string& method, std::uint64_t seed = 1) {
  return make_partition(topology, parts, method, min_frame, seed);
}

std::vector<std::uint64_t> part_weights(const Topology& topology, const Partition& partition) {
  std::vector<std::uint64_t> weights(partition.parts, 0);
  for (std::uint32_t node = 0; node < topology.graph.node_count(); ++node)
    weights.at(partition.owner.at(node)) += topology.graph.ports(NodeId(node)).size();
  return weights;
}

/// The facts of the cut, computed again from the owners.
void expect_true_facts(const Topology& topology, const Partition& partition) {
  ASSERT_EQ(partition.owner.size(), topology.graph.node_count());
  std::uint32_t cut = 0;
  Time lookahead = Time::max();
  for (std::uint32_t i = 0; i < topology.graph.link_count(); ++i) {
    const LinkProperties& link = topology.graph.link(LinkId(i));
    if (partition.owner[link.ends[0].value()] == partition.owner[link.ends[1].value()]) continue;
    ++cut;
    lookahead = std::min(lookahead, link.delay + serialization_time(min_frame, link.rate));
  }
  EXPECT_EQ(partition.cut_links, cut);
  EXPECT_EQ(partition.lookahead, lookahead);
  const auto weights = part_weights(topology, partition);
  const double mean =
      static_cast<double>(std::accumulate(weights.begin(), weights.end(), std::uint64_t{0})) / partition.parts;
  EXPECT_DOUBLE_EQ(partition.balance, static_cast<double>(*std::max_element(weights.begin(), weights.end())) / mean);
}

TEST(Partition, FactsHoldForAllMethodsAndAnyNumberOfParts) {
  const Topology machines[] = {fat_tree(4), machine("{kind: star, hosts: 9, link_rate: 100 Gb/s, link_delay: 1 us}"),
                               machine("{kind: line, links: 7, link_rate: 100 Gb/s, link_delay: 1 us}"),
                               machine("{kind: line, links: 1, link_rate: 100 Gb/s, link_delay: 1 us}")};
  for (const Topology& topology : machines) {
    for (const std::string method : {"auto", "groups", "pods", "metis", "random"}) {
      for (const std::uint32_t parts : {1U, 2U, 3U, 4U, 5U, 8U, 16U, 19U, 20U, 21U, 35U, 36U, 100U, 65535U}) {
        SCOPED_TRACE(fmt::format("{} {} {}", topology.kind, method, parts));
        const Partition partition = split(topology, parts, method);
        EXPECT_EQ(partition.parts, parts);
        expect_true_facts(topology, partition);
        EXPECT_EQ(split(topology, parts, method).owner, partition.owner);
      }
    }
  }
}

TEST(Partition, OnePartCutsNothing) {
  const Partition partition = split(fat_tree(4), 1, "metis");
  EXPECT_EQ(partition.cut_links, 0U);
  EXPECT_EQ(partition.lookahead, Time::max());
  EXPECT_EQ(partition.balance, 1.0);
}

TEST(Partition, LookaheadIsOfTheFastestCutLink) {
  // host0 -1us- switch0 -2us- switch1 -3us- host1; METIS with as many parts as nodes cuts every link.
  const Topology line =
      machine("{kind: line, links: 3, link_rate: [1 Gb/s, 100 Gb/s, 400 Gb/s], link_delay: [3 us, 2 us, 1 us]}");
  const Partition all = split(line, 4, "metis");
  EXPECT_EQ(all.cut_links, 3U);
  EXPECT_EQ(all.lookahead, Time::from_us(1) + serialization_time(min_frame, Bandwidth::from_gbps(400)));
  // In two parts a host stays with its switch, so that only the middle link is cut.
  const Partition halves = split(line, 2, "metis");
  EXPECT_EQ(halves.cut_links, 1U);
  EXPECT_EQ(halves.lookahead, Time::from_us(2) + serialization_time(min_frame, Bandwidth::from_gbps(100)));
}

TEST(Partition, GroupsStayWholeAndInOrder) {
  for (const std::uint32_t k : {4U, 8U}) {
    const Topology topology = fat_tree(k);
    for (std::uint32_t parts = 1; parts <= 2 * k; ++parts) {
      SCOPED_TRACE(fmt::format("k {} parts {}", k, parts));
      const Partition partition = split(topology, parts, "pods");
      EXPECT_EQ(partition.method, "groups");
      std::vector<int> owner_of_group(k, -1);
      for (std::uint32_t node = 0; node < topology.graph.node_count(); ++node) {
        const std::uint32_t group = topology.graph.node(NodeId(node)).group;
        if (group == no_group) continue;
        if (owner_of_group.at(group) < 0) owner_of_group[group] = partition.owner[node];
        EXPECT_EQ(owner_of_group[group], partition.owner[node]);
      }
      EXPECT_TRUE(std::is_sorted(owner_of_group.begin(), owner_of_group.end()));
      for (std::uint32_t part = 0; part < parts; ++part) {
        const auto groups = static_cast<std::uint32_t>(std::count(owner_of_group.begin(), owner_of_group.end(), part));
        EXPECT_GE(groups, k / parts);
        EXPECT_LE(groups, (k + parts - 1) / parts);
      }
    }
  }
}

TEST(Partition, CoresAreSpreadEvenlyInBlocks) {
  const std::uint32_t k = 8;
  const Topology topology = fat_tree(k);
  for (std::uint32_t parts = 1; parts <= 16; ++parts) {
    const Partition partition = split(topology, parts, "groups");
    std::vector<std::uint16_t> cores(partition.owner.end() - k * k / 4, partition.owner.end());
    EXPECT_TRUE(std::is_sorted(cores.begin(), cores.end()));
    for (std::uint16_t part = 0; part < parts; ++part) {
      const auto count = static_cast<std::uint32_t>(std::count(cores.begin(), cores.end(), part));
      EXPECT_GE(count, k * k / 4 / parts);
      EXPECT_LE(count, (k * k / 4 + parts - 1) / parts);
    }
  }
}

TEST(Partition, PodsThatDivideAreExactlyBalanced) {
  const std::uint32_t k = 8;
  for (const std::uint32_t parts : {1U, 2U, 4U, 8U}) {
    const Partition partition = split(fat_tree(k), parts, "auto");
    EXPECT_EQ(partition.method, "groups");
    EXPECT_DOUBLE_EQ(partition.balance, 1.0);
    // Each pod has (k/2)^2 links to the cores, of which the part's share 1/parts stays inside.
    EXPECT_EQ(partition.cut_links, k * (k / 2) * (k / 2) * (parts - 1) / parts);
  }
  EXPECT_EQ(split(fat_tree(k), 3, "auto").method, "metis");
  EXPECT_EQ(split(fat_tree(k), 16, "auto").method, "metis");
}

TEST(Partition, WithoutGroupsBlocksOfNodes) {
  const Topology topology = machine("{kind: star, hosts: 9, link_rate: 100 Gb/s, link_delay: 1 us}");
  const Partition partition = split(topology, 2, "groups");
  EXPECT_TRUE(std::is_sorted(partition.owner.begin(), partition.owner.end()));
  EXPECT_EQ(partition.balance, 1.0);  // 9 hosts of one port, 1 switch of nine
  EXPECT_EQ(split(topology, 3, "auto").method, "metis");
}

TEST(Partition, MetisIsBalancedAndKeepsHostsWithTheirSwitch) {
  for (const std::uint32_t k : {4U, 8U}) {
    const Topology topology = fat_tree(k);
    for (const std::uint32_t parts : {2U, 3U, 4U, 8U, 13U}) {
      SCOPED_TRACE(fmt::format("k {} parts {}", k, parts));
      const Partition metis = split(topology, parts, "metis");
      for (std::uint32_t host = 0; host < topology.graph.host_count(); ++host)
        EXPECT_EQ(metis.owner[host], metis.owner[topology.graph.ports(NodeId(host))[0].peer.value()]);
      const auto weights = part_weights(topology, metis);
      EXPECT_GT(*std::min_element(weights.begin(), weights.end()), 0U);
      // Indivisible lumps: an edge switch with its hosts weighs 3k/2. Beyond one lump more than the mean would be
      // careless.
      const double mean = 2.0 * topology.graph.link_count() / parts;
      EXPECT_LE(static_cast<double>(*std::max_element(weights.begin(), weights.end())), 1.1 * mean + 1.5 * k);
      EXPECT_LT(metis.cut_links, split(topology, parts, "random").cut_links);
    }
  }
}

volatile std::sig_atomic_t terminations = 0;

// METIS treats the signal as its own error, and would give up; and it would leave a handler that works once.
TEST(Partition, MetisIsNotDisturbedByATerminationSignal) {
  struct sigaction count {};
  struct sigaction before {};
  count.sa_handler = [](int) { terminations = terminations + 1; };
  sigaction(SIGTERM, &count, &before);
  const Topology topology = fat_tree(16);
  const pid_t parent = getpid();
  for (int after = 0; after < 20; ++after) {  // us, times 200: somewhere within METIS
    terminations = 0;
    const pid_t sender = fork();
    if (sender == 0) {
      usleep(static_cast<useconds_t>(200 * after));
      kill(parent, SIGTERM);
      _exit(0);
    }
    for (std::uint32_t parts = 2; parts <= 16; parts *= 2) expect_true_facts(topology, split(topology, parts, "metis"));
    waitpid(sender, nullptr, 0);
    EXPECT_EQ(terminations, 1) << after;
  }
  sigaction(SIGTERM, &before, nullptr);
}

TEST(Partition, RandomFollowsItsSeed) {
  const Topology topology = fat_tree(8);
  EXPECT_EQ(split(topology, 4, "random", 1).owner, split(topology, 4, "random", 1).owner);
  EXPECT_NE(split(topology, 4, "random", 1).owner, split(topology, 4, "random", 2).owner);
  EXPECT_EQ(split(topology, 4, "metis", 1).owner, split(topology, 4, "metis", 2).owner);
}

TEST(Partition, ErrorsNameWhatWouldBeRight) {
  const Topology topology = fat_tree(2);
  try {
    split(topology, 2, "mettis");
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "unknown partition method 'mettis' (did you mean 'metis'?); known: auto, groups, metis, pods, random");
  }
  EXPECT_THROW(split(topology, 65536, "metis"), InputError);
  EXPECT_THROW(split(topology, 0, "metis"), InternalError);
}

}  // namespace
}  // namespace weft::partition_test
