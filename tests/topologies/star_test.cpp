// SPDX-License-Identifier: GPL-2.0-only
// Hosts around one switch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/topologies/machine.hpp"

namespace weft::star_test {
namespace {

using test::expect_error;
using test::machine;

TEST(Star, HostIIsAtPortI) {
  for (const std::uint32_t hosts : {1U, 2U, 8U, 65535U}) {
    const Topology topology =
        machine(fmt::format("{{kind: star, hosts: {}, link_rate: 100 Gb/s, link_delay: 1 us}}", hosts));
    EXPECT_EQ(topology.routing, "shortest_path");
    EXPECT_EQ(topology.graph.host_count(), hosts);
    EXPECT_EQ(topology.graph.switch_count(), 1U);
    ASSERT_EQ(topology.graph.link_count(), hosts);
    for (std::uint32_t i = 0; i < hosts; ++i) {
      ASSERT_EQ(topology.graph.ports(NodeId(hosts))[i].peer, NodeId(i));
      ASSERT_EQ(topology.link_classes.at(topology.link_class[i]), "host");
      ASSERT_EQ(topology.graph.link(LinkId(i)).rate, Bandwidth::from_gbps(100));
      ASSERT_EQ(topology.graph.link(LinkId(i)).delay, Time::from_us(1));
    }
  }
}

TEST(Star, ErrorsAtTheirLine) {
  expect_error("kind: star\nhosts: 0\nlink_rate: 1 Gb/s\nlink_delay: 1 us\n", 2, {"0"});
  expect_error("kind: star\nhosts: 65536\nlink_rate: 1 Gb/s\nlink_delay: 1 us\n", 2, {"65536", "65535"});
  expect_error("kind: star\nhosts: 4\nlink_rate: 1 Gb/s\nlink_delay: 0 us\n", 4, {"zero delay links"});
  expect_error("kind: star\nhosts: 4\nlink_rate: 0 Gb/s\nlink_delay: 1 us\n", 3, {"rate above 0"});
  expect_error("kind: star\nhosts: 4\nlink_rate: 1 Gb/s\nlink_delay: 1 us\nhost: 4\n", 5, {"did you mean 'hosts'?"});
}

}  // namespace
}  // namespace weft::star_test
