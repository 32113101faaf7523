// SPDX-License-Identifier: GPL-2.0-only
// Flows follow the paths that are written down for them.
#include <set>

#include "tests/routing/formulas.hpp"

namespace weft::static_routing_test {
namespace {

using test::expect_error;
using test::machine;
using test::prepared_routing;

const std::string ring = "kind: torus\ndims: [5]\nlink_rate: 100 Gb/s\nlink_delay: 1 us\npaths:\n";

std::vector<std::uint32_t> nodes_of(const std::vector<PathHop>& path) {
  std::vector<std::uint32_t> nodes;
  for (const PathHop& hop : path) nodes.push_back(hop.node.value());
  return nodes;
}

TEST(StaticRouting, FollowsThePathsAndOtherwiseTheShortest) {
  // From host 0 to host 1 the long way round.
  const Topology topology = machine(ring + "  - [host0, switch0, switch4, switch3, switch2, switch1, host1]\n");
  EXPECT_EQ(topology.routing, "static");
  const auto routing = prepared_routing("static", topology);
  for (std::uint32_t queue_pair = 0; queue_pair < 5; ++queue_pair)
    EXPECT_EQ(nodes_of(trace_path(topology, *routing, {NodeId(0), NodeId(1), queue_pair})),
              (std::vector<std::uint32_t>{0, 5, 9, 8, 7, 6}));
  EXPECT_EQ(nodes_of(trace_path(topology, *routing, {NodeId(1), NodeId(0), 0})), (std::vector<std::uint32_t>{1, 6, 5}));
  EXPECT_EQ(nodes_of(trace_path(topology, *routing, {NodeId(4), NodeId(1), 0})),
            (std::vector<std::uint32_t>{4, 9, 5, 6}));
}

TEST(StaticRouting, SharesFlowsAmongThePathsOfAPair) {
  const Topology topology = machine(ring +
                                    "  - [host0, switch0, switch1, switch2, host2]\n"
                                    "  - [host3, switch3, switch4, host4]\n"
                                    "  - [host0, switch0, switch4, switch3, switch2, host2]\n");
  const auto routing = prepared_routing("static", topology);
  std::map<std::vector<std::uint32_t>, int> count;
  for (std::uint32_t queue_pair = 0; queue_pair < 400; ++queue_pair)
    ++count[nodes_of(trace_path(topology, *routing, {NodeId(0), NodeId(2), queue_pair}))];
  ASSERT_EQ(count.size(), 2U);
  // Each with probability 1/2: 200 with a standard deviation of 10.
  for (const auto& [path, flows] : count) EXPECT_NEAR(flows, 200, 40);
  EXPECT_EQ(count.count({0, 5, 6, 7}), 1U);
  EXPECT_EQ(count.count({0, 5, 9, 8, 7}), 1U);
}

TEST(StaticRouting, SwitchesMayNotChooseAmongPathsThatTurnBack) {
  // Where the first path goes on to switch 1, the shortest way of others goes back to switch 0, and so for packets that
  // may go either way.
  const Topology topology = machine(ring +
                                    "  - [host1, switch1, switch0, switch4, host4]\n"
                                    "  - [host0, switch0, switch1, switch2, switch3, switch4, host4]\n");
  const auto routing = prepared_routing("static", topology);
  EXPECT_EQ(routing->candidates(NodeId(5), NodeId(4)).size(), 2U);
  EXPECT_EQ(routing->candidates(NodeId(6), NodeId(4)).size(), 2U);
  for (const PathHop& hop : trace_path(topology, *routing, {NodeId(0), NodeId(4), 0}))
    EXPECT_EQ(routing->candidates_of(hop.node, {NodeId(0), NodeId(4), 0}), std::vector<std::uint16_t>{hop.port});
  const auto shortest = prepared_routing("shortest_path", topology);
  EXPECT_EQ(routing->candidates_of(NodeId(5), {NodeId(3), NodeId(4), 0}), shortest->candidates(NodeId(5), NodeId(4)));
}

TEST(StaticRouting, ErrorsAtTheirLine) {
  expect_error(ring + "  - [host0, switch0, switch2, host2]\n", 6, {"router0 has no link to router2"});
  expect_error(ring + "  - [host0, switch0]\n", 6, {"from a host to another"});
  expect_error(ring + "  - [host0, switch0, switch1, switch0, switch1, host1]\n", 6, {"router0 appears twice"});
  expect_error(ring + "  - [host0, switch0, switch9, host1]\n", 6, {"unknown node 'switch9'", "switch0..switch4"});
  const Topology without = machine("{kind: star, hosts: 2, link_rate: 1 Gb/s, link_delay: 1 us}");
  EXPECT_THROW(prepared_routing("static", without), InputError);
}

}  // namespace
}  // namespace weft::static_routing_test
