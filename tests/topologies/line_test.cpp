// SPDX-License-Identifier: GPL-2.0-only
// Two hosts at the ends of a chain.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/topologies/machine.hpp"

namespace weft::line_test {
namespace {

using test::expect_error;
using test::machine;

TEST(Line, LinksLeadFromHostToHostInOrder) {
  for (std::uint32_t links = 1; links <= 6; ++links) {
    const Topology topology =
        machine(fmt::format("{{kind: line, hosts: 2, links: {}, link_rate: 100 Gb/s, link_delay: 1 us}}", links));
    const ClusterGraph& graph = topology.graph;
    EXPECT_EQ(topology.routing, "shortest_path");
    EXPECT_EQ(graph.host_count(), 2U);
    EXPECT_EQ(graph.switch_count(), links - 1);
    ASSERT_EQ(graph.link_count(), links);
    NodeId at(0);
    for (std::uint32_t i = 0; i < links; ++i) {
      const LinkProperties& link = graph.link(LinkId(i));
      EXPECT_EQ(link.ends[0], at);
      at = link.ends[1];
      EXPECT_EQ(graph.is_host(at), i + 1 == links);
      EXPECT_EQ(topology.link_classes.at(topology.link_class[i]), i == 0 || i + 1 == links ? "host" : "switch");
    }
    EXPECT_EQ(at, NodeId(1));
  }
}

TEST(Line, RatesAndDelaysOneByOne) {
  const Topology topology =
      machine("{kind: line, links: 3, link_rate: [100 Gb/s, 200 Gb/s, 400 Gb/s], link_delay: [3 ns, 2 ns, 1 ns]}");
  const std::int64_t gbps[] = {100, 200, 400};
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(topology.graph.link(LinkId(i)).rate, Bandwidth::from_gbps(gbps[i]));
    EXPECT_EQ(topology.graph.link(LinkId(i)).delay, Time::from_ns(3 - i));
  }
}

TEST(Line, ErrorsAtTheirLine) {
  expect_error("kind: line\nlinks: 0\nlink_rate: 1 Gb/s\nlink_delay: 1 us\n", 2, {"0"});
  expect_error("kind: line\nlinks: 2\nhosts: 3\nlink_rate: 1 Gb/s\nlink_delay: 1 us\n", 3, {"3"});
  expect_error("kind: line\nlinks: 3\nlink_rate: [1 Gb/s, 2 Gb/s]\nlink_delay: 1 us\n", 3, {"2 values for 3 links"});
  expect_error("kind: line\nlinks: 2\nlink_rate: 1 Gb/s\nlink_delay:\n  - 1 us\n  - 0 us\n", 6, {"zero delay links"});
  expect_error("kind: line\nlinks: 2\nlink_rate: 1 Gb/s\nlink_delays: 1 us\n", 4, {"missing key 'link_delay'"});
}

}  // namespace
}  // namespace weft::line_test
