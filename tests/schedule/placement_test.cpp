// SPDX-License-Identifier: GPL-2.0-only
// Placement of ranks onto hosts: formulas, lists, and complaints.
#include "schedule/program/placement.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

namespace weft::placement_test {
namespace {

using Hosts = std::vector<std::uint32_t>;

Hosts hosts_of(const Placement& placement) {
  Hosts hosts;
  for (std::uint32_t rank = 0; rank < placement.ranks(); ++rank) hosts.push_back(placement.host(rank).value());
  return hosts;
}

/// Four servers of two accelerators: GPU g of server s is host 2 s + g.
PlacementRequest request(std::uint32_t ranks) {
  PlacementRequest request;
  request.ranks = ranks;
  request.hosts = 8;
  request.servers = {4, 2, 2, 1};
  request.seed = 5;
  return request;
}

Hosts read(const std::string& text, const PlacementRequest& wanted) {
  const Spec spec = Spec::parse("placement: " + text, "x.yaml");
  return hosts_of(read_placement(spec.at("placement"), spec, wanted));
}
Hosts read(const std::string& text, std::uint32_t ranks) { return read(text, request(ranks)); }

void expect_complaint(const std::string& text, const PlacementRequest& wanted, const std::string& part) {
  try {
    read(text, wanted);
    ADD_FAILURE() << text << " is no mistake";
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("x.yaml:1: ")) << message;
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
  }
}

TEST(Placement, PackedWithOffsetAndStride) {
  EXPECT_EQ(read("packed", 3), (Hosts{0, 1, 2}));
  EXPECT_EQ(read("{first: 5}", 3), (Hosts{5, 6, 7}));
  EXPECT_EQ(read("{stride: 2}", 4), (Hosts{0, 2, 4, 6}));
  EXPECT_EQ(read("{kind: packed, first: 1, stride: 3}", 3), (Hosts{1, 4, 7}));
  PlacementRequest behind = request(2);
  behind.first = 4;
  EXPECT_EQ(read("packed", behind), (Hosts{4, 5}));
  const Spec nothing = Spec::parse("{}", "x.yaml");
  EXPECT_EQ(hosts_of(read_placement(std::nullopt, nothing, behind)), (Hosts{4, 5}));
}

TEST(Placement, RailByRail) {
  EXPECT_EQ(read("by_rail", 8), (Hosts{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(read("{kind: by_rail, first_server: 1, servers: 2}", 4), (Hosts{2, 4, 3, 5}));
  PlacementRequest rails = request(6);  // hosts of rail 0, then those of rail 1
  rails.servers = {4, 2, 1, 4};
  EXPECT_EQ(read("by_rail", rails), (Hosts{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(read("{kind: by_rail, servers: 3}", rails), (Hosts{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(rails.servers.server_of(NodeId(6)), 2U);
  EXPECT_EQ(request(1).servers.server_of(NodeId(5)), 2U);
}

TEST(Placement, ListsAndPieces) {
  EXPECT_EQ(read("{kind: explicit, hosts: [7, 0, 3]}", 3), (Hosts{7, 0, 3}));
  EXPECT_EQ(read("{hosts: [4]}", 1), (Hosts{4}));
  EXPECT_EQ(read("[{ranks: 2, first: 6}, {ranks: 1, hosts: [5]}, {stride: 2}]", 5), (Hosts{6, 7, 5, 0, 2}));
}

TEST(Placement, RandomIsAPermutationThatTheSeedAloneDecides) {
  const Hosts all = read("random", 8);
  Hosts sorted = all;
  std::sort(sorted.begin(), sorted.end());
  Hosts expected(8);
  std::iota(expected.begin(), expected.end(), 0U);
  EXPECT_EQ(sorted, expected);
  EXPECT_NE(all, expected);
  EXPECT_EQ(read("{kind: random, seed: 5}", 8), all);  // the seed of the run is 5
  EXPECT_NE(read("{kind: random, seed: 6}", 8), all);
  EXPECT_EQ(read("random", 3), (Hosts{all[0], all[1], all[2]}));
  for (const std::uint32_t host : read("{kind: random, first: 2, count: 3}", 3)) EXPECT_TRUE(host >= 2 && host < 5);
  for (const std::uint32_t host : read("{kind: random, hosts: [1, 3, 5, 7]}", 2)) EXPECT_EQ(host % 2, 1U);
}

// A draw of servers is a draw of as many hosts, each of which stands for the accelerators of a server.
TEST(Placement, RandomServersStayWhole) {
  const Hosts servers = hosts_of(Placement::random(4, {0, 1, 2, 3}, 5));
  Hosts expected;
  for (const std::uint32_t server : servers) expected.insert(expected.end(), {2 * server, 2 * server + 1});
  EXPECT_EQ(read("random_servers", 8), expected);  // the seed of the run is 5
  EXPECT_EQ(read("{kind: random_servers, seed: 5}", 8), expected);
  EXPECT_NE(read("{kind: random_servers, seed: 6}", 8), expected);
  EXPECT_EQ(read("random_servers", 3), Hosts(expected.begin(), expected.begin() + 3));
  for (const std::uint32_t host : read("{kind: random_servers, first_server: 1, servers: 2}", 4))
    EXPECT_TRUE(host >= 2 && host < 6);
  PlacementRequest rails = request(8);  // hosts of rail 0, then those of rail 1
  rails.servers = {4, 2, 1, 4};
  expected.clear();
  for (const std::uint32_t server : servers) expected.insert(expected.end(), {server, server + 4});
  EXPECT_EQ(read("random_servers", rails), expected);
}

// Each of n! orders of n hosts is as likely as any other: chi-squared over 6 orders and 6,000 seeds. With 5 degrees of
// freedom a fair shuffle exceeds 20.5 once in a thousand times; the seeds are fixed, so that this one never does.
TEST(Placement, RandomOrdersAreEquallyLikely) {
  std::map<Hosts, int> count;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) ++count[hosts_of(Placement::random(3, {0, 1, 2}, seed))];
  ASSERT_EQ(count.size(), 6U);
  double chi_squared = 0;
  for (const auto& [order, times] : count) chi_squared += (times - 1000.0) * (times - 1000.0) / 1000.0;
  EXPECT_LT(chi_squared, 20.5);
}

TEST(Placement, AppendsBehindWhatIsThere) {
  Placement placement = Placement::regular(2, 4);
  placement.append(Placement());
  placement.append(Placement::regular(0));
  placement.append(Placement::listed({9, 1}));
  placement.append(Placement::by_rail(3, {4, 2, 2, 1}, 0, 2));
  EXPECT_EQ(hosts_of(placement), (Hosts{4, 5, 9, 1, 0, 2, 1}));
}

TEST(Placement, Complaints) {
  expect_complaint("{first: 6}", request(3), "rank 2 would be on host 8, but this machine has hosts 0 to 7");
  expect_complaint("{stride: 4}", request(3), "rank 2 would be on host 8");
  expect_complaint("{first: 8}", request(1), "there is no host 8; this machine has hosts 0 to 7");
  expect_complaint("{hosts: [1, 2]}", request(3), "found 2 hosts; expected one for each of 3 ranks");
  expect_complaint("{hosts: [1, 2]}", request(8),
                   "8 ranks; without the key `ranks` a workload has a rank on each host");
  expect_complaint("{hosts: [1, 2, 1]}", request(3), "host 1 gets two ranks, the second is rank 2");
  expect_complaint("[{ranks: 2}, {first: 1}]", request(3), "host 1 gets two ranks, the second is rank 2");
  expect_complaint("[{first: 2}, {first: 1}]", request(3), "'ranks' is missing");
  expect_complaint("[{ranks: 1}, {ranks: 1, first: 1}]", request(3), "the pieces place 2 ranks; there are 3");
  expect_complaint("[]", request(3), "no placement");
  expect_complaint("by_rial", request(3), "did you mean 'by_rail'?");
  expect_complaint("{kind: packed, seed: 3}", request(3), "unknown key 'seed'");
  expect_complaint("{kind: by_rail, servers: 1}", request(3), "3 ranks on 1 servers of 2 accelerators; at most 2 fit");
  expect_complaint("{kind: random, count: 2}", request(3), "3 ranks, but only 2 hosts to choose from");
  expect_complaint("{kind: random, hosts: [1, 2, 3], first: 1}", request(3), "give the hosts in one way");
  PlacementRequest without = request(3);
  without.servers = {};
  expect_complaint("by_rail", without, "'by_rail' needs a machine of servers");
  expect_complaint("random_servers", without, "'random_servers' needs a machine of servers");
  expect_complaint("{kind: random_servers, servers: 1}", request(3), "1 servers of 2 accelerators; at most 2 fit");
  expect_complaint("{kind: random_servers, first: 1}", request(3), "unknown key 'first'");
}

/// The same with hosts 2, 3 (server 1) and 7 for storage.
PlacementRequest with_storage(std::uint32_t ranks, std::uint32_t storage_ranks) {
  PlacementRequest wanted = request(ranks);
  wanted.storage = {2, 3, 7};
  wanted.storage_ranks = storage_ranks;
  return wanted;
}

TEST(Placement, RanksStayOffStorageUnlessItIsNamed) {
  EXPECT_EQ(read("packed", with_storage(4, 0)), (Hosts{0, 1, 4, 5}));
  EXPECT_EQ(read("{kind: packed}", with_storage(4, 0)), (Hosts{0, 1, 4, 5}));
  EXPECT_EQ(read("{first: 1}", with_storage(3, 0)), (Hosts{1, 2, 3}));
  EXPECT_EQ(read("{hosts: [7, 0]}", with_storage(2, 0)), (Hosts{7, 0}));
  const Spec nothing = Spec::parse("{}", "x.yaml");
  EXPECT_EQ(hosts_of(read_placement(std::nullopt, nothing, with_storage(5, 0))), (Hosts{0, 1, 4, 5, 6}));
  Hosts drawn = read("random", with_storage(5, 0));
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(drawn, (Hosts{0, 1, 4, 5, 6}));
  EXPECT_EQ(read("by_rail", with_storage(4, 0)), (Hosts{0, 4, 1, 5}));  // servers 0 and 2 have none
  drawn = read("random_servers", with_storage(4, 0));
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(drawn, (Hosts{0, 1, 4, 5}));
  expect_complaint("packed", with_storage(6, 0), "5 hosts that are no storage");
  expect_complaint("by_rail", with_storage(5, 0), "at most 4 fit");
}

TEST(Placement, StorageRanksGoToStorage) {
  const Spec nothing = Spec::parse("{}", "x.yaml");
  EXPECT_EQ(hosts_of(read_placement(std::nullopt, nothing, with_storage(4, 2))), (Hosts{0, 1, 2, 3}));
  EXPECT_EQ(read("{first: 4}", with_storage(5, 3)), (Hosts{4, 5, 2, 3, 7}));
  EXPECT_EQ(read("{hosts: [0, 7, 4]}", with_storage(3, 1)), (Hosts{0, 7, 4}));
  EXPECT_EQ(read("[{ranks: 2, first: 5}, {first: 7}]", with_storage(3, 1)), (Hosts{5, 6, 7}));
  expect_complaint("packed", with_storage(6, 4), "4 storage targets, but the machine has 3 storage hosts");
}

}  // namespace
}  // namespace weft::placement_test
