// SPDX-License-Identifier: GPL-2.0-only
// Machines written down link by link.
#include <gtest/gtest.h>

#include "tests/topologies/machine.hpp"

namespace weft::graph_test {
namespace {

using test::expect_error;
using test::machine;

const std::string two_switches =
    "kind: graph\n"
    "hosts: 2\n"
    "switches: 2\n"
    "links:\n"
    "  - {from: host0, to: switch0, rate: 100 Gb/s, delay: 1 ns}\n"
    "  - {from: host1, to: switch1, rate: 200 Gb/s, delay: 2 ns}\n"
    "  - {from: switch1, to: switch0, rate: 300 Gb/s, delay: 3 ns}\n";

TEST(Graph, AsWritten) {
  const Topology topology = machine(two_switches + "  - {from: switch0, to: switch1, rate: 400 Gb/s, delay: 4 ns}\n");
  const ClusterGraph& graph = topology.graph;
  EXPECT_EQ(topology.routing, "shortest_path");
  EXPECT_EQ(graph.host_count(), 2U);
  EXPECT_EQ(graph.switch_count(), 2U);
  ASSERT_EQ(graph.link_count(), 4U);
  const std::uint32_t ends[][2] = {{0, 2}, {1, 3}, {3, 2}, {2, 3}};  // the last two are parallel
  for (std::uint32_t i = 0; i < 4; ++i) {
    const LinkProperties& link = graph.link(LinkId(i));
    EXPECT_EQ(link.ends[0], NodeId(ends[i][0]));
    EXPECT_EQ(link.ends[1], NodeId(ends[i][1]));
    EXPECT_EQ(link.rate, Bandwidth::from_gbps(100 * (i + 1)));
    EXPECT_EQ(link.delay, Time::from_ns(i + 1));
    EXPECT_EQ(topology.link_classes.at(topology.link_class[i]), i < 2 ? "host" : "switch");
  }
}

TEST(Graph, LinksMayFollowTheCommonRateAndDelay) {
  const Topology topology = machine(
      "{kind: graph, hosts: 2, link_rate: 100 Gb/s, link_delay: 5 ns, links: [{from: host0, to: host1, delay: 1 ns}]}");
  EXPECT_EQ(topology.graph.link(LinkId(0)).rate, Bandwidth::from_gbps(100));
  EXPECT_EQ(topology.graph.link(LinkId(0)).delay, Time::from_ns(1));
}

TEST(Graph, ErrorsAtTheLineOfTheLink) {
  const auto with = [](const std::string& link) { return two_switches + "  - " + link + "\n"; };
  expect_error(with("{from: swich1, to: switch0, rate: 1 Gb/s, delay: 1 ns}"), 8,
               {"unknown node 'swich1'", "did you mean 'switch1'?", "host0..host1", "switch0..switch1"});
  expect_error(with("{from: switch0, to: switch2, rate: 1 Gb/s, delay: 1 ns}"), 8, {"unknown node 'switch2'"});
  expect_error(with("{from: switch0, to: host2, rate: 1 Gb/s, delay: 1 ns}"), 8, {"unknown node 'host2'"});
  for (const std::string name : {"host", "host01", "host-1", "host0x", "0", "switch4294967296", "Host0"})
    expect_error(with("{from: switch0, to: " + name + ", rate: 1 Gb/s, delay: 1 ns}"), 8,
                 {"unknown node '" + name + "'"});
  expect_error(with("{from: switch0, to: switch0, rate: 1 Gb/s, delay: 1 ns}"), 8, {"switch0 is linked to itself"});
  expect_error(with("{from: switch0, to: host1, rate: 1 Gb/s, delay: 1 ns}"), 8,
               {"host1 has a link already (at test.yaml:6)", "exactly 1"});
  expect_error(with("{from: switch0, to: switch1, rate: 1 Gb/s, delay: 0 ns}"), 8, {"zero delay links"});
  expect_error(with("{from: switch0, to: switch1, rate: 0 Gb/s, delay: 1 ns}"), 8, {"rate above 0"});
  expect_error(with("{from: switch0, to: switch1, rate: 1, delay: 1 ns}"), 8, {"unit"});
  expect_error(with("{from: switch0, to: switch1, rate: 1 Gb/s}"), 8, {"delay"});
  expect_error(with("{from: switch0, rate: 1 Gb/s, delay: 1 ns}"), 8, {"'to'"});
  expect_error(with("{from: switch0, to: switch1, rate: 1 Gb/s, delay: 1 ns, dely: 1 ns}"), 8,
               {"did you mean 'delay'?"});
}

TEST(Graph, ErrorsOfTheWhole) {
  const std::string one_link = "links: [{from: host0, to: switch0, rate: 1 Gb/s, delay: 1 ns}]\n";
  expect_error("kind: graph\nhosts: 0\nswitches: 1\nlinks: []\n", 2, {"0"});
  expect_error("kind: graph\nhosts: 2\nswitches: 1\n" + one_link, 2, {"host1 has no link"});
  expect_error("kind: graph\nhosts: 1\nswitches: 2\n" + one_link, 1, {"switch1 cannot be reached from host0"});
  expect_error("kind: graph\nhosts: 1\nswitches: 1\n" + one_link + "link: 3\n", 5, {"did you mean 'links'?"});
  expect_error("kind: graph\nhosts: 1\nswitches: 1\nlinks: 3\n", 4, {"links"});
  expect_error("kind: graph\nhosts: 1\nswitches: 1\n", 1, {"links"});
}

}  // namespace
}  // namespace weft::graph_test
