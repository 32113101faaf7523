// SPDX-License-Identifier: GPL-2.0-only
// NCCL's graphs of machines that people have: where a log was published it is named.
//
// Rings are written as NCCL's log has them: the NIC by which a ring comes, the GPUs in order, the NIC by which it
// leaves.
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/shapes/reduction_shape.hpp"
#include "nccl/server_graphs.hpp"
#include "nccl/server_system.hpp"
#include "tests/topologies/properties.hpp"

namespace weft::graph_search_test {
namespace {

using test::machine;

std::vector<std::uint32_t> first(std::uint32_t count) {
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

const ServerShape& shape_of_servers(const Topology& topology) { return *shape_of<ServerShape>(machine_of(topology)); }

/// The design of a server as an experiment writes it.
struct Server {
  explicit Server(const std::string& design)
      : topology(machine("{kind: star, hosts: 32, link_rate: 400 Gb/s, link_delay: 1 us, server: " + design + "}")) {}
  NcclSystem system(std::int64_t nic_gbps, bool several = true) const {
    const ServerDesign& design = shape_of_servers(topology).design;
    return nccl_system(design, first(design.gpus), Bandwidth::from_gbps(nic_gbps), several);
  }
  Topology topology;
};

std::string rings(const NcclSystem& system, const NcclSearchGraph& graph) {
  std::string text;
  for (const NcclSearchChannel& channel : graph.channels) {
    if (!text.empty()) text += "; ";
    if (system.several_servers()) text += fmt::format("N{} ", channel.net_in);
    text += fmt::format("{}", fmt::join(channel.gpus, " "));
    if (system.several_servers()) text += fmt::format(" N{}", channel.net_out);
  }
  return text;
}

void expect_speeds(const NcclSearchGraph& graph, std::size_t channels, double intra, double inter,
                   std::uint32_t cross_nic = 0) {
  EXPECT_EQ(graph.channels.size(), channels);
  EXPECT_DOUBLE_EQ(graph.intra, intra);
  EXPECT_DOUBLE_EQ(graph.inter, inter);
  EXPECT_EQ(graph.cross_nic, cross_nic);
}

TEST(NcclGraphs, HopperWithANicForEachGpu) {
  const Server server("{design: hgx_h100, wiring: packed, pxn: true}");
  const NcclSystem system = server.system(400);
  EXPECT_DOUBLE_EQ(system.max_of_a_channel(), 48);
  EXPECT_DOUBLE_EQ(system.max_of_a_gpu(), 370.8);  // 18 links of 20.6
  const ServerGraphs graphs = search_server(system);
  // Closing eight rings over NICs of other GPUs would take 8 x 48 = 384 GB/s of a GPU's NVLink, which has 370.8. So
  // rings leave by the next NIC, in pairs that go in opposite directions.
  expect_speeds(graphs.ring, 8, 48, 48, 2);
  EXPECT_EQ(rings(system, graphs.ring),
            "N0 0 7 6 5 4 3 2 1 N1; N1 1 2 3 4 5 6 7 0 N0; N2 2 1 0 7 6 5 4 3 N3; N3 3 4 5 6 7 0 1 2 N2; "
            "N4 4 3 2 1 0 7 6 5 N5; N5 5 6 7 0 1 2 3 4 N4; N6 6 5 4 3 2 1 0 7 N7; N7 7 0 1 2 3 4 5 6 N6");
  EXPECT_EQ(graphs.tree.pattern, GraphPattern::tree);
  expect_speeds(graphs.tree, 8, 48, 48);
  EXPECT_EQ(rings(system, graphs.tree),
            "N0 0 1 2 3 4 5 6 7 N0; N1 1 2 3 4 5 6 7 0 N1; N2 2 3 4 5 6 7 0 1 N2; N3 3 4 5 6 7 0 1 2 N3; "
            "N4 4 5 6 7 0 1 2 3 N4; N5 5 6 7 0 1 2 3 4 N5; N6 6 7 0 1 2 3 4 5 N6; N7 7 0 1 2 3 4 5 6 N7");
  ASSERT_EQ(graphs.nvls.channels.size(), 8U);
  EXPECT_DOUBLE_EQ(graphs.nvls.intra, 40);
  EXPECT_DOUBLE_EQ(graphs.nvls.inter, 48);
  for (std::uint32_t k = 0; k < 8; ++k) EXPECT_EQ(graphs.nvls.channels[k].gpus[0], k);
}

TEST(NcclGraphs, CrossNicAsItIsSet) {
  const Server server("{design: hgx_h100, wiring: packed, pxn: true}");
  const NcclSystem system = server.system(400);
  const NcclSearchGraph never = search_nccl_graph(system, GraphPattern::ring, 1, 32, {0});
  expect_speeds(never, 8, 45, 45, 0);
  EXPECT_EQ(never.inter_type, PathType::peers_nic);
  for (std::uint32_t k = 0; k < 8; ++k) {
    EXPECT_EQ(never.channels[k].net_in, k);
    EXPECT_EQ(never.channels[k].net_out, k);
    EXPECT_EQ(never.channels[k].gpus.front(), k);
    EXPECT_EQ(never.channels[k].gpus.back(), (k + 1) % 8);
  }
  const NcclSearchGraph always = search_nccl_graph(system, GraphPattern::ring, 1, 32, {1});
  expect_speeds(always, 8, 48, 48, 1);
  for (std::uint32_t k = 0; k < 8; ++k) EXPECT_EQ(always.channels[k].net_out, (k + 1) % 8);
}

TEST(NcclGraphs, HopperAlone) {
  const Server server("{design: hgx_h100, pxn: true}");
  const NcclSystem system = server.system(400, false);
  const ServerGraphs graphs = search_server(system);
  expect_speeds(graphs.ring, 12, 30, 30);  // six of 60, each twice
  for (const NcclSearchChannel& channel : graphs.ring.channels) EXPECT_EQ(channel.gpus, first(8));
  EXPECT_EQ(graphs.tree.pattern, GraphPattern::balanced_tree);
  ASSERT_EQ(graphs.nvls.channels.size(), 8U);
  EXPECT_DOUBLE_EQ(graphs.nvls.intra, 40);
}

// Log of github.com/NVIDIA/nccl/issues/1357: heads 0 2 4 6, four NICs; there the order of PCIe addresses differs.
TEST(NcclGraphs, HopperWithFourNics) {
  const Server server("{design: hgx_h100, nics: 4, pxn: true}");
  const NcclSystem system = server.system(400);
  const ServerGraphs graphs = search_server(system);
  expect_speeds(graphs.ring, 8, 24, 24, 0);  // four of 48, each twice
  EXPECT_EQ(rings(system, graphs.ring).substr(0, 94),
            "N0 0 7 6 5 4 3 2 1 N0; N1 2 1 0 7 6 5 4 3 N1; N2 4 3 2 1 0 7 6 5 N2; N3 6 5 4 3 2 1 0 7 N3; N0");
  ASSERT_EQ(graphs.nvls.channels.size(), 4U);
  for (std::uint32_t k = 0; k < 4; ++k) EXPECT_EQ(graphs.nvls.channels[k].gpus[0], 2 * k);
}

// H800: NVLink of 8 links, 164.8 GB/s.
TEST(NcclGraphs, HopperWithHalfOfTheNvlinks) {
  const Server server("{design: hgx_h100, nvlink_rate: 200 GB/s, pxn: true}");
  const ServerGraphs graphs = search_server(server.system(400));
  expect_speeds(graphs.ring, 8, 22, 22, 2);
  EXPECT_DOUBLE_EQ(graphs.nvls.intra, 17.5);
  EXPECT_DOUBLE_EQ(graphs.nvls.inter, 40);
  EXPECT_EQ(graphs.nvls.channels.size(), 8U);
}

TEST(NcclGraphs, AmpereWithANicForEachGpu) {
  const Server server("{design: dgx_a100, pxn: true}");
  const NcclSystem system = server.system(200);
  EXPECT_DOUBLE_EQ(system.max_of_a_gpu(), 240);
  const NcclSearchGraph ring = search_nccl_graph(system, GraphPattern::ring, 1, 32);
  expect_speeds(ring, 8, 24, 24, 0);
  EXPECT_EQ(ring.inter_type, PathType::peers_nic);
  for (std::uint32_t k = 0; k < 8; ++k) {
    EXPECT_EQ(ring.channels[k].net_in, k);
    EXPECT_EQ(ring.channels[k].net_out, k);
    EXPECT_EQ(ring.channels[k].gpus[1], (k + 7) % 8);
  }
}

// github.com/NVIDIA/nccl-tests/issues/100: 24 channels in the order of numbers.
TEST(NcclGraphs, AmpereAlone) {
  const Server server("{design: dgx_a100}");
  const NcclSearchGraph ring = search_nccl_graph(server.system(200, false), GraphPattern::ring, 1, 32);
  expect_speeds(ring, 12, 20, 20);
  for (const NcclSearchChannel& channel : ring.channels) EXPECT_EQ(channel.gpus, first(8));
}

TEST(NcclGraphs, Blackwell) {
  const std::string design = "{design: hgx_h100, nvlink_rate: 900 GB/s, architecture: blackwell, pxn: true}";
  const Server server(design);
  const ServerGraphs graphs = search_server(server.system(400));
  // NVLink is no limit any more: rings close over the NIC at which they began.
  expect_speeds(graphs.ring, 8, 48, 48, 0);
  for (std::uint32_t k = 0; k < 8; ++k) EXPECT_EQ(graphs.ring.channels[k].net_out, k);
  EXPECT_EQ(graphs.tree.pattern, GraphPattern::tree);
  expect_speeds(graphs.tree, 8, 96, 48);
  const ServerGraphs alone = search_server(server.system(400, false));
  expect_speeds(alone.ring, 16, 45, 45);  // eight of 90, each twice
  EXPECT_DOUBLE_EQ(alone.nvls.intra, 80);
}

TEST(NcclGraphs, RackOfSeventyTwo) {
  const Topology rack = machine("{kind: server, design: gb200_nvl72}");
  const NcclSystem system = nccl_system(shape_of_servers(rack).design, first(72), Bandwidth(), false);
  const NcclSearchGraph ring = search_nccl_graph(system, GraphPattern::ring, 1, 32);
  expect_speeds(ring, 16, 45, 45);
  for (const NcclSearchChannel& channel : ring.channels) EXPECT_EQ(channel.gpus, first(72));
}

// github.com/NVIDIA/nccl/issues/713: the first four of these rings.
TEST(NcclGraphs, MeshOfFourVolta) {
  const Server server(
      "{gpus: 4, inside: mesh, nvlink_rate: 50 GB/s, nvlink_delay: 100 ns, architecture: volta, nics: 1, pcie_rate: "
      "126 "
      "Gb/s, pcie_delay: 200 ns}");
  const NcclSystem system = server.system(100, false);
  const NcclSearchGraph ring = search_nccl_graph(system, GraphPattern::ring, 1, 32);
  expect_speeds(ring, 6, 20, 20);
  EXPECT_EQ(rings(system, ring), "0 1 2 3; 0 1 3 2; 0 2 3 1; 0 2 1 3; 0 3 1 2; 0 3 2 1");
}

TEST(NcclGraphs, MeshOfFourAmpereWithFourNics) {
  const Server server(
      "{gpus: 4, inside: mesh, nvlink_rate: 100 GB/s, nvlink_delay: 100 ns, architecture: ampere, nics: 4, pcie_rate: "
      "252 "
      "Gb/s, pcie_delay: 200 ns, pxn: true}");
  const NcclSystem alone = server.system(200, false);
  const NcclSearchGraph inside = search_nccl_graph(alone, GraphPattern::ring, 1, 32);
  expect_speeds(inside, 12, 20, 20);
  const NcclSystem system = server.system(200);
  const NcclSearchGraph ring = search_nccl_graph(system, GraphPattern::ring, 1, 32);
  expect_speeds(ring, 4, 24, 24);
  for (std::uint32_t k = 0; k < 4; ++k) EXPECT_EQ(ring.channels[k].net_in, k);  // each NIC begins one ring
}

}  // namespace
}  // namespace weft::graph_search_test
