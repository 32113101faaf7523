// SPDX-License-Identifier: GPL-2.0-only
// Routing packet by packet: lengths of ways, what queues change, and that no cycle of lanes closes.
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "graph/shapes/dragonfly_shape.hpp"
#include "routing/algorithm/deadlock_check.hpp"
#include "tests/literals.hpp"
#include "tests/routing/formulas.hpp"

namespace weft::lanes_routing_test {
namespace {

using namespace literals;
using test::distances_from;
using test::machine;
using test::prepared_routing;

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
  NodeId at = flow.source;
  AdaptiveRequest request{flow, psn, AdaptiveRequest::no_port, 0, 0};
  while (at != flow.destination) {
    const auto ports = topology.graph.ports(at);
    std::vector<Bytes> queued(ports.size());
    if (random_queues)
      for (std::size_t i = 0; i < queued.size(); ++i)
        queued[i] = Bytes(static_cast<std::int64_t>(random_below(10'000, psn, at.value(), i)));
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
      ADD_FAILURE() << "no end of the way " << flow.source.value() << " -> " << flow.destination.value();
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
  // The cycle is one: each channel ends where the next begins.
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

TEST(Deadlock, LanesBreakTheCycles) {
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
    for (const std::string name : {"dragonfly_minimal_lanes", "dragonfly_valiant", "dragonfly_ugal", "dragonfly_ugal_g",
                                   "dragonfly_progressive", "dragonfly_ugal_local"})
      expect_no_deadlock("{kind: dragonfly, p: 1, a: 4, h: 2" + more, name);
  for (const std::string more : {"", ", arrangement: palmtree", ", g: 4"})
    for (const std::string name :
         {"dragonfly_plus_valiant", "dragonfly_plus_ugal", "dragonfly_plus_ugal_g", "dragonfly_plus_progressive"})
      expect_no_deadlock("{kind: dragonfly_plus, p: 1, leaves: 3, spines: 3, h: 2" + more, name);
}

TEST(DimensionOrderLanes, TakesTheWaysOfDimensionOrder) {
  const Topology topology = machine("{kind: torus, dims: [5, 2, 4]" + links);
  const auto plain = prepared_routing("dimension_order", topology);
  const auto lanes = prepared_routing("dimension_order_lanes", topology);
  for (std::uint32_t source = 0; source < 40; ++source) {
    for (std::uint32_t destination = 0; destination < 40; ++destination) {
      if (source == destination) continue;
      const auto way = trace_path(topology, *plain, {NodeId(source), NodeId(destination), 3});
      const auto steps = walk(topology, *lanes, {NodeId(source), NodeId(destination), 3}, 1, true);
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
          const auto steps = walk(topology, *routing, {NodeId(source), NodeId(destination), 0}, psn, psn % 2 == 1);
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
  const AdaptiveRequest request{{NodeId(0), NodeId(8), 0}, 0, 0, 0, 0};
  for (const std::uint16_t busy : {std::uint16_t{1}, std::uint16_t{2}}) {
    std::vector<Bytes> queued(3);
    queued[busy] = 1_B;
    EXPECT_EQ(routing->choose(NodeId(9), request, queued).port, 3 - busy);
  }
}

/// The first packet of the flow whose detour begins at another port than `short_way`: it takes that one while the queue
/// of `short_way`, and no other, is long.
std::uint32_t packet_that_turns_away(const RoutingAlgorithm& ugal, NodeId at, const RouteRequest& flow,
                                     std::uint16_t short_way, std::uint16_t ports) {
  std::vector<Bytes> queued(ports);
  queued[short_way] = 100'000_B;
  std::uint32_t psn = 0;
  while (psn < 64 && ugal.choose(at, {flow, psn, 0, 0, 0}, queued).port == short_way) ++psn;
  EXPECT_LT(psn, 64U);
  return psn;
}

/// Links between switches of the way, whose lanes are 0, 1, 2, ...
std::size_t hops_in_lanes(const std::vector<Step>& steps) {
  for (std::size_t i = 1; i + 1 < steps.size(); ++i) EXPECT_EQ(steps[i].lane, i - 1);
  return steps.size() - 2;
}

// Hoffman-Singleton graph: of diameter 2, so that minimal ways take 2 lanes and detours 4 (Besta, Hoefler 2014, section
// IV.D). Twisted 4 x 4 x 8: breadth-first search.
TEST(ShortestPathLanes, CountTheLinksOfShortestPaths) {
  for (const auto& [text, lanes] : std::map<std::string, unsigned>{
           {"{kind: slim_fly, q: 5, p: 1", 2},
           {"{kind: torus, dims: [4, 4, 8], twist: [{across: 0, shift: [0, 0, 4]}, {across: 1, shift: [0, 0, 4]}]",
            6}}) {
    SCOPED_TRACE(text);
    const Topology topology = machine(text + links);
    const auto routing = prepared_routing("shortest_path_lanes", topology);
    EXPECT_EQ(routing->lanes(), lanes);
    for (std::uint32_t source = 0; source < topology.graph.host_count(); source += 7) {
      const auto distances = distances_from(topology.graph, NodeId(source));
      for (std::uint32_t destination = 0; destination < topology.graph.host_count(); ++destination) {
        if (source == destination) continue;
        const auto steps = walk(topology, *routing, {NodeId(source), NodeId(destination), 0}, 1, true);
        EXPECT_EQ(hops_in_lanes(steps) + 2, distances.hops[destination]);
      }
    }
  }
  expect_deadlock("{kind: slim_fly, q: 5, p: 1", "shortest_path");
  expect_no_deadlock("{kind: slim_fly, q: 5, p: 1", "shortest_path_lanes");
}

// A detour over each of the 48 other routers is equally likely: of two hops each to and from it if it is no neighbour,
// which 7 are. Valiant takes one always, UGAL only if the queue of the minimal way is longer.
TEST(ShortestPathLanes, DetoursGoOverAnotherSwitch) {
  const Topology topology = machine("{kind: slim_fly, q: 5, p: 1" + links);
  const auto valiant = prepared_routing("shortest_path_valiant", topology);
  const auto ugal = prepared_routing("shortest_path_ugal", topology);
  EXPECT_EQ(valiant->lanes(), 4U);
  EXPECT_FALSE(valiant->reorders());
  EXPECT_TRUE(ugal->reorders());
  double sum = 0;
  std::uint32_t ways = 0;
  for (std::uint32_t source = 0; source < 50; ++source) {
    const auto distances = distances_from(topology.graph, NodeId(source));
    for (std::uint32_t destination = 0; destination < 50; ++destination) {
      if (source == destination) continue;
      for (std::uint32_t queue_pair = 0; queue_pair < 8; ++queue_pair) {
        const RouteRequest flow{NodeId(source), NodeId(destination), queue_pair};
        const std::size_t hops = hops_in_lanes(walk(topology, *valiant, flow, 0, true));
        ASSERT_GE(hops, 2U);
        ASSERT_LE(hops, 4U);
        sum += static_cast<double>(hops);
        ++ways;
        ASSERT_EQ(hops_in_lanes(walk(topology, *ugal, flow, queue_pair, false)) + 2, distances.hops[destination]);
      }
    }
  }
  // Each half of a detour ends at one of 48 of the 49 others: 7 of them one hop away, 42 two. The mean over all pairs
  // is 2 (7 + 84) / 49 = 3.714. Hops of a way have a variance below 1.
  EXPECT_NEAR(sum / ways, 2.0 * 91 / 49, 5 / std::sqrt(ways));
  const NodeId first(50);
  const RouteRequest flow{NodeId(0), NodeId(30), 0};
  std::uint16_t short_way = 0;
  ugal->route(first, {&flow, 1}, &short_way);
  std::vector<Bytes> queued(8);
  queued[short_way] = 100'000_B;
  std::set<std::uint16_t> taken;
  for (std::uint32_t psn = 0; psn < 200; ++psn) taken.insert(ugal->choose(first, {flow, psn, 0, 0, 0}, queued).port);
  EXPECT_EQ(taken.size(), 7U);  // all links: one leads minimally, over it also go detours behind the same neighbour
  expect_no_deadlock("{kind: slim_fly, q: 5, p: 1", "shortest_path_valiant");
  expect_no_deadlock("{kind: slim_fly, q: 5, p: 1", "shortest_path_ugal");
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
        const auto steps = walk(topology, *routing, {NodeId(source), NodeId(destination), queue_pair}, 0, true);
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

// Group 0 has one global link to each of the 8 others: two at router 0 itself, two at each router behind its local
// ports. The 7 groups that are not the destination's are equally likely for each packet, so that one flow alone uses
// all ports.
TEST_F(Dragonfly, UgalIsMinimalOnEmptyQueuesAndSpreadsOneFlowsDetoursOnALongMinimalOne) {
  for (const std::string name : {"dragonfly_ugal", "dragonfly_ugal_g", "dragonfly_progressive"}) {
    const auto adaptive = prepared_routing(name, topology);
    const auto minimal = prepared_routing("dragonfly_minimal", topology);
    for (std::uint32_t destination = 8; destination < hosts; ++destination) {
      const RouteRequest flow{NodeId(0), NodeId(destination), 5};
      EXPECT_EQ(walk(topology, *adaptive, flow, 0, false).size(), trace_path(topology, *minimal, flow).size());
      const NodeId first(hosts);
      std::vector<Bytes> queued(7);
      std::uint16_t short_way = 0;
      minimal->route(first, {&flow, 1}, &short_way);
      queued[short_way] = 100'000_B;
      constexpr std::uint32_t packets = 700;
      std::vector<std::uint32_t> sent(7);
      for (std::uint32_t psn = 0; psn < packets; ++psn)
        ++sent[adaptive->choose(first, {flow, psn, 0, 0, 0}, queued).port];
      double chi_square = 0;
      for (std::uint16_t port = 2; port < 7; ++port) {
        // A local short way is also that of the detour over the other group behind it.
        const double groups = (port < 5 ? 2 : 1) - (port == short_way ? 1 : 0);
        const double mean = packets * groups / 7;
        EXPECT_EQ(sent[port] > 0, groups > 0) << name << " to " << destination << ", port " << port;
        if (groups > 0) chi_square += (sent[port] - mean) * (sent[port] - mean) / mean;
      }
      // At most 4 degrees of freedom: mean 4, six standard deviations sqrt(8) above it.
      EXPECT_LT(chi_square, 4 + 6 * std::sqrt(8.0)) << name << " to " << destination;
    }
  }
}

TEST_F(Dragonfly, WaysOfAdaptiveRoutingAreOfPromisedLength) {
  for (const std::string name :
       {"dragonfly_minimal_lanes", "dragonfly_ugal", "dragonfly_ugal_g", "dragonfly_progressive"}) {
    const auto routing = prepared_routing(name, topology);
    bool detours = false;
    for (std::uint32_t i = 0; i < 20'000; ++i) {
      const auto source = static_cast<std::uint32_t>(random_below(hosts, 7, i, 0));
      const auto destination = static_cast<std::uint32_t>((source + 1 + random_below(hosts - 1, 7, i, 1)) % hosts);
      const std::string text = classes(walk(topology, *routing, {NodeId(source), NodeId(destination), i}, i, true));
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

// Router 0 to router 1 of the same group: the detours over routers 2 and 3 are equally likely for each packet, two
// local links in lanes 0 and 1. Of 400 packets 200 take each, with a standard deviation of 10; six of these.
TEST_F(Dragonfly, LocalUgalTurnsAwayWithinAGroup) {
  const auto local = prepared_routing("dragonfly_ugal_local", topology);
  const RouteRequest flow{NodeId(0), NodeId(2), 5};
  const NodeId first(hosts);
  const std::uint16_t short_way = 2;  // the first local port
  std::vector<Bytes> queued(7);
  EXPECT_EQ(local->choose(first, {flow, 0, 0, 0, 0}, queued).port, short_way);
  queued[short_way] = 100'000_B;
  std::map<std::uint16_t, int> sent;
  constexpr std::uint32_t packets = 400;
  for (std::uint32_t psn = 0; psn < packets; ++psn) {
    const RouteChoice choice = local->choose(first, {flow, psn, 0, 0, 0}, queued);
    EXPECT_EQ(choice.lane, 0);
    ++sent[choice.port];
    // At the third router the packet goes on to its own, whatever the queues there.
    const PortEnd& end = topology.graph.ports(first)[choice.port];
    const std::vector<Bytes> long_queues(7, 100'000_B);
    const RouteChoice next =
        local->choose(end.peer, {flow, psn, end.peer_port, choice.lane, choice.state}, long_queues);
    EXPECT_EQ(next.lane, 1);
    EXPECT_EQ(topology.graph.ports(end.peer)[next.port].peer, NodeId(hosts + 1));
  }
  EXPECT_EQ(sent.size(), 2U);
  EXPECT_NEAR(sent[3], 200, 60);
  EXPECT_NEAR(sent[4], 200, 60);
  // No other UGAL does so, and none goes away from the router of both hosts.
  EXPECT_EQ(prepared_routing("dragonfly_ugal", topology)->choose(first, {flow, 0, 0, 0, 0}, queued).port, short_way);
  queued.assign(7, Bytes());
  queued[1] = 100'000_B;
  EXPECT_EQ(local->choose(first, {{NodeId(0), NodeId(1), 5}, 0, 0, 0, 0}, queued).port, 1);
}

// Every router reports its global ports, and no others, to the other routers of its group.
TEST_F(Dragonfly, RoutersReportTheirGlobalLinks) {
  const auto global = prepared_routing("dragonfly_ugal_g", topology);
  EXPECT_EQ(global->max_reported(), 2U);
  EXPECT_EQ(global->reports(NodeId(0)).count, 0U);
  for (std::uint32_t router = 0; router < 36; ++router) {
    const QueueReports reports = global->reports(NodeId(hosts + router));
    const auto ports = topology.graph.ports(NodeId(hosts + router));
    for (std::uint32_t port = 0; port < ports.size(); ++port) {
      const std::string& name = topology.link_classes[topology.link_class[ports[port].link.value()]];
      EXPECT_EQ(port - reports.first < reports.count, name == "global") << router << " " << port;
      EXPECT_EQ(port - reports.first_listener < reports.listeners, name == "local") << router << " " << port;
    }
  }
  EXPECT_EQ(prepared_routing("dragonfly_ugal", topology)->max_reported(), 0U);
}

// A long queue at the other router with the global link makes the packet turn away; queues off its path do not.
TEST_F(Dragonfly, GlobalUgalSeesTheQueuesOfItsGroup) {
  const auto local = prepared_routing("dragonfly_ugal", topology);
  const auto global = prepared_routing("dragonfly_ugal_g", topology);
  const auto minimal = prepared_routing("dragonfly_minimal", topology);
  const NodeId first(hosts);
  const std::vector<Bytes> queued(7);
  std::uint32_t tried = 0;
  for (std::uint32_t destination = 8; destination < hosts; ++destination) {
    const RouteRequest flow{NodeId(0), NodeId(destination), 5};
    const auto way = trace_path(topology, *minimal, flow);
    const std::uint16_t short_way = way[1].port;
    if (short_way >= 5) continue;
    const std::uint32_t psn = packet_that_turns_away(*local, first, flow, short_way, 7);
    ++tried;
    const std::uint16_t far_port = way[2].port;  // of the other router: 5 or 6
    for (std::uint16_t port = 2; port < 5; ++port) {
      for (std::uint16_t slot = 0; slot < 2; ++slot) {
        std::vector<Bytes> reported(std::size_t{7} * 2);
        reported[port * 2U + slot] = 100'000_B;
        const AdaptiveRequest request{flow, psn, 0, 0, 0, reported};
        const bool on_the_way = port == short_way && slot == far_port - 5;
        EXPECT_EQ(global->choose(first, request, queued).port != short_way, on_the_way);
        EXPECT_EQ(local->choose(first, request, queued).port, short_way);
      }
    }
  }
  EXPECT_GT(tried, 20U);
}

class DragonflyPlus : public ::testing::Test {
 protected:
  // Seven groups of 3 leaves with 2 hosts and 3 spines.
  const Topology topology = machine("{kind: dragonfly_plus, p: 2, leaves: 3, spines: 3, h: 2" + links);
  const std::uint32_t hosts = 42;

  /// u and d in a group, g between groups.
  std::string ways(const std::vector<Step>& steps) const {
    std::string text;
    for (const Step& step : steps) {
      const std::string& name = topology.link_classes[step.link_class];
      if (name == "global") text += 'g';
      if (name == "local") text += topology.graph.node(NodeId(step.node)).tier == 1 ? 'u' : 'd';
    }
    return text;
  }
};

TEST_F(DragonflyPlus, WaysAreUpOverDownAndAtMostOnceMore) {
  for (const std::string name : {"dragonfly_plus_minimal", "dragonfly_plus_valiant", "dragonfly_plus_ugal",
                                 "dragonfly_plus_ugal_g", "dragonfly_plus_progressive"}) {
    const auto routing = prepared_routing(name, topology);
    std::set<std::string> seen;
    for (std::uint32_t i = 0; i < 20'000; ++i) {
      const auto source = static_cast<std::uint32_t>(random_below(hosts, 7, i, 0));
      const auto destination = static_cast<std::uint32_t>((source + 1 + random_below(hosts - 1, 7, i, 1)) % hosts);
      const std::string way = ways(walk(topology, *routing, {NodeId(source), NodeId(destination), i}, i, true));
      if (source / 6 == destination / 6)
        ASSERT_EQ(way, source / 2 == destination / 2 ? "" : "ud");
      else
        seen.insert(way);
    }
    std::set<std::string> expected{"ugd"};
    if (name == "dragonfly_plus_valiant") expected.clear();
    // In the group between, the spine has a link to the destination's group, or a leaf leads to one that has.
    if (name != "dragonfly_plus_minimal") expected.insert({"uggd", "ugdugd"});
    EXPECT_EQ(seen, expected) << name;
  }
}

TEST_F(DragonflyPlus, LeavesAndSpinesTurnAwayFromLongQueues) {
  const auto local = prepared_routing("dragonfly_plus_ugal", topology);
  const auto global = prepared_routing("dragonfly_plus_ugal_g", topology);
  const auto progressive = prepared_routing("dragonfly_plus_progressive", topology);
  const auto minimal = prepared_routing("dragonfly_plus_minimal", topology);
  const NodeId leaf(hosts);
  for (std::uint32_t destination = 6; destination < hosts; ++destination) {
    const RouteRequest flow{NodeId(0), NodeId(destination), 5};
    const auto way = trace_path(topology, *minimal, flow);
    const std::uint16_t short_way = way[1].port;
    const std::uint16_t spine_port = way[2].port;
    const std::vector<Bytes> queued(5);
    std::vector<Bytes> reported(std::size_t{5} * 2);
    const AdaptiveRequest request{flow, packet_that_turns_away(*local, leaf, flow, short_way, 5), 0, 0, 0, reported};
    const RouteChoice direct = progressive->choose(leaf, request, queued);
    EXPECT_EQ(direct.port, short_way);
    // The spine: its other global port if the one of the way is long.
    std::vector<Bytes> at_spine(5);
    at_spine[spine_port] = 100'000_B;
    std::set<std::uint16_t> taken;
    for (std::uint32_t psn = 0; psn < 16; ++psn)
      taken.insert(progressive->choose(way[2].node, {flow, psn, 0, 0, direct.state}, at_spine).port);
    EXPECT_EQ(taken, (std::set<std::uint16_t>{3, 4}));
    EXPECT_EQ(local->choose(way[2].node, {flow, 0, 0, 0, local->choose(leaf, request, queued).state}, at_spine).port,
              spine_port);
    reported[short_way * 2U + (spine_port - 3U)] = 100'000_B;
    EXPECT_NE(global->choose(leaf, request, queued).port, short_way);
    EXPECT_EQ(local->choose(leaf, request, queued).port, short_way);
  }
}

}  // namespace
}  // namespace weft::lanes_routing_test
