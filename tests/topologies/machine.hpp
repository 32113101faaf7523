// SPDX-License-Identifier: GPL-2.0-only
// Machines and their errors from YAML text, for tests; and paths counted without the routing code.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/topology/topology_builder.hpp"

namespace weft::test {

/// The text is the whole `topology:` map, on one line or several; its first line is line 1 of "test.yaml".
inline Topology machine(const std::string& yaml) { return build_topology(Spec::parse(yaml, "test.yaml")); }

/// Building must fail at "test.yaml:<line>" with a message that has all the fragments.
inline void expect_error(const std::string& yaml, int line, const std::vector<std::string>& fragments) {
  try {
    machine(yaml);
    ADD_FAILURE() << "no error for\n" << yaml;
  } catch (const InputError& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.rfind("test.yaml:" + std::to_string(line) + ":", 0), 0U) << what;
    for (const std::string& fragment : fragments)
      EXPECT_NE(what.find(fragment), std::string::npos) << fragment << " in " << what;
  }
}

struct Distances {
  std::vector<std::uint32_t> hops;   ///< [nodes], links from the source
  std::vector<std::uint64_t> paths;  ///< [nodes], number of shortest paths from the source
};

/// Breadth-first search from a node; parallel links count as different paths.
inline Distances distances_from(const ClusterGraph& graph, NodeId source) {
  constexpr std::uint32_t unseen = 0xffffffffU;
  Distances result{std::vector<std::uint32_t>(graph.node_count(), unseen),
                   std::vector<std::uint64_t>(graph.node_count(), 0)};
  result.hops[source.value()] = 0;
  result.paths[source.value()] = 1;
  std::deque<std::uint32_t> queue{source.value()};
  while (!queue.empty()) {
    const std::uint32_t at = queue.front();
    queue.pop_front();
    for (const PortEnd& port : graph.ports(NodeId(at))) {
      const std::uint32_t peer = port.peer.value();
      if (result.hops[peer] == unseen) {
        result.hops[peer] = result.hops[at] + 1;
        queue.push_back(peer);
      }
      if (result.hops[peer] == result.hops[at] + 1) result.paths[peer] += result.paths[at];
    }
  }
  return result;
}

}  // namespace weft::test
