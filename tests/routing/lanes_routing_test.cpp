// SPDX-License-Identifier: GPL-2.0-only
// Routing packet by packet: lengths of ways, what queues change, and that no circle of lanes closes.
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "graph/dragonfly_shape.hpp"
#include "routing/deadlock_check.hpp"
#include "tests/routing/formulas.hpp"

namespace weft {
namespace {

using testing::distances_from;
using testing::machine;
using testing::prepared_routing;

const std::string links = ", link_rate: 100 Gb/s, link_delay: 1 us}";

struct Step {
  std::uint32_t node;
  std::uint8_t link_class;
  std::uint8_t lane;
};

/// The way of a packet through queues of random length, or empty ones.
std::vector<Step> walk(const Topology& topology, const RoutingAlgorithm& routing, const RouteRequest& flow,
                       std::uint32_t psn, bool random_queues) {
  std::vector<Step> steps;
  NodeId at(flow.source);
  AdaptiveRequest request{flow, psn, AdaptiveRequest::no_port, 0, 0};
  while (at.value() != flow.destination) {
    const auto ports = topology.graph.ports(at);
    std::vector<std::int64_t> queued(ports.size(), 0);
    if (random_queues)
      for (std::size_t i = 0; i < queued.size(); ++i)
        queued[i] = static_cast<std::int64_t>(random_below(10'000, psn, at.value(), i));
    const RouteChoice choice = routing.choose(at, request, queued);
    EXPECT_LT(choice.port, ports.size());
    EXPECT_LT(choice.lane, routing.lanes());
    const PortEnd& end = ports[choice.port];
    steps.push_back({at.value(), topology.link_class[end.link.value()], choice.lane});
    at = end.peer;
    request.in_port = end.peer_port;
    request.lane = choice.lane;
    request.state = choice.state;
    if (steps.size() > 100) {
      ADD_FAILURE() << "no end of the way " << flow.source << " -> " << flow.destination;
      break;
    }
  }
  return steps;
}

void expect_no_deadlock(const std::string& text, const std::string& name) {
  SCOPED_TRACE(text + " " + name);
  const Topology topology = machine(text + links);
  const DeadlockReport report = check_deadlock(topology, *prepared_routing(name, topology));
  EXPECT_TRUE(report.free_of_deadlock()) << to_text(topology, report.cycle);
  EXPECT_GT(report.dependencies, 0U);
}

void expect_deadlock(const std::string& text, const std::string& name) {
  SCOPED_TRACE(text + " " + name);
  const Topology topology = machine(text + links);
  const DeadlockReport report = check_deadlock(topology, *prepared_routing(name, topology));
  ASSERT_FALSE(report.free_of_deadlock());
  // The circle is one: each channel ends where the next begins.
  for (std::size_t i = 0; i < report.cycle.size(); ++i) {
    const std::uint32_t here = report.cycle[i].directed_link;
    const std::uint32_t next = report.cycle[(i + 1) % report.cycle.size()].directed_link;
    EXPECT_EQ(topology.graph.link(LinkId(here / 2)).ends[1 - here % 2],
              topology.graph.link(LinkId(next / 2)).ends[next % 2]);
  }
}

TEST(Deadlock, OfOneLane) {
  // Rings close: a torus of more than 4 in a ring, a dragonfly with local links before and after global ones.
  expect_deadlock("{kind: torus, dims: [5]", "dimension_order");
  expect_deadlock("{kind: torus, dims: [8, 3]", "dimension_order");
  expect_deadlock("{kind: dragonfly, p: 1, a: 4, h: 2", "dragonfly_minimal");
  expect_deadlock("{kind: torus, dims: [5, 5]", "shortest_path");
  // Trees, meshes in order of dimensions, and HyperX have none.
  expect_no_deadlock("{kind: fat_tree, k: 4", "fat_tree");
  expect_no_deadlock("{kind: xgft, m: [4, 4, 2], w: [1, 2, 2], p: [1, 2, 1]", "up_down");
  expect_no_deadlock("{kind: xgft, m: [4, 4, 2], w: [1, 2, 2], p: [1, 2, 1]", "d_mod_k");
  expect_no_deadlock("{kind: mesh, dims: [5, 4, 3]", "dimension_order");
  expect_no_deadlock("{kind: torus, dims: [3, 3]", "dimension_order");  // no way turns round a ring of 3
  expect_no_deadlock("{kind: hyperx, dims: [3, 4, 2], parallel: 2", "dimension_order");
  expect_no_deadlock("{kind: star, hosts: 4", "shortest_path");
  expect_no_deadlock("{kind: dragonfly_plus, p: 1, leaves: 2, spines: 2, h: 2", "dragonfly_plus_minimal");
}

TEST(Deadlock, LanesBreakTheCircles) {
  for (const std::string text : {"{kind: torus, dims: [5]", "{kind: torus, dims: [4, 4]", "{kind: torus, dims: [8, 3]",
                                 "{kind: torus, dims: [5, 2, 4]", "{kind: mesh, dims: [5, 3]",
                                 "{kind: torus, dims: [6, 4], wrap: [true, false], hosts_per_router: 2"}) {
    expect_no_deadlock(text, "dimension_order_lanes");
    expect_no_deadlock(text, "minimal_adaptive");
  }
  expect_no_deadlock("{kind: hyperx, dims: [3, 4, 2], parallel: 2", "minimal_adaptive");
  expect_no_deadlock("{kind: hypercube, dimensions: 4", "minimal_adaptive");
  for (const std::string more :
       {"", ", arrangement: palmtree", ", arrangement: relative", ", arrangement: circulant", ", g: 5"})
    for (const std::string name :
         {"dragonfly_minimal_lanes", "dragonfly_valiant", "dragonfly_ugal", "dragonfly_progressive"})
      expect_no_deadlock("{kind: dragonfly, p: 1, a: 4, h: 2" + more, name);
}

TEST(DimensionOrderLanes, TakesTheWaysOfDimensionOrder) {
  const Topology topology = machine("{kind: torus, dims: [5, 2, 4]" + links);
  const auto plain = prepared_routing("dimension_order", topology);
  const auto lanes = prepared_routing("dimension_order_lanes", topology);
  for (std::uint32_t source = 0; source < 40; ++source) {
    for (std::uint32_t destination = 0; destination < 40; ++destination) {
      if (source == destination) continue;
      const auto way = trace_path(topology, *plain, {source, destination, 3});
      const auto steps = walk(topology, *lanes, {source, destination, 3}, 1, true);
      ASSERT_EQ(way.size(), steps.size());
      for (std::size_t i = 0; i < way.size(); ++i) ASSERT_EQ(way[i].node.value(), steps[i].node);
    }
  }
}

TEST(MinimalAdaptive, IsMinimalAndSpreads) {
  for (const std::string text : {"{kind: torus, dims: [4, 4, 3]", "{kind: mesh, dims: [4, 5]",
                                 "{kind: hyperx, dims: [3, 3, 3]", "{kind: torus, dims: [2, 6], hosts_per_router: 2"}) {
    SCOPED_TRACE(text);
    const Topology topology = machine(text + links);
    const auto routing = prepared_routing("minimal_adaptive", topology);
    std::set<std::vector<std::uint32_t>> ways;
    for (std::uint32_t source = 0; source < topology.graph.host_count(); ++source) {
      const auto distances = distances_from(topology.graph, NodeId(source));
      for (std::uint32_t destination = 0; destination < topology.graph.host_count(); ++destination) {
        if (source == destination) continue;
        for (std::uint32_t psn = 0; psn < 4; ++psn) {
          const auto steps = walk(topology, *routing, {source, destination, 0}, psn, psn % 2 == 1);
          ASSERT_EQ(steps.size(), distances.hops[destination]);
          std::vector<std::uint32_t> nodes;
          for (const Step& step : steps) nodes.push_back(step.node);
          nodes.push_back(destination);
          ways.insert(nodes);
        }
      }
    }
    const std::uint64_t pairs = std::uint64_t{topology.graph.host_count()} * (topology.graph.host_count() - 1);
    EXPECT_GT(ways.size(), pairs);
  }
}

TEST(MinimalAdaptive, TakesTheShorterQueue) {
  const Topology topology = machine("{kind: mesh, dims: [3, 3]" + links);
  const auto routing = prepared_routing("minimal_adaptive", topology);
  // From router 0 to router 8: upwards in either dimension (ports 1 and 2).
  const AdaptiveRequest request{{0, 8, 0}, 0, 0, 0, 0};
  for (const std::uint16_t busy : {std::uint16_t{1}, std::uint16_t{2}}) {
    std::vector<std::int64_t> queued(3, 0);
    queued[busy] = 1;
    EXPECT_EQ(routing->choose(NodeId(9), request, queued).port, 3 - busy);
  }
}

class Dragonfly : public ::testing::Test {
 protected:
  const Topology topology = machine("{kind: dragonfly, p: 2, a: 4, h: 2" + links);
  const std::uint32_t hosts = 72;

  std::string classes(const std::vector<Step>& steps) const {
    std::string text;
    for (const Step& step : steps)
      if (topology.link_classes[step.link_class] != "host") text += topology.link_classes[step.link_class][0];
    return text;
  }
  bool same_group(std::uint32_t a, std::uint32_t b) const { return a / 8 == b / 8; }
};

TEST_F(Dragonfly, ValiantGoesOverOneOtherGroup) {
  const auto routing = prepared_routing("dragonfly_valiant", topology);
  std::map<std::uint32_t, std::uint32_t> over;
  for (std::uint32_t source = 0; source < hosts; ++source) {
    for (std::uint32_t destination = 0; destination < hosts; ++destination) {
      if (source == destination) continue;
      for (std::uint32_t queue_pair = 0; queue_pair < 4; ++queue_pair) {
        const auto steps = walk(topology, *routing, {source, destination, queue_pair}, 0, true);
        const std::string text = classes(steps);
        if (same_group(source, destination)) {
          ASSERT_LE(text.size(), 1U);
          continue;
        }
        ASSERT_EQ(std::count(text.begin(), text.end(), 'g'), 2) << text;
        ASSERT_LE(text.size(), 5U);
        ASSERT_EQ(text.find("ll"), std::string::npos) << text;
        std::set<std::uint32_t> groups;
        for (const Step& step : steps) groups.insert(topology.graph.node(NodeId(step.node)).group);
        ASSERT_EQ(groups.size(), 3U);
        for (const std::uint32_t group : groups)
          if (group != source / 8 && group != destination / 8) ++over[group];
      }
    }
  }
  // 72 * 64 * 4 ways over nine groups; each group is equally likely. Chi-square with 8 degrees of freedom: mean 8, four
  // standard deviations sqrt(16) above it are 24.
  double sum = 0;
  const double mean = 72.0 * 64 * 4 / 9;
  for (const auto& [group, count] : over) sum += (count - mean) * (count - mean) / mean;
  EXPECT_EQ(over.size(), 9U);
  EXPECT_LT(sum, 8 + 4 * std::sqrt(16.0));
}

TEST_F(Dragonfly, UgalIsMinimalOnEmptyQueuesAndValiantOnALongMinimalOne) {
  for (const std::string name : {"dragonfly_ugal", "dragonfly_progressive"}) {
    const auto adaptive = prepared_routing(name, topology);
    const auto minimal = prepared_routing("dragonfly_minimal", topology);
    const auto valiant = prepared_routing("dragonfly_valiant", topology);
    for (std::uint32_t destination = 8; destination < hosts; ++destination) {
      const RouteRequest flow{0, destination, 5};
      EXPECT_EQ(walk(topology, *adaptive, flow, 0, false).size(), trace_path(topology, *minimal, flow).size());
      const NodeId first(hosts);
      std::vector<std::int64_t> queued(7, 0);
      std::uint16_t short_way = 0;
      minimal->route(first, {&flow, 1}, &short_way);
      queued[short_way] = 100'000;
      const AdaptiveRequest request{flow, 0, 0, 0, 0};
      const auto detour = valiant->choose(first, request, queued);
      // Both ways may begin with the same local link; then there is nothing to choose between.
      const RouteChoice choice = adaptive->choose(first, request, queued);
      EXPECT_EQ(choice.port, detour.port);
    }
  }
}

TEST_F(Dragonfly, WaysOfAdaptiveRoutingAreOfPromisedLength) {
  for (const std::string name : {"dragonfly_minimal_lanes", "dragonfly_ugal", "dragonfly_progressive"}) {
    const auto routing = prepared_routing(name, topology);
    bool detours = false;
    for (std::uint32_t i = 0; i < 20'000; ++i) {
      const auto source = static_cast<std::uint32_t>(random_below(hosts, 7, i, 0));
      const auto destination = static_cast<std::uint32_t>((source + 1 + random_below(hosts - 1, 7, i, 1)) % hosts);
      const std::string text = classes(walk(topology, *routing, {source, destination, i}, i, true));
      const auto globals = std::count(text.begin(), text.end(), 'g');
      ASSERT_LE(globals, name == "dragonfly_minimal_lanes" ? 1 : 2) << text;
      ASSERT_LE(text.size(), name == "dragonfly_progressive" ? 6U : 5U) << text;
      if (globals == 2) detours = true;
      const std::size_t twice = text.find("ll");
      if (twice != std::string::npos) {
        ASSERT_TRUE(name == "dragonfly_progressive" && twice == 0 && globals == 2) << text;
      }
    }
    EXPECT_EQ(detours, name != "dragonfly_minimal_lanes");
  }
}

}  // namespace
}  // namespace weft
