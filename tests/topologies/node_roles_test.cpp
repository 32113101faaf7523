// SPDX-License-Identifier: GPL-2.0-only
// Nodes are named by their roles, and are found by these names and by the plain ones.
#include "graph/machine/node_name.hpp"
#include "tests/topologies/machine.hpp"

namespace weft::node_roles_test {
namespace {

using test::expect_error;
using test::machine;

const std::string link = ", link_rate: 400 Gb/s, link_delay: 1 us}";

void expect_name(const ClusterGraph& graph, const std::string& plain, const std::string& role) {
  const auto node = node_named(graph, plain);
  ASSERT_TRUE(node) << plain;
  EXPECT_EQ(graph.name(*node), role);
  EXPECT_EQ(graph.plain_name(*node), plain);
  EXPECT_EQ(node_named(graph, role), node);
}

TEST(NodeRoles, TwoTiers) {
  const Topology topology = machine("{kind: leaf_spine, leaves: 3, hosts_per_leaf: 2, spines: 2" + link);
  expect_name(topology.graph, "host5", "host5");
  expect_name(topology.graph, "switch2", "leaf2");
  expect_name(topology.graph, "switch3", "spine0");
}

// k = 4: 8 edge switches, 8 aggregation switches, 4 cores; two of either kind in each of four pods.
TEST(NodeRoles, FatTree) {
  const Topology topology = machine("{kind: fat_tree, k: 4" + link);
  expect_name(topology.graph, "switch7", "pod3/edge1");
  expect_name(topology.graph, "switch8", "pod0/aggregation0");
  expect_name(topology.graph, "switch19", "core3");
}

// The same machine as a generalised tree: m = 2, 2, 4; w = 1, 2, 2.
TEST(NodeRoles, GeneralisedTree) {
  const Topology topology = machine("{kind: xgft, m: [2, 2, 4], w: [1, 2, 2]" + link);
  expect_name(topology.graph, "switch7", "pod3/level1-switch1");
  expect_name(topology.graph, "switch8", "pod0/level2-switch0");
  expect_name(topology.graph, "switch19", "level3-switch3");
}

TEST(NodeRoles, Groups) {
  const Topology dragonfly = machine("{kind: dragonfly, p: 2, a: 4, h: 2" + link);
  expect_name(dragonfly.graph, "switch18", "group4/router2");
  const Topology plus = machine("{kind: dragonfly_plus, p: 2, leaves: 2, spines: 2, h: 1" + link);
  expect_name(plus.graph, "switch5", "group1/leaf1");
  expect_name(plus.graph, "switch6", "group1/spine0");
}

TEST(NodeRoles, Grids) {
  const Topology torus = machine("{kind: torus, dims: [3, 4]" + link);
  expect_name(torus.graph, "switch7", "router1.2");
  const Topology cube = machine("{kind: hypercube, dimensions: 3" + link);
  expect_name(cube.graph, "switch6", "router0.1.1");
}

TEST(NodeRoles, Rails) {
  const Topology topology = machine(
      "{kind: rails, rails: 2, rail: {kind: leaf_spine, leaves: 2, hosts_per_leaf: 2, spines: 1, link_rate: 400 Gb/s, "
      "link_delay: 1 us}, server: {gpus: 2, inside: nvswitch, nvswitches: 1, nics: 2, wiring: rail, nvlink_rate: 2 "
      "Tb/s, "
      "nvlink_delay: 100 ns, pcie_rate: 500 Gb/s, pcie_delay: 200 ns}}");
  // Four servers of five nodes (two ports, an NVSwitch, two NICs); then rail 0 and rail 1, of three switches each.
  expect_name(topology.graph, "switch25", "rail1/spine0");
}

// Two servers of two GPUs, an NVSwitch and two NICs each: nodes inside are two ports, then what is between.
TEST(NodeRoles, Servers) {
  const Topology topology = machine(
      "{kind: star, hosts: 4, server: {gpus: 2, inside: nvswitch, nvswitches: 1, nics: 2, nvlink_rate: 2 Tb/s, "
      "nvlink_delay: 100 ns, pcie_rate: 500 Gb/s, pcie_delay: 200 ns}" +
      link);
  const ClusterGraph& graph = topology.graph;
  expect_name(graph, "host3", "server1/gpu1");
  for (const std::string name : {"server0/gpu1/port", "server1/nic1", "server1/nvswitch0"}) {
    ASSERT_TRUE(node_named(graph, name)) << name;
    EXPECT_TRUE(graph.node(*node_named(graph, name)).in_server);
  }
  EXPECT_FALSE(node_named(graph, "server1/nic2"));
  EXPECT_EQ(names_of_nodes(graph),
            "host0..host3 (server0/gpu0..server1/gpu1) and switch0..switch10 "
            "(server0/gpu0/port..switch0)");
}

TEST(NodeRoles, WrittenDownPathsMayUseThem) {
  const std::string tree = "{kind: leaf_spine, leaves: 2, hosts_per_leaf: 1, spines: 2, paths: ";
  EXPECT_TRUE(machine(tree + "[[host0, leaf0, spine1, leaf1, host1]]" + link).paths);
  expect_error(tree + "[[host0, leaf0, spine7, leaf1, host1]]" + link, 1,
               {"unknown node 'spine7'", "switch0..switch3 (leaf0..spine1)"});
}

}  // namespace
}  // namespace weft::node_roles_test
