// SPDX-License-Identifier: GPL-2.0-only
// Resilient hashing against plain ECMP, on a leaf-spine whose first leaf has lost its first spine.
#include "routing/composed/resilient_routing.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/topologies/machine.hpp"

namespace weft::resilient_routing_test {
namespace {

constexpr std::uint64_t seed = 7;
constexpr std::uint32_t flows = 20'000;

std::unique_ptr<RoutingAlgorithm> shortest_paths(const Topology& topology, const std::vector<bool>& dead) {
  auto result = RoutingRegistry::instance().find("shortest_path")->make();
  result->prepare_without(topology, seed, dead);
  return result;
}

/// Two hosts below each of two leaves, four spines; the links of the leaf of host 0 to `spines` are dead.
struct Machine {
  explicit Machine(std::size_t spines)
      : topology(test::machine("{kind: leaf_spine, leaves: 2, hosts_per_leaf: 2, spines: 4, link_rate: 400 Gb/s, "
                               "link_delay: 500 ns}")) {
    const ClusterGraph& graph = topology.graph;
    leaf = graph.ports(NodeId(0)).front().peer;
    other_leaf = graph.ports(NodeId(2)).front().peer;
    std::vector<bool> dead(graph.link_count(), false);
    const auto ports = graph.ports(leaf);
    for (std::size_t p = 0; p < ports.size() && dead_ports.size() < spines; ++p) {
      if (graph.is_host(ports[p].peer)) continue;
      dead[ports[p].link.value()] = true;
      dead_ports.push_back(static_cast<std::uint16_t>(p));
    }
    usual = shortest_paths(topology, {});
    plain = shortest_paths(topology, dead);
    resilient = resilient_routing(*usual, shortest_paths(topology, dead));
  }

  static std::vector<RouteRequest> requests(std::uint32_t from, std::uint32_t to) {
    std::vector<RouteRequest> result;
    for (std::uint32_t q = 0; q < flows; ++q) result.push_back({NodeId(from), NodeId(to), q});
    return result;
  }
  static std::vector<std::uint16_t> ports(const RoutingAlgorithm& routing, NodeId at, std::uint32_t from,
                                          std::uint32_t to) {
    std::vector<std::uint16_t> result(flows);
    routing.route(at, requests(from, to), result.data());
    return result;
  }
  bool is_dead(std::uint16_t port) const {
    return std::find(dead_ports.begin(), dead_ports.end(), port) != dead_ports.end();
  }

  Topology topology;
  NodeId leaf, other_leaf;
  std::vector<std::uint16_t> dead_ports;
  std::unique_ptr<RoutingAlgorithm> usual, plain, resilient;
};

TEST(resilient_routing, only_flows_of_the_dead_port_move) {
  const Machine machine(1);
  const auto before = Machine::ports(*machine.usual, machine.leaf, 0, 2);
  const auto plain = Machine::ports(*machine.plain, machine.leaf, 0, 2);
  const auto after = Machine::ports(*machine.resilient, machine.leaf, 0, 2);
  std::uint32_t moved_in_vain = 0;
  for (std::uint32_t i = 0; i < flows; ++i) {
    ASSERT_FALSE(machine.is_dead(after[i])) << i;
    EXPECT_EQ(after[i], machine.is_dead(before[i]) ? plain[i] : before[i]) << i;
    if (!machine.is_dead(before[i]) && plain[i] != before[i]) ++moved_in_vain;
  }
  // A hash h in [0, 1) chooses spine floor(4 h), and without the first one spine 1 + floor(3 h). Kept are h in
  // [1/4, 1/3), [1/2, 2/3) and [3/4, 1), a half; a quarter has to move, a quarter moves in vain.
  EXPECT_NEAR(moved_in_vain, flows / 4.0, 5 * std::sqrt(flows * 3.0 / 16));
}

// What comes back passes the dead spine's other leaf, which has lost no link itself.
TEST(resilient_routing, the_other_leaf_avoids_a_spine_that_leads_nowhere) {
  const Machine machine(1);
  const auto before = Machine::ports(*machine.usual, machine.other_leaf, 2, 0);
  const auto after = Machine::ports(*machine.resilient, machine.other_leaf, 2, 0);
  const auto left = machine.plain->candidates(machine.other_leaf, NodeId(0));
  ASSERT_EQ(left.size(), 3U);
  for (std::uint32_t i = 0; i < flows; ++i) {
    ASSERT_NE(std::find(left.begin(), left.end(), after[i]), left.end()) << i;
    const bool stays = std::find(left.begin(), left.end(), before[i]) != left.end();
    EXPECT_EQ(after[i] == before[i], stays) << i;
  }
}

TEST(resilient_routing, without_a_way_there_is_no_route) {
  const Machine machine(4);
  for (const std::uint16_t port : Machine::ports(*machine.resilient, machine.leaf, 0, 2))
    ASSERT_EQ(port, RoutingAlgorithm::no_route);
}

}  // namespace
}  // namespace weft::resilient_routing_test
