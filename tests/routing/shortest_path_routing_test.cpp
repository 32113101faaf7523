// SPDX-License-Identifier: GPL-2.0-only
// Shortest-path routing against breadth-first search, and the fat-tree formula against shortest-path routing.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "routing/algorithm/path.hpp"
#include "tests/topologies/machine.hpp"

namespace weft::shortest_path_routing_test {
namespace {

using test::distances_from;
using test::machine;

constexpr std::uint64_t seed = 42;

std::unique_ptr<RoutingAlgorithm> routing(const std::string& name, const Topology& topology) {
  const auto* entry = RoutingRegistry::instance().find(name);
  if (entry == nullptr) throw std::runtime_error("routing " + name + " is not registered");
  auto algorithm = entry->make();
  algorithm->prepare(topology, seed);
  return algorithm;
}

Topology fat_tree(std::uint32_t k) {
  return machine(fmt::format("{{kind: fat_tree, k: {}, link_rate: 400 Gb/s, link_delay: 500 ns}}", k));
}

/// A ring of n switches with a host each.
Topology ring(std::uint32_t n) {
  std::string links;
  for (std::uint32_t i = 0; i < n; ++i) {
    links += fmt::format("  - {{from: switch{}, to: host{}}}\n", i, i);
    links += fmt::format("  - {{from: switch{}, to: switch{}}}\n", i, (i + 1) % n);
  }
  return machine(
      fmt::format("kind: graph\nhosts: {0}\nswitches: {0}\nlink_rate: 100 Gb/s\nlink_delay: 1 us\nlinks:\n", n) +
      links);
}

/// The ports that lead one link closer, found by breadth-first search.
std::vector<std::uint16_t> closer_ports(const ClusterGraph& graph, NodeId at, const std::vector<std::uint32_t>& hops) {
  std::vector<std::uint16_t> result;
  const auto ports = graph.ports(at);
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (hops[ports[i].peer.value()] + 1 == hops[at.value()]) result.push_back(static_cast<std::uint16_t>(i));
  return result;
}

void expect_all_shortest_paths(const Topology& topology, const RoutingAlgorithm& algorithm) {
  const ClusterGraph& graph = topology.graph;
  for (std::uint32_t destination = 0; destination < graph.host_count(); ++destination) {
    const auto hops = distances_from(graph, NodeId(destination)).hops;
    for (std::uint32_t at = 0; at < graph.node_count(); ++at) {
      if (at == destination) continue;
      const auto candidates = algorithm.candidates(NodeId(at), NodeId(destination));
      ASSERT_EQ(candidates, closer_ports(graph, NodeId(at), hops)) << graph.name(NodeId(at)) << " -> " << destination;
    }
  }
}

void expect_same_choices(const Topology& topology, const RoutingAlgorithm& one, const RoutingAlgorithm& other,
                         NodeId at, const std::vector<RouteRequest>& requests) {
  std::vector<std::uint16_t> ports(requests.size());
  std::vector<std::uint16_t> others(requests.size());
  one.route(at, requests, ports.data());
  other.route(at, requests, others.data());
  ASSERT_EQ(ports, others) << topology.graph.name(at);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto candidates = one.candidates(at, requests[i].destination);
    ASSERT_EQ(candidates, other.candidates(at, requests[i].destination));
    const auto hash = ecmp_hash(requests[i], at, seed);
    ASSERT_EQ(ports[i], candidates[ecmp_choice(hash, static_cast<std::uint32_t>(candidates.size()))]);
  }
}

TEST(ShortestPath, CandidatesAreAllShortestPaths) {
  for (const std::uint32_t n : {3U, 6U, 7U}) {
    const Topology topology = ring(n);
    expect_all_shortest_paths(topology, *routing("shortest_path", topology));
  }
  for (const std::string machine_text : {"{kind: star, hosts: 5, link_rate: 100 Gb/s, link_delay: 1 us}",
                                         "{kind: line, links: 5, link_rate: 1 Gb/s, link_delay: 1 us}",
                                         "{kind: line, links: 1, link_rate: 1 Gb/s, link_delay: 1 us}",
                                         "{kind: line, links: 2, link_rate: 1 Gb/s, link_delay: 1 us}"}) {
    const Topology topology = machine(machine_text);
    expect_all_shortest_paths(topology, *routing("shortest_path", topology));
  }
}

TEST(ShortestPath, ParallelLinksAreSeparateCandidates) {
  const Topology topology = machine(
      "kind: graph\nhosts: 2\nswitches: 2\nlink_rate: 100 Gb/s\nlink_delay: 1 us\nlinks:\n"
      "  - {from: switch0, to: switch1}\n  - {from: host0, to: switch0}\n  - {from: switch0, to: switch1}\n"
      "  - {from: switch1, to: host1}\n  - {from: switch1, to: switch0}\n");
  const auto algorithm = routing("shortest_path", topology);
  EXPECT_EQ(algorithm->candidates(NodeId(2), NodeId(1)), (std::vector<std::uint16_t>{0, 2, 3}));
  EXPECT_EQ(algorithm->candidates(NodeId(3), NodeId(0)), (std::vector<std::uint16_t>{0, 1, 3}));
  EXPECT_EQ(algorithm->candidates(NodeId(3), NodeId(1)), (std::vector<std::uint16_t>{2}));
  expect_all_shortest_paths(topology, *algorithm);
}

class FatTreeRoutingOf : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  const std::uint32_t k = GetParam();
  const Topology topology = fat_tree(k);
  const ClusterGraph& graph = topology.graph;
  const std::unique_ptr<RoutingAlgorithm> formula = routing("fat_tree", topology);
  const std::unique_ptr<RoutingAlgorithm> tables = routing("shortest_path", topology);

  /// All ordered pairs of hosts in small machines, random ones in large ones.
  std::vector<RouteRequest> flows() const {
    std::vector<RouteRequest> result;
    const std::uint32_t hosts = graph.host_count();
    if (k <= 4) {
      for (std::uint32_t source = 0; source < hosts; ++source)
        for (std::uint32_t destination = 0; destination < hosts; ++destination)
          for (std::uint32_t queue_pair = 0; queue_pair < 4; ++queue_pair)
            if (source != destination) result.push_back({NodeId(source), NodeId(destination), queue_pair});
    } else {
      for (std::uint32_t i = 0; i < 5000; ++i) {
        const auto source = static_cast<std::uint32_t>(random_below(hosts, seed, i, 0));
        const auto other = static_cast<std::uint32_t>(random_below(hosts - 1, seed, i, 1));
        result.push_back({NodeId(source), NodeId((source + 1 + other) % hosts), i});
      }
    }
    return result;
  }
};

TEST_P(FatTreeRoutingOf, FormulaEqualsTablesAtEveryNode) {
  for (std::uint32_t at = 0; at < graph.node_count(); ++at) {
    std::vector<RouteRequest> requests;
    for (const RouteRequest& flow : flows())
      if (flow.destination.value() != at) requests.push_back(flow);
    expect_same_choices(topology, *formula, *tables, NodeId(at), requests);
  }
}

TEST_P(FatTreeRoutingOf, CandidatesAreAllShortestPaths) { expect_all_shortest_paths(topology, *formula); }

TEST_P(FatTreeRoutingOf, PathsAreShortestAndLinked) {
  for (const RouteRequest& flow : flows()) {
    const auto path = trace_path(topology, *formula, flow);
    // 2 links below one edge switch, 4 in one pod, 6 otherwise
    const std::uint32_t half = k / 2;
    const bool same_edge = flow.source.value() / half == flow.destination.value() / half;
    const bool same_pod = flow.source.value() / (half * half) == flow.destination.value() / (half * half);
    ASSERT_EQ(path.size(), same_edge ? 2U : same_pod ? 4U : 6U);
    NodeId at = flow.source;
    for (const PathHop& hop : path) {
      ASSERT_EQ(hop.node, at);
      const PortEnd& port = graph.ports(at)[hop.port];
      ASSERT_EQ(hop.directed_link, 2 * port.link.value() + port.direction);
      ASSERT_EQ(graph.link(port.link).ends[port.direction], at);
      at = port.peer;
    }
    ASSERT_EQ(at, flow.destination);
  }
}

TEST_P(FatTreeRoutingOf, BatchesEqualSingleRequests) {
  const auto requests = flows();
  for (const NodeId at : {NodeId(graph.host_count()), NodeId(graph.node_count() - 1)}) {
    std::vector<std::uint16_t> batch(requests.size());
    formula->route(at, requests, batch.data());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      std::uint16_t port = 0;
      formula->route(at, {&requests[i], 1}, &port);
      ASSERT_EQ(port, batch[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, FatTreeRoutingOf, ::testing::Values(2U, 4U, 6U, 8U));

TEST(FatTreeRouting, AllPathsAreTakenEvenlyAndTiersChooseApart) {
  // Flows between two pods of k = 8: (k/2)^2 cores. Uniform choices at both tiers load every core alike; a chi-square
  // sum over c cells has mean c-1 and variance 2(c-1). If tiers chose alike, only k/2 cores would be used.
  const std::uint32_t k = 8;
  const Topology topology = fat_tree(k);
  const auto algorithm = routing("fat_tree", topology);
  const std::uint32_t cores = k * k / 4;
  const std::uint32_t pod_hosts = k * k / 4;
  std::vector<double> count(cores, 0);
  double total = 0;
  for (std::uint32_t source = 0; source < pod_hosts; ++source) {
    for (std::uint32_t destination = pod_hosts; destination < topology.graph.host_count(); ++destination) {
      for (std::uint32_t queue_pair = 0; queue_pair < 4; ++queue_pair) {
        const auto path = trace_path(topology, *algorithm, {NodeId(source), NodeId(destination), queue_pair});
        ASSERT_EQ(path.size(), 6U);
        count.at(path[3].node.value() - (topology.graph.node_count() - cores)) += 1;
        total += 1;
      }
    }
  }
  double sum = 0;
  for (const double c : count) sum += (c - total / cores) * (c - total / cores) / (total / cores);
  EXPECT_LT(sum, (cores - 1) + 4 * std::sqrt(2.0 * (cores - 1)));
}

TEST(FatTreeRouting, RefusesOtherTopologies) {
  try {
    routing("fat_tree", ring(4));
    ADD_FAILURE();
  } catch (const InputError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("found 'graph'"), std::string::npos) << what;
    EXPECT_NE(what.find("shortest_path"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace weft::shortest_path_routing_test
