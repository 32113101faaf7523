// SPDX-License-Identifier: GPL-2.0-only
// Torus and mesh against their closed forms (W. Dally, B. Towles, "Principles and practices of interconnection
// networks", 2004, chapters 3 and 5), by breadth-first search on the built graph.
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/shapes/torus_shape.hpp"
#include "tests/topologies/properties.hpp"

namespace weft::torus_test {
namespace {

using test::expect_error;
using test::Histogram;
using test::histogram_of;
using test::machine;

using Dims = std::vector<std::uint32_t>;

Topology grid(const std::string& kind, const Dims& dims, const std::string& more = "") {
  return machine(fmt::format("{{kind: {}, dims: [{}], link_rate: 100 Gb/s, link_delay: 1 us{}}}", kind,
                             fmt::join(dims, ", "), more));
}

/// Ordered pairs of nodes of one dimension by distance.
Histogram one_dimension(std::uint32_t k, bool wraps) {
  Histogram result;
  for (std::uint32_t x = 0; x < k; ++x) {
    for (std::uint32_t y = 0; y < k; ++y) {
      const std::uint32_t far = x > y ? x - y : y - x;
      ++result[wraps ? std::min(far, k - far) : far];
    }
  }
  return result;
}

/// The histogram of a product of graphs is the convolution of theirs.
Histogram convolution(const Histogram& a, const Histogram& b) {
  Histogram result;
  for (const auto& [i, n] : a)
    for (const auto& [j, m] : b) result[i + j] += n * m;
  return result;
}

Histogram expected_histogram(const Dims& dims, bool wraps) {
  Histogram result = {{0, 1}};
  for (const std::uint32_t k : dims) result = convolution(result, one_dimension(k, wraps));
  result.erase(0);  // pairs of a host with itself
  return result;
}

const std::vector<Dims> sizes = {{1},          {2},          {3},    {8},       {2, 4},    {4, 4},
                                 {8, 8},       {3, 5},       {1, 6}, {4, 4, 2}, {4, 4, 4}, {3, 4, 5},
                                 {2, 2, 2, 2}, {2, 3, 4, 5}, {7, 2}, {16, 2, 1}};

TEST(Torus, CountsDistancesAndMeans) {
  for (const Dims& dims : sizes) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(dims, "x")));
    const Topology topology = grid("torus", dims);
    const std::uint32_t n = std::accumulate(dims.begin(), dims.end(), 1U, std::multiplies<>());
    EXPECT_EQ(topology.graph.host_count(), n);
    EXPECT_EQ(topology.graph.switch_count(), n);
    std::uint32_t links = 0;
    std::uint32_t diameter = 0;
    double mean = 0;
    for (const std::uint32_t k : dims) {
      links += k > 2 ? n : k == 2 ? n / 2 : 0;
      diameter += k / 2;
      mean += k % 2 == 0 ? k / 4.0 : (k * k - 1) / (4.0 * k);
    }
    EXPECT_EQ(test::switch_links(topology), links);
    EXPECT_TRUE(test::is_simple(topology.graph));
    test::expect_consistent_ports(topology.graph);
    if (n == 1) continue;
    const Histogram histogram = histogram_of(topology);
    EXPECT_EQ(histogram, expected_histogram(dims, true));
    EXPECT_EQ(histogram.rbegin()->first, diameter);
    EXPECT_NEAR(test::mean_of(histogram), mean * n / (n - 1), 1e-12);
  }
}

TEST(Mesh, CountsAndDistances) {
  for (const Dims& dims : sizes) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(dims, "x")));
    const Topology topology = grid("mesh", dims);
    const std::uint32_t n = std::accumulate(dims.begin(), dims.end(), 1U, std::multiplies<>());
    std::uint32_t links = 0;
    for (const std::uint32_t k : dims) links += n / k * (k - 1);
    EXPECT_EQ(test::switch_links(topology), links);
    test::expect_consistent_ports(topology.graph);
    if (n > 1) {
      EXPECT_EQ(histogram_of(topology), expected_histogram(dims, false));
    }
    if (n > 1) {
      EXPECT_EQ(histogram_of(grid("torus", dims, ", wrap: false")), histogram_of(topology));
    }
  }
}

TEST(Torus, WrapsPerDimension) {
  const Topology topology = grid("torus", {4, 5}, ", wrap: [true, false]");
  Histogram expected = convolution(one_dimension(4, true), one_dimension(5, false));
  expected.erase(0);
  EXPECT_EQ(histogram_of(topology), expected);
  EXPECT_EQ(test::links_of_class(topology, "dimension 0"), 20U);
  EXPECT_EQ(test::links_of_class(topology, "dimension 1"), 16U);
}

TEST(Torus, PortsLeadWhereTheShapeSays) {
  for (const Dims& dims : sizes) {
    for (const std::string kind : {"torus", "mesh"}) {
      const Topology topology = grid(kind, dims, ", hosts_per_router: 3");
      const auto& shape = *shape_of<TorusShape>(topology);
      const std::uint32_t hosts = topology.graph.host_count();
      EXPECT_EQ(hosts, 3 * shape.routers);
      for (std::uint32_t router = 0; router < shape.routers; ++router) {
        const auto ports = topology.graph.ports(NodeId(hosts + router));
        for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(ports[i].peer, NodeId(3 * router + i));
        for (std::size_t d = 0; d < dims.size(); ++d) {
          for (const bool up : {false, true}) {
            auto x = shape.coordinates(router);
            EXPECT_EQ(shape.router_at(x), router);
            const bool at_end = x[d] == (up ? dims[d] - 1 : 0);
            const std::uint16_t port = shape.port(router, d, up);
            if (dims[d] == 1 || (kind == "mesh" && at_end)) {
              EXPECT_EQ(port, TorusShape::no_port);
              continue;
            }
            x[d] = (x[d] + (up ? 1 : dims[d] - 1)) % dims[d];
            ASSERT_LT(port, ports.size());
            EXPECT_EQ(ports[port].peer, NodeId(hosts + shape.router_at(x)));
          }
        }
      }
    }
  }
}

TEST(Torus, RatesPerDimensionAndOfTheHostLink) {
  const Topology topology = machine(
      "{kind: torus, dims: [4, 2, 1], link_rate: [100 Gb/s, 200 Gb/s, 1 Gb/s], link_delay: [3 us, 2 us, 1 us]}");
  for (std::uint32_t i = 0; i < topology.graph.link_count(); ++i) {
    const LinkProperties& link = topology.graph.link(LinkId(i));
    const std::string& name = topology.link_classes[topology.link_class[i]];
    // The host link has the sum of the rates of the router's links: 2 x 100 + 200.
    EXPECT_EQ(link.rate, Bandwidth::from_gbps(name == "host" ? 400 : name == "dimension 0" ? 100 : 200));
    EXPECT_EQ(link.delay, Time::from_us(name == "host" ? 1 : name == "dimension 0" ? 3 : 2));
  }
}

TEST(Torus, Bisection) {
  // 2 N / k links of a torus across the longest even dimension, N / k of a mesh.
  EXPECT_EQ(grid("torus", {16, 16}).bisection_bps, 32 * 100'000'000'000);
  EXPECT_EQ(grid("torus", {4, 4, 8}).bisection_bps, 32 * 100'000'000'000);
  EXPECT_EQ(grid("torus", {2, 2}).bisection_bps, 2 * 100'000'000'000);
  EXPECT_EQ(grid("mesh", {8, 8}).bisection_bps, 8 * 100'000'000'000);
  EXPECT_EQ(grid("torus", {5, 5}).bisection_bps, 0);
}

TEST(Torus, TwistedRectangleIsSmaller) {
  // J. Camara et al. 2010, table 2: a rectangular twisted torus of 2a x a has diameter a, and a rectangular torus 3a/2.
  for (const std::uint32_t a : {2U, 4U, 6U, 8U}) {
    const Topology plain = grid("torus", {2 * a, a});
    const Topology twisted = grid("torus", {2 * a, a}, fmt::format(", twist: [{{across: 1, shift: [{}, 0]}}]", a));
    test::expect_consistent_ports(twisted.graph);
    EXPECT_EQ(histogram_of(plain).rbegin()->first, 3 * a / 2);
    EXPECT_EQ(histogram_of(twisted).rbegin()->first, a);
    EXPECT_LT(test::mean_of(histogram_of(twisted)), test::mean_of(histogram_of(plain)));
    EXPECT_EQ(test::switch_links(twisted), 4 * a * a);
    EXPECT_EQ(twisted.routing, "shortest_path");
  }
}

TEST(Torus, GroupsAreSlabsOfTheLongestDimension) {
  const Topology topology = grid("torus", {2, 8, 4});
  const auto& shape = *shape_of<TorusShape>(topology);
  for (std::uint32_t i = 0; i < shape.routers; ++i) {
    EXPECT_EQ(topology.graph.node(NodeId(i)).group, shape.coordinates(i)[1]);
    EXPECT_EQ(topology.graph.node(NodeId(shape.routers + i)).group, shape.coordinates(i)[1]);
  }
}

TEST(Torus, ErrorsAtTheirLine) {
  const std::string links = "link_rate: 400 Gb/s\nlink_delay: 500 ns\n";
  expect_error("kind: torus\ndims: [4, 0]\n" + links, 2, {"0", "1"});
  expect_error("kind: torus\ndims: []\n" + links, 2, {"0 values", "1 to 16"});
  expect_error("kind: torus\ndims: 4\n" + links, 2, {"dims"});
  expect_error("kind: torus\ndims: [4096, 4096, 4096]\n" + links, 2, {"nodes", "16777216"});
  expect_error("kind: torus\ndims: [100000, 100000, 100000, 100000]\n" + links, 2, {"nodes"});
  expect_error("kind: torus\ndims: [4, 4]\nwrap: [true]\n" + links, 3, {"1 values for 2 dimensions"});
  expect_error("kind: torus\ndims: [4, 4]\nlink_rate: [1 Gb/s, 2 Gb/s, 3 Gb/s]\nlink_delay: 1 us\n", 3, {"3 values"});
  expect_error("kind: torus\ndims: [4, 4]\nlink_rate: 1 Gb/s\nlink_delay: [1 us, 0 us]\n", 4, {"zero delay links"});
  expect_error("kind: torus\ndims: [4, 4]\n" + links + "twist: [{across: 2, shift: [0, 0]}]\n", 5, {"2"});
  expect_error("kind: torus\ndims: [4, 4]\nwrap: false\n" + links + "twist: [{across: 0, shift: [0, 2]}]\n", 6,
               {"no wrap"});
  expect_error("kind: torus\ndims: [4, 4]\n" + links + "twist: [{across: 0, shift: [1, 2]}]\n", 5, {"expected 0"});
  expect_error("kind: torus\ndim: [4, 4]\n" + links, 2, {"'dims'", "did you mean"});
  expect_error("kind: mesh\ndims: [4, 4]\nwrap: true\n" + links, 3, {"unknown key 'wrap'"});
}

}  // namespace
}  // namespace weft::torus_test
