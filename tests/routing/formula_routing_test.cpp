// SPDX-License-Identifier: GPL-2.0-only
// Routing by formula: shortest where it promises to be, of the promised length elsewhere, and with the link loads of
// the literature.
#include <cmath>

#include <fmt/format.h>

#include "graph/shapes/dragonfly_shape.hpp"
#include "tests/routing/formulas.hpp"

namespace weft::formula_routing_test {
namespace {

using test::add_load;
using test::expect_minimal;
using test::machine;
using test::most_loaded;
using test::permutation_loads;
using test::prepared_routing;
using test::uniform_loads;

const std::string links = ", link_rate: 100 Gb/s, link_delay: 1 us}";

TEST(DimensionOrder, IsMinimalOnTorusMeshAndHyperx) {
  for (const std::string text :
       {"{kind: torus, dims: [8]", "{kind: torus, dims: [4, 4, 2]", "{kind: torus, dims: [3, 5], hosts_per_router: 2",
        "{kind: torus, dims: [1, 6]", "{kind: torus, dims: [4, 5], wrap: [false, true]", "{kind: mesh, dims: [4, 3, 2]",
        "{kind: hyperx, dims: [3, 4], hosts_per_switch: 2, parallel: [2, 1]", "{kind: hypercube, dimensions: 5",
        "{kind: fully_connected, switches: 5, hosts_per_switch: 3"}) {
    SCOPED_TRACE(text);
    const Topology topology = machine(text + links);
    EXPECT_EQ(topology.routing, "dimension_order");
    expect_minimal(topology, *prepared_routing("dimension_order", topology));
  }
}

TEST(DimensionOrder, GoesThroughTheDimensionsInOrder) {
  const Topology topology = machine("{kind: torus, dims: [5, 4, 3]" + links);
  const auto routing = prepared_routing("dimension_order", topology);
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const auto source = static_cast<std::uint32_t>(random_below(60, 1, i, 0));
    const auto destination = static_cast<std::uint32_t>((source + 1 + random_below(59, 1, i, 1)) % 60);
    std::uint8_t last = 0;
    for (const PathHop& hop : trace_path(topology, *routing, {NodeId(source), NodeId(destination), i})) {
      const std::uint8_t link_class = topology.link_class[hop.directed_link / 2];
      if (link_class == 0) continue;  // host
      ASSERT_GE(link_class, last);
      last = link_class;
    }
  }
}

TEST(DimensionOrder, LoadsOfATorus) {
  // Dally and Towles 2004, section 3.3.2: uniform traffic loads a channel of a torus with k/8 (k even, the two ways
  // round shared alike), without traffic to oneself times N/(N-1). With N hosts on as many routers.
  const Topology torus = machine("{kind: torus, dims: [8, 8]" + links);
  const auto routing = prepared_routing("dimension_order", torus);
  EXPECT_NEAR(most_loaded(torus, uniform_loads(torus, *routing), "dimension 0"), 1.015873, 5e-7);
  EXPECT_NEAR(most_loaded(torus, uniform_loads(torus, *routing), "dimension 1"), 64.0 / 63, 1e-12);
  // Tornado in dimension 0, ceil(k/2) - 1 steps: each channel of the one direction carries 3.
  const auto tornado = [](std::uint32_t i) { return i / 8 * 8 + (i + 3) % 8; };
  EXPECT_NEAR(most_loaded(torus, permutation_loads(torus, *routing, tornado), "dimension 0"), 3, 1e-12);
  // Bit complement: 2. Transpose: all flows of a row enter one column, k/2 - 1 from either side and half of the one
  // opposite. Neighbour exchange: 1.
  const auto complement = [](std::uint32_t i) { return 63 - i; };
  EXPECT_NEAR(most_loaded(torus, permutation_loads(torus, *routing, complement), "dimension 0"), 2, 1e-12);
  const auto transpose = [](std::uint32_t i) { return i % 8 * 8 + i / 8; };
  EXPECT_NEAR(most_loaded(torus, permutation_loads(torus, *routing, transpose), "dimension 0"), 3.5, 1e-12);
  const auto neighbour = [](std::uint32_t i) { return i / 8 * 8 + (i + 1) % 8; };
  EXPECT_NEAR(most_loaded(torus, permutation_loads(torus, *routing, neighbour), "dimension 0"), 1, 1e-12);
  const Topology mesh = machine("{kind: mesh, dims: [8, 8]" + links);
  const auto in_mesh = prepared_routing("dimension_order", mesh);
  EXPECT_NEAR(most_loaded(mesh, permutation_loads(mesh, *in_mesh, transpose), "dimension 0"), 7, 1e-12);
}

TEST(DimensionOrder, RefusesWhatItCannotRoute) {
  for (const std::string text :
       {"{kind: star, hosts: 3", "{kind: torus, dims: [4, 4], twist: [{across: 0, shift: [0, 2]}]"}) {
    const Topology topology = machine(text + links);
    EXPECT_THROW(prepared_routing("dimension_order", topology), InputError);
    expect_minimal(topology, *prepared_routing("shortest_path", topology));
  }
}

const std::vector<std::string> trees = {"{kind: xgft, m: [5], w: [1]",
                                        "{kind: xgft, m: [8, 8], w: [1, 8]",
                                        "{kind: xgft, m: [8, 8], w: [1, 4], p: [1, 2]",
                                        "{kind: xgft, m: [4, 4, 8], w: [1, 4, 4]",
                                        "{kind: xgft, m: [2, 3, 4, 2], w: [1, 2, 1, 3], p: [1, 2, 1, 2]",
                                        "{kind: leaf_spine, leaves: 4, hosts_per_leaf: 3, spines: 2, parallel: 2"};

TEST(TreeRouting, UpDownTakesAllShortestPaths) {
  for (const std::string& text : trees) {
    SCOPED_TRACE(text);
    const Topology topology = machine(text + links);
    const auto formula = prepared_routing("up_down", topology);
    const auto tables = prepared_routing("shortest_path", topology);
    expect_minimal(topology, *formula);
    for (std::uint32_t destination = 0; destination < topology.graph.host_count(); ++destination)
      for (std::uint32_t at = 0; at < topology.graph.node_count(); ++at)
        if (at != destination) {
          // A switch beside the ancestors of the destination goes up; a path of fewest links may go down first.
          const auto up_or_down = formula->candidates(NodeId(at), NodeId(destination));
          const auto all = tables->candidates(NodeId(at), NodeId(destination));
          ASSERT_TRUE(std::includes(all.begin(), all.end(), up_or_down.begin(), up_or_down.end()));
        }
    for (std::uint32_t source = 0; source < topology.graph.host_count(); ++source)
      for (std::uint32_t destination = 0; destination < topology.graph.host_count(); ++destination)
        if (source != destination) {
          std::vector<double> loads(2 * topology.graph.link_count(), 0);
          ASSERT_EQ(add_load(topology, *formula, source, destination, 1, loads),
                    add_load(topology, *tables, source, destination, -1, loads));
        }
  }
}

TEST(TreeRouting, DModKHasNoConflictInShiftPermutations) {
  // Zahavi 2010: every shift permutation loads every link with at most 1 if m_l p_l <= w_{l+1} p_{l+1} at all levels,
  // and with 2 where half of the links upwards are missing.
  const std::vector<std::pair<std::string, double>> cases = {{"{kind: xgft, m: [8, 8], w: [1, 8]", 1},
                                                             {"{kind: xgft, m: [8, 8], w: [1, 4], p: [1, 2]", 1},
                                                             {"{kind: xgft, m: [4, 4, 4], w: [1, 4, 4]", 1},
                                                             {"{kind: xgft, m: [4, 4, 8], w: [1, 4, 4]", 1},
                                                             {"{kind: xgft, m: [8, 8], w: [1, 4]", 2}};
  for (const auto& [text, expected] : cases) {
    const Topology topology = machine(text + links);
    const auto routing = prepared_routing("d_mod_k", topology);
    expect_minimal(topology, *routing, 7);
    const std::uint32_t hosts = topology.graph.host_count();
    double max = 0;
    for (std::uint32_t shift = 1; shift < hosts; ++shift)
      for (const double load :
           permutation_loads(topology, *routing, [&](std::uint32_t i) { return (i + shift) % hosts; }))
        max = std::max(max, load);
    EXPECT_EQ(max, expected) << text;
  }
}

Topology dragonfly(std::uint32_t p, std::uint32_t a, std::uint32_t h, const std::string& more = "") {
  return machine(fmt::format("{{kind: dragonfly, p: {}, a: {}, h: {}{}{}", p, a, h, more, links));
}

TEST(DragonflyMinimal, IsLocalGlobalLocal) {
  for (const auto& [p, a, h] : std::vector<std::array<std::uint32_t, 3>>{{1, 2, 1}, {2, 4, 2}, {1, 4, 2}, {2, 6, 3}}) {
    for (const std::string& arrangement : GroupWiring::names()) {
      SCOPED_TRACE(fmt::format("{} {} {} {}", p, a, h, arrangement));
      const Topology topology = dragonfly(p, a, h, ", arrangement: " + arrangement);
      EXPECT_EQ(topology.routing, "dragonfly_minimal");
      const auto routing = prepared_routing("dragonfly_minimal", topology);
      const std::uint32_t hosts = topology.graph.host_count();
      std::map<std::size_t, std::uint64_t> histogram;
      for (std::uint32_t source = 0; source < hosts; ++source) {
        for (std::uint32_t destination = 0; destination < hosts; ++destination) {
          if (source == destination) continue;
          const auto path = trace_path(topology, *routing, {NodeId(source), NodeId(destination), 0});
          std::string classes;
          for (std::size_t i = 1; i + 1 < path.size(); ++i)
            classes += topology.link_classes[topology.link_class[path[i].directed_link / 2]][0];
          const bool same_group = source / (a * p) == destination / (a * p);
          const std::vector<std::string> allowed =
              same_group ? std::vector<std::string>{"", "l"} : std::vector<std::string>{"g", "lg", "gl", "lgl"};
          ASSERT_NE(std::find(allowed.begin(), allowed.end(), classes), allowed.end()) << classes;
          ++histogram[classes.size()];
        }
      }
      // Ordered pairs of hosts by hops between routers, in any wiring with one link per pair of groups.
      const std::uint64_t g = a * h + 1;
      EXPECT_EQ(histogram[0], g * a * p * (p - 1));
      EXPECT_EQ(histogram[1], g * a * (a - 1) * p * p + g * (g - 1) * p * p);
      EXPECT_EQ(histogram[2], 2 * g * (g - 1) * p * p * (a - 1));
      EXPECT_EQ(histogram[3], g * (g - 1) * p * p * (a - 1) * (a - 1));
    }
  }
}

TEST(DragonflyMinimal, IsNotTheShortestPathOfTheGraph) {
  const Topology topology = dragonfly(2, 4, 2);
  const auto length = [&](const std::string& name) {
    const auto routing = prepared_routing(name, topology);
    double sum = 0;
    for (std::uint32_t source = 0; source < 72; ++source)
      for (std::uint32_t destination = 0; destination < 72; ++destination)
        if (source != destination)
          sum +=
              static_cast<double>(trace_path(topology, *routing, {NodeId(source), NodeId(destination), 0}).size()) - 2;
    return sum / (72 * 71);
  };
  // [(a-1) p + (g-1) a p (1 + 2 (1 - 1/a))] / (N-1) = (6 + 64 * 2.5) / 71; two global hops make some of them shorter.
  EXPECT_NEAR(length("dragonfly_minimal"), 166.0 / 71, 1e-12);
  EXPECT_NEAR(length("shortest_path"), (720 + 2 * 1824 + 3 * 2496) / (72.0 * 71), 1e-12);
}

TEST(DragonflyMinimal, LoadsOfUniformAndAdversarialTraffic) {
  for (const auto& [p, a, h] : std::vector<std::array<std::uint32_t, 3>>{{2, 4, 2}, {3, 6, 3}, {2, 4, 1}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", p, a, h));
    const Topology topology = dragonfly(p, a, h);
    const auto routing = prepared_routing("dragonfly_minimal", topology);
    const double n = topology.graph.host_count();
    const auto loads = uniform_loads(topology, *routing);
    // Every global link joins a p hosts to a p hosts; every local link is crossed by traffic between its routers, and
    // on the way to and from h global links each.
    EXPECT_NEAR(most_loaded(topology, loads, "global"), (a * p) * (a * p) / (n - 1), 1e-9);
    EXPECT_NEAR(most_loaded(topology, loads, "local"), p * p * (1 + 2.0 * a * h) / (n - 1), 1e-9);
    // Kim et al. 2008, section 4.1: group i to group i + 1 leaves one global link for a p hosts.
    const std::uint32_t per_group = a * p;
    const std::uint32_t hosts = topology.graph.host_count();
    const auto adversarial = [&](std::uint32_t i) { return (i + per_group) % hosts; };
    EXPECT_NEAR(most_loaded(topology, permutation_loads(topology, *routing, adversarial), "global"), per_group, 1e-9);
  }
}

TEST(DragonflyMinimal, ParallelLinksAreShared) {
  for (const std::string& arrangement : GroupWiring::names()) {
    const Topology topology = dragonfly(2, 4, 3, ", g: 5, arrangement: " + arrangement);
    const auto routing = prepared_routing("dragonfly_minimal", topology);
    std::vector<double> loads(2 * topology.graph.link_count(), 0);
    for (std::uint32_t source = 0; source < 40; ++source)
      for (std::uint32_t destination = 0; destination < 40; ++destination)
        if (source != destination) {
          EXPECT_LE(add_load(topology, *routing, source, destination, 1, loads), 5U);
        }
    for (std::uint32_t i = 0; i < loads.size(); ++i) EXPECT_GT(loads[i], 0) << i;
  }
}

TEST(DragonflyPlusMinimal, IsUpOverDown) {
  for (const std::string more : {"", ", g: 5", ", g: 3, arrangement: palmtree", ", g: 3, arrangement: circulant"}) {
    const Topology topology = machine("{kind: dragonfly_plus, p: 2, leaves: 3, spines: 2, h: 2" + more + links);
    SCOPED_TRACE(more);
    const auto routing = prepared_routing("dragonfly_plus_minimal", topology);
    const std::uint32_t hosts = topology.graph.host_count();
    for (std::uint32_t source = 0; source < hosts; ++source) {
      for (std::uint32_t destination = 0; destination < hosts; ++destination) {
        if (source == destination) continue;
        std::vector<double> loads(2 * topology.graph.link_count(), 0);
        const std::uint32_t expected = source / 2 == destination / 2 ? 2 : source / 6 == destination / 6 ? 4 : 5;
        ASSERT_EQ(add_load(topology, *routing, source, destination, 1, loads), expected);
        double total = 0;
        for (const double load : loads) total += load;
        ASSERT_NEAR(total, expected, 1e-9);  // all ways are of this length
      }
    }
    expect_minimal(machine("{kind: dragonfly_plus, p: 2, leaves: 3, spines: 2, h: 2, g: 1" + links),
                   *prepared_routing("dragonfly_plus_minimal",
                                     machine("{kind: dragonfly_plus, p: 2, leaves: 3, spines: 2, h: 2, g: 1" + links)));
  }
}

TEST(FormulaRouting, OtherTopologiesAreRefused) {
  const Topology star = machine("{kind: star, hosts: 3" + links);
  for (const std::string name :
       {"dimension_order", "up_down", "d_mod_k", "dragonfly_minimal", "dragonfly_plus_minimal"}) {
    try {
      prepared_routing(name, star);
      ADD_FAILURE() << name;
    } catch (const InputError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("found 'star'"), std::string::npos) << what;
      EXPECT_NE(what.find("'" + name + "'"), std::string::npos) << what;
    }
  }
}

}  // namespace
}  // namespace weft::formula_routing_test
