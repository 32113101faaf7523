// SPDX-License-Identifier: GPL-2.0-only
// HyperX, hypercube and fully connected switches against their closed forms (J. Ahn et al., SC 2009).
#include <bit>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/shapes/hyperx_shape.hpp"
#include "tests/topologies/properties.hpp"

namespace weft::hyperx_test {
namespace {

using test::expect_error;
using test::Histogram;
using test::histogram_of;
using test::machine;

struct Parameters {
  std::vector<std::uint32_t> dims;
  std::vector<std::uint32_t> parallel;
  std::uint32_t terminals;
};

const std::vector<Parameters> cases = {{{4, 4}, {1, 1}, 4}, {{4, 4, 4}, {1, 1, 1}, 4},      {{8, 8}, {1, 1}, 2},
                                       {{3, 5}, {2, 1}, 2}, {{2, 3, 4}, {1, 2, 3}, 1},      {{6}, {1}, 3},
                                       {{1, 4}, {1, 2}, 1}, {{2, 2, 2, 2}, {1, 1, 1, 1}, 1}};

TEST(Hyperx, CountsDistancesAndPorts) {
  for (const auto& [dims, parallel, terminals] : cases) {
    SCOPED_TRACE(fmt::format("{} {} {}", fmt::join(dims, "x"), fmt::join(parallel, ","), terminals));
    const Topology topology = machine(fmt::format(
        "{{kind: hyperx, dims: [{}], parallel: [{}], hosts_per_switch: {}, link_rate: 100 Gb/s, link_delay: 1 us}}",
        fmt::join(dims, ", "), fmt::join(parallel, ", "), terminals));
    const std::uint32_t p = std::accumulate(dims.begin(), dims.end(), 1U, std::multiplies<>());
    EXPECT_EQ(topology.graph.switch_count(), p);
    EXPECT_EQ(topology.graph.host_count(), p * terminals);
    std::uint32_t links = 0;
    std::vector<std::uint64_t> at = {1};  // switches at j hops: coefficients of prod (1 + (S_d - 1) z)
    for (std::size_t d = 0; d < dims.size(); ++d) {
      links += p * parallel[d] * (dims[d] - 1) / 2;
      at.push_back(0);
      for (std::size_t j = at.size() - 1; j > 0; --j) at[j] += (dims[d] - 1) * at[j - 1];
    }
    EXPECT_EQ(test::switch_links(topology), links);
    Histogram expected;
    for (std::uint32_t j = 0; j < at.size(); ++j) {
      const std::uint64_t peers = at[j] * terminals - (j == 0 ? 1 : 0);
      if (peers > 0) expected[j] = peers * p * terminals;
    }
    EXPECT_EQ(histogram_of(topology), expected);
    const auto& shape = *shape_of<HyperxShape>(topology);
    const std::uint32_t hosts = topology.graph.host_count();
    std::uint32_t step = 1;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      for (std::uint32_t i = 0; i < p; ++i) {
        const std::uint32_t from = i / step % dims[d];
        for (std::uint32_t to = 0; to < dims[d]; ++to) {
          if (to == from) continue;
          for (std::uint32_t k = 0; k < parallel[d]; ++k)
            EXPECT_EQ(topology.graph.ports(NodeId(hosts + i))[shape.first_port(d, from, to) + k].peer,
                      NodeId(hosts + i + to * step - from * step));
        }
      }
      step *= dims[d];
    }
  }
}

TEST(Hyperx, TabulatedMachines) {
  const auto hyperx = [](const std::string& dims, std::uint32_t terminals) {
    return machine(fmt::format("{{kind: hyperx, dims: {}, hosts_per_switch: {}, link_rate: 1 Gb/s, link_delay: 1 us}}",
                               dims, terminals));
  };
  // min K S P / 4 = 4 * 16 / 4 links
  EXPECT_EQ(hyperx("[4, 4]", 4).bisection_bps, 16 * 1'000'000'000LL);
  EXPECT_EQ(histogram_of(hyperx("[4, 4]", 4)), (Histogram{{0, 192}, {1, 1536}, {2, 2304}}));
  EXPECT_EQ(histogram_of(hyperx("[8, 8]", 8)), (Histogram{{0, 3584}, {1, 57344}, {2, 200704}}));
}

TEST(Hypercube, DistanceIsTheNumberOfDifferentBits) {
  for (std::uint32_t n = 1; n <= 8; ++n) {
    const Topology topology =
        machine(fmt::format("{{kind: hypercube, dimensions: {}, link_rate: 1 Gb/s, link_delay: 1 us}}", n));
    EXPECT_EQ(test::switch_links(topology), n << (n - 1));
    EXPECT_EQ(topology.bisection_bps, (1LL << (n - 1)) * 1'000'000'000LL);
    for (std::uint32_t source = 0; source < topology.graph.host_count(); source += 5) {
      const auto distances = test::distances_from(topology.graph, NodeId(source));
      for (std::uint32_t host = 0; host < topology.graph.host_count(); ++host) {
        const auto bits = static_cast<std::uint32_t>(std::popcount(host ^ source));
        EXPECT_EQ(distances.hops[host], bits == 0 ? 0 : bits + 2);
      }
    }
  }
}

TEST(FullyConnected, EverySwitchIsOneLinkAway) {
  const Topology topology = machine(
      "{kind: fully_connected, switches: 6, hosts_per_switch: 2, parallel: 3, link_rate: 1 Gb/s, link_delay: 1 us}");
  EXPECT_EQ(test::links_of_class(topology, "switch"), 3 * 6 * 5 / 2U);
  EXPECT_EQ(histogram_of(topology), (Histogram{{0, 12}, {1, 120}}));
  EXPECT_EQ(topology.bisection_bps, 3 * 9 * 1'000'000'000LL);
}

TEST(Hyperx, ErrorsAtTheirLine) {
  const std::string links = "link_rate: 400 Gb/s\nlink_delay: 500 ns\n";
  expect_error("kind: hyperx\ndims: [4, 0]\n" + links, 2, {"0"});
  expect_error("kind: hyperx\ndims: [4, 4]\nparallel: [1]\n" + links, 3, {"1 values", "list of 2"});
  expect_error("kind: hyperx\ndims: [40000, 2]\nparallel: 2\n" + links, 2, {"ports", "65535"});
  expect_error("kind: hyperx\ndims: [5000, 5000]\n" + links, 2, {"nodes"});
  expect_error("kind: hypercube\ndimensions: 0\n" + links, 2, {"0"});
  expect_error("kind: hypercube\ndimensions: 64\n" + links, 2, {"64", "23"});
  expect_error("kind: fully_connected\nswitches: many\n" + links, 2, {"many"});
}

}  // namespace
}  // namespace weft::hyperx_test
