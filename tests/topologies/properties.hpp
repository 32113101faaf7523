// SPDX-License-Identifier: GPL-2.0-only
// Facts of built machines, counted without the code under test.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/topologies/machine.hpp"

namespace weft::test {

/// Ordered pairs of different hosts by their distance in links between switches (host links are not counted).
using Histogram = std::map<std::uint32_t, std::uint64_t>;

inline Histogram histogram_of(const Topology& topology) {
  const ClusterGraph& graph = topology.graph;
  Histogram result;
  for (std::uint32_t source = 0; source < graph.host_count(); ++source) {
    const auto distances = distances_from(graph, NodeId(source));
    for (std::uint32_t host = 0; host < graph.host_count(); ++host)
      if (host != source) ++result[distances.hops[host] - 2];
  }
  return result;
}

inline double mean_of(const Histogram& histogram) {
  double pairs = 0;
  double sum = 0;
  for (const auto& [hops, count] : histogram) {
    pairs += static_cast<double>(count);
    sum += static_cast<double>(hops) * static_cast<double>(count);
  }
  return sum / pairs;
}

inline std::uint32_t switch_links(const Topology& topology) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < topology.graph.link_count(); ++i) {
    const auto& ends = topology.graph.link(LinkId(i)).ends;
    if (!topology.graph.is_host(ends[0]) && !topology.graph.is_host(ends[1])) ++count;
  }
  return count;
}

inline std::uint32_t links_of_class(const Topology& topology, const std::string& name) {
  std::uint32_t count = 0;
  for (const std::uint8_t link_class : topology.link_class)
    if (topology.link_classes.at(link_class) == name) ++count;
  return count;
}

/// No two links join the same two nodes.
inline bool is_simple(const ClusterGraph& graph) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    const auto& ends = graph.link(LinkId(i)).ends;
    if (!seen.insert(std::minmax(ends[0].value(), ends[1].value())).second) return false;
  }
  return true;
}

/// Every port leads to a port that leads back.
inline void expect_consistent_ports(const ClusterGraph& graph) {
  for (std::uint32_t node = 0; node < graph.node_count(); ++node) {
    const auto ports = graph.ports(NodeId(node));
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const PortEnd& back = graph.ports(ports[i].peer)[ports[i].peer_port];
      ASSERT_EQ(back.peer, NodeId(node));
      ASSERT_EQ(back.peer_port, i);
      ASSERT_EQ(back.link, ports[i].link);
    }
  }
}

}  // namespace weft::test
