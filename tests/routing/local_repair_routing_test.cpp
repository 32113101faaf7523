// SPDX-License-Identifier: GPL-2.0-only
// Local repair, on a leaf-spine whose first leaf has lost links to spines of which only their ends know.
#include "routing/composed/local_repair_routing.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "routing/composed/resilient_routing.hpp"
#include "tests/routing/broken_leaf.hpp"

namespace weft::local_repair_routing_test {
namespace {

using test::BrokenLeaf;

std::unique_ptr<RoutingAlgorithm> repaired(const BrokenLeaf& machine, bool resilient) {
  return local_repair_routing(*machine.usual, machine.topology, test::broken_leaf_seed, machine.dead, resilient);
}

// What the leaf has left are shortest paths, which routing that knows of the links has as well, with the same hash.
TEST(local_repair_routing, the_leaf_routes_as_if_all_knew) {
  for (const std::size_t spines : {1, 2, 3}) {
    const BrokenLeaf machine(spines);
    EXPECT_EQ(BrokenLeaf::ports(*repaired(machine, false), machine.leaf, 0, 2),
              BrokenLeaf::ports(*machine.plain, machine.leaf, 0, 2));
    EXPECT_EQ(repaired(machine, false)->candidates(machine.leaf, NodeId(2)),
              machine.plain->candidates(machine.leaf, NodeId(2)));
  }
}

TEST(local_repair_routing, resilient_switches_move_only_flows_of_the_dead_ports) {
  const BrokenLeaf machine(1);
  const auto resilient = resilient_routing(*machine.usual, test::shortest_paths(machine.topology, machine.dead));
  EXPECT_EQ(BrokenLeaf::ports(*repaired(machine, true), machine.leaf, 0, 2),
            BrokenLeaf::ports(*resilient, machine.leaf, 0, 2));
}

// The other leaf sends to spine 0 as before, whose only port towards host 0 is dead, and which sends into it.
TEST(local_repair_routing, where_no_other_port_leads_there_nothing_is_repaired) {
  const BrokenLeaf machine(1);
  const auto repair = repaired(machine, false);
  EXPECT_EQ(BrokenLeaf::ports(*repair, machine.other_leaf, 2, 0),
            BrokenLeaf::ports(*machine.usual, machine.other_leaf, 2, 0));
  const NodeId spine = machine.topology.graph.ports(machine.leaf)[machine.dead_ports[0]].peer;
  EXPECT_EQ(BrokenLeaf::ports(*repair, spine, 2, 0), BrokenLeaf::ports(*machine.usual, spine, 2, 0));
  const BrokenLeaf cut(4);
  EXPECT_EQ(BrokenLeaf::ports(*repaired(cut, false), cut.leaf, 0, 2), BrokenLeaf::ports(*cut.usual, cut.leaf, 0, 2));
}

}  // namespace
}  // namespace weft::local_repair_routing_test
