// SPDX-License-Identifier: GPL-2.0-only
// Servers as endpoints: wiring by rails, ways inside and between servers, and designs that cannot be.
#include <fmt/format.h>

#include "graph/partition/partition.hpp"
#include "graph/shapes/reduction_shape.hpp"
#include "graph/shapes/server_shape.hpp"
#include "tests/routing/formulas.hpp"
#include "tests/topologies/properties.hpp"

namespace weft::server_test {
namespace {

using test::expect_error;
using test::machine;
using test::prepared_routing;

const std::string inside =
    "gpus: 4, inside: nvswitch, nvlink_rate: 2 Tb/s, nvlink_delay: 100 ns, nics: 4, pcie_rate: 500 Gb/s, pcie_delay: "
    "200 ns";
const std::string links = ", link_rate: 400 Gb/s, link_delay: 1 us";

/// Eight servers of four GPUs, two pods of four leaves with four endpoints each.
Topology rail_optimised(const std::string& more) {
  return machine("{kind: leaf_spine, leaves: 8, hosts_per_leaf: 4, spines: 4" + links + ", server: {" + inside + more +
                 "}}");
}

/// The classes of the links of a way, "gpu" aside.
std::string classes_of(const Topology& topology, const RoutingAlgorithm& routing, std::uint32_t source,
                       std::uint32_t destination) {
  std::string result;
  for (const PathHop& hop : trace_path(topology, routing, {NodeId(source), NodeId(destination), 0})) {
    const std::string& name = topology.link_classes[topology.link_class[hop.directed_link / 2]];
    if (name != "gpu") result += (result.empty() ? "" : " ") + name;
  }
  return result;
}

TEST(Servers, CountsAndPlaces) {
  const Topology topology = rail_optimised(", wiring: rail");
  const ClusterGraph& graph = topology.graph;
  EXPECT_EQ(graph.host_count(), 32U);
  EXPECT_EQ(graph.switch_count(), 8U * (4 + 1 + 4) + 12);  // GPU ports, NVSwitch, NICs; leaves and spines
  EXPECT_EQ(test::links_of_class(topology, "gpu"), 32U);
  EXPECT_EQ(test::links_of_class(topology, "nvlink"), 32U);
  EXPECT_EQ(test::links_of_class(topology, "pcie"), 32U);
  EXPECT_EQ(test::links_of_class(topology, "nic"), 32U);
  EXPECT_EQ(test::links_of_class(topology, "leaf-spine"), 32U);
  test::expect_consistent_ports(graph);
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    if (topology.link_classes[topology.link_class[i]] == "gpu") {
      EXPECT_EQ(graph.link(LinkId(i)).rate, Bandwidth::from_gbps(2500));  // NVLink and PCIe together
    }
  }
}

// Cards without NVLink: over their CPU, and between CPUs to those of another; a NIC is at the CPU of its first GPU.
TEST(Servers, CardsReachEachOtherOverPcie) {
  const std::string cards =
      "gpus: 8, inside: pcie, cpus: 2, pcie_rate: 200 Gb/s, pcie_delay: 300 ns, smp_rate: 320 Gb/s, "
      "smp_delay: 200 ns";
  const Topology alone = machine("{kind: server, design: {" + cards + "}}");
  const auto routing = prepared_routing("server", alone);
  EXPECT_EQ(classes_of(alone, *routing, 0, 3), "pcie pcie");
  EXPECT_EQ(classes_of(alone, *routing, 3, 4), "pcie smp pcie");
  const Topology two = machine("{kind: star, hosts: 4" + links + ", server: {" + cards + ", nics: 2}}");
  const auto between = prepared_routing("server", two);
  EXPECT_EQ(classes_of(two, *between, 1, 8), "pcie pcie nic nic pcie pcie");
  EXPECT_EQ(shape_of<ServerShape>(machine_of(two))->design.nic_of_gpu[5], 1U);
  EXPECT_TRUE(shape_of<ServerShape>(machine_of(two))->design.nics_behind_cpu);
  EXPECT_EQ(shape_of<ServerShape>(machine_of(two))->design.cpu, HostCpu::intel);
  const std::string alike = "kind: server\ndesign: {gpus: 4, inside: ";
  expect_error(alike + "pcie, cpus: 5, pcie_rate: 1 Gb/s, pcie_delay: 1 ns}\n", 2, {"cpus", "5"});
  expect_error(alike + "none}\n", 2, {"gpu_rate", "use inside: pcie"});
}

TEST(Servers, RailsLeadToTheirLeaf) {
  const Topology topology = rail_optimised(", wiring: rail");
  const auto& shape = *shape_of<ServerShape>(machine_of(topology));
  EXPECT_EQ(shape.rail_length, 4U);
  for (std::uint32_t server = 0; server < 8; ++server) {
    for (std::uint32_t nic = 0; nic < 4; ++nic) {
      const auto ports = topology.graph.ports(shape.node(server, shape.design.nics[nic]));
      ASSERT_EQ(ports.size(), 2U);
      EXPECT_EQ(ports[1].peer.value(), shape.first_switch() + server / 4 * 4 + nic);
    }
  }
  const Topology packed = rail_optimised("");
  const auto& other = *shape_of<ServerShape>(machine_of(packed));
  for (std::uint32_t server = 0; server < 8; ++server)
    for (std::uint32_t nic = 0; nic < 4; ++nic)
      EXPECT_EQ(packed.graph.ports(other.node(server, other.design.nics[nic]))[1].peer.value(),
                other.first_switch() + server);
}

TEST(Servers, WaysKeepToTheirRail) {
  const Topology topology = rail_optimised(", wiring: rail");
  const auto routing = prepared_routing("server", topology);
  EXPECT_EQ(classes_of(topology, *routing, 0, 1), "nvlink nvlink");
  EXPECT_EQ(classes_of(topology, *routing, 0, 4), "pcie nic nic pcie");                         // same rail, same pod
  EXPECT_EQ(classes_of(topology, *routing, 0, 16), "pcie nic leaf-spine leaf-spine nic pcie");  // same rail, other pod
  EXPECT_EQ(classes_of(topology, *routing, 0, 5), "pcie nic leaf-spine leaf-spine nic pcie");   // other rail
  const Topology pxn = rail_optimised(", wiring: rail, pxn: true");
  const auto over_nvlink = prepared_routing("server", pxn);
  EXPECT_EQ(classes_of(pxn, *over_nvlink, 0, 5), "nvlink nvlink pcie nic nic pcie");
  EXPECT_EQ(classes_of(pxn, *over_nvlink, 0, 4), "pcie nic nic pcie");
}

// Two GPUs that share a NIC are as near over it as over the NVSwitch: each way between GPUs is over NVLink
// nevertheless.
TEST(Servers, GpusThatShareANicUseNvlink) {
  const Topology topology = machine(
      "{kind: leaf_spine, leaves: 2, hosts_per_leaf: 2, spines: 2" + links +
      ", server: {gpus: 4, inside: nvswitch, nvlink_rate: 2 Tb/s, nvlink_delay: 100 ns, nics: 2, pcie_rate: 500 "
      "Gb/s, pcie_delay: 200 ns}}");
  const auto routing = prepared_routing("server", topology);
  const auto& shape = *shape_of<ServerShape>(machine_of(topology));
  for (std::uint32_t from = 0; from < 4; ++from) {
    for (std::uint32_t to = 0; to < 4; ++to) {
      if (from == to) continue;
      EXPECT_EQ(classes_of(topology, *routing, from, to), "nvlink nvlink");
      EXPECT_EQ(routing->candidates(shape.node(0, from), NodeId(to)).size(), 1U);
    }
  }
  EXPECT_EQ(classes_of(topology, *routing, 1, 4), "pcie nic leaf-spine leaf-spine nic pcie");
}

TEST(Servers, EveryWayEndsAndAvoidsOtherServers) {
  for (const std::string& text : {"{kind: leaf_spine, leaves: 8, hosts_per_leaf: 4, spines: 4" + links + ", server: {" +
                                      inside + ", wiring: rail}}",
                                  "{kind: fat_tree, k: 4" + links + ", server: {" + inside + "}}",
                                  "{kind: torus, dims: [4, 4]" + links + ", server: {" + inside + "}}",
                                  "{kind: dragonfly, p: 2, a: 4, h: 2, g: 5" + links + ", server: {" + inside + "}}",
                                  "{kind: rails, rails: 4, rail: {kind: star, hosts: 5" + links + "}, server: {" +
                                      inside + ", wiring: rail, pxn: true}}",
                                  "{kind: leaf_spine, leaves: 4, hosts_per_leaf: 4, spines: 2" + links + ", server: {" +
                                      inside + ", ports_per_nic: 2, nics: 2, nic_of_gpu: [1, 0, 1, 0]}}"}) {
    // A later key of the same map would be an error: the last machine gives its own number of NICs.
    std::string yaml = text;
    const auto twice = yaml.find("nics: 2,");
    if (twice != std::string::npos) yaml.erase(yaml.find("nics: 4, "), 9);
    SCOPED_TRACE(yaml);
    const Topology topology = machine(yaml);
    const auto routing = prepared_routing(topology.routing, topology);
    const std::uint32_t hosts = topology.graph.host_count();
    for (std::uint32_t source = 0; source < hosts; ++source) {
      for (std::uint32_t destination = 0; destination < hosts; ++destination) {
        if (source == destination) continue;
        for (const PathHop& hop : trace_path(topology, *routing, {NodeId(source), NodeId(destination), destination})) {
          const std::uint32_t block = topology.graph.node(hop.node).block;
          if (block != no_block) {
            ASSERT_TRUE(block == source / 4 || block == destination / 4);
          }
          const auto candidates = routing->candidates(hop.node, NodeId(destination));
          ASSERT_NE(std::find(candidates.begin(), candidates.end(), hop.port), candidates.end());
        }
      }
    }
  }
}

TEST(Servers, ReadyMadeDesigns) {
  // GPUs, NICs, and the rate of all links between GPUs at one GPU.
  const std::vector<std::tuple<std::string, std::uint32_t, std::size_t, std::int64_t>> known = {
      {"dgx_a100", 8, 8, 300}, {"hgx_h100", 8, 8, 450}, {"gb200_nvl72", 72, 72, 900}, {"mi300x", 8, 8, 7 * 64}};
  for (const auto& [name, gpus, nics, gbytes] : known) {
    const Topology topology = machine(fmt::format("{{kind: star, hosts: {}{}, server: {}}}", 2 * nics, links, name));
    const auto& design = shape_of<ServerShape>(machine_of(topology))->design;
    EXPECT_EQ(design.gpus, gpus);
    EXPECT_EQ(design.nics.size(), nics);
    std::int64_t rate = 0;
    for (const auto& link : design.links)
      if (link.link_class == "nvlink" && (link.a == 0 || link.b == 0)) rate += link.link.rate.bps();
    EXPECT_EQ(rate, gbytes * 8'000'000'000) << name;
  }
  const Topology frontier = machine("{kind: star, hosts: 8" + links + ", server: frontier_node}");
  EXPECT_EQ(frontier.graph.host_count(), 16U);
  EXPECT_EQ(machine_of(machine("{kind: server, design: gb200_nvl72}")).graph.host_count(), 72U);
  EXPECT_EQ(machine("{kind: server, design: mi300x}").graph.link_count(), 8U + 8 * 7 / 2);
}

TEST(Servers, PartitionsNeverCutAServer) {
  for (const std::string wiring : {"packed", "rail"}) {
    const Topology topology = rail_optimised(", wiring: " + wiring);
    for (const std::string method : {"auto", "groups", "metis"}) {
      for (const std::uint32_t parts : {2U, 3U, 4U, 8U}) {
        const Partition partition = make_partition(topology, parts, method, Bytes(84), 1);
        std::map<std::uint32_t, std::uint16_t> owner;
        for (std::uint32_t node = 0; node < topology.graph.node_count(); ++node) {
          const std::uint32_t block = topology.graph.node(NodeId(node)).block;
          if (block != no_block) {
            EXPECT_EQ(owner.emplace(block, partition.owner[node]).first->second, partition.owner[node]);
          }
        }
        EXPECT_GE(partition.lookahead, Time::from_us(1)) << wiring << method << parts;
      }
    }
  }
}

TEST(Servers, ErrorsAtTheirLine) {
  const std::string network =
      "kind: leaf_spine\nleaves: 3\nhosts_per_leaf: 4\nspines: 2\nlink_rate: 1 Gb/s\nlink_delay: 1 us\n";
  const std::string sound =
      "gpus: 4, inside: nvswitch, nvlink_rate: 2 Tb/s, nvlink_delay: 100 ns, pcie_rate: 500 Gb/s, pcie_delay: 200 ns";
  expect_error(network + "server: {" + sound + ", nics: 4, wiring: rail}\n", 7,
               {"12 endpoints", "pods of 4 leaves", "; use 16"});
  expect_error(network + "server: {" + sound + ", nics: 5}\n", 7, {"NIC", "has no GPU"});
  // Some servers would have NICs on two rails: there is a way between the rails, through them, and no routing takes it.
  expect_error("kind: rails\nrails: 2\nrail: {kind: star, hosts: 3, link_rate: 1 Gb/s, link_delay: 1 us}\nserver: {" +
                   sound + ", nics: 2}\n",
               4, {"on one rail", "expected wiring: rail"});
  expect_error(network + "server: {" + sound + ", nics: 0}\n", 7, {"without NICs"});
  expect_error(network + "server: {" + sound + ", nics: 2, nic_of_gpu: [0, 1]}\n", 7, {"2 values", "list of 4"});
  expect_error(network + "server: {" + sound + ", nics: 4, nvlinks: 3}\n", 7, {"unknown key 'nvlinks'"});
  expect_error(network + "server: {gpus: 4, inside: none, nics: 4, pcie_rate: 500 Gb/s, pcie_delay: 1 ns, pxn: true}\n",
               7, {"PXN"});
  expect_error(network + "server: dgx_a10\n", 7, {"dgx_a10", "did you mean 'dgx_a100'?"});
  expect_error("kind: rails\nrails: 4\nrail: {kind: star, hosts: 3, link_rate: 1 Gb/s, link_delay: 1 us}\n", 1,
               {"not connected"});
  expect_error("kind: rails\nrails: 3\nrail: {kind: star, hosts: 3, link_rate: 1 Gb/s, link_delay: 1 us}\nserver: {" +
                   sound + ", nics: 4, wiring: rail}\n",
               4, {"3 rails", "4 NIC ports"});
  expect_error("kind: server\ndesign: {gpus: 2, inside: none, nics: 2, pcie_rate: 1 Gb/s, pcie_delay: 1 ns}\n", 2,
               {"nothing inside joins"});
}

}  // namespace
}  // namespace weft::server_test
