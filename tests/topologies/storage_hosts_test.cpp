// SPDX-License-Identifier: GPL-2.0-only
// Storage hosts of any family: their numbers, the written machine, and errors.
#include <sstream>

#include "graph/shapes/reduction_shape.hpp"
#include "graph/topology/graph_export.hpp"
#include "tests/topologies/machine.hpp"

namespace weft::storage_hosts_test {
namespace {

using test::expect_error;
using test::machine;
using Hosts = std::vector<std::uint32_t>;

const std::string links = ", link_rate: 100 Gb/s, link_delay: 1 us";
const std::string star = "{kind: star, hosts: 8" + links;

TEST(StorageHosts, ByNumberListAndStep) {
  EXPECT_EQ(machine(star + "}").storage_hosts(), Hosts{});
  EXPECT_EQ(machine(star + ", storage_hosts: 2}").storage_hosts(), (Hosts{6, 7}));
  EXPECT_EQ(machine(star + ", storage_hosts: [5, 1]}").storage_hosts(), (Hosts{1, 5}));
  EXPECT_EQ(machine(star + ", storage_hosts: {every: 3}}").storage_hosts(), (Hosts{2, 5}));
  EXPECT_EQ(machine(star + ", storage_hosts: 2}").compute_hosts(), 6U);
}

TEST(StorageHosts, OfEveryFamily) {
  for (const std::string kind :
       {"fat_tree, k: 4", "leaf_spine, leaves: 4, hosts_per_leaf: 4, spines: 2", "xgft, m: [4, 4], w: [1, 4]",
        "torus, dims: [4, 4]", "mesh, dims: [4, 4]", "hyperx, dims: [4, 4]", "hypercube, dimensions: 4",
        "fully_connected, switches: 4", "dragonfly, p: 1, a: 2, h: 1", "star, hosts: 3",
        "dragonfly_plus, leaves: 2, spines: 2, p: 2, h: 1, g: 3", "slim_fly, q: 5", "server, design: hgx_h100"}) {
    const Topology whole =
        machine("{kind: " + kind + (kind.starts_with("server") ? "" : links) + ", storage_hosts: 2}");
    const Topology& topology = machine_of(whole);  // without the units of NVSwitches
    const std::uint32_t hosts = topology.graph.host_count();
    EXPECT_EQ(topology.storage_hosts(), (Hosts{hosts - 2, hosts - 1})) << kind;
  }
}

TEST(StorageHosts, WholeServers) {
  const std::string network = "{kind: leaf_spine, leaves: 2, hosts_per_leaf: 4, spines: 2" + links;
  const std::string servers =
      network +
      ", server: {gpus: 2, inside: mesh, nvlink_rate: 1 Tb/s, nvlink_delay: 100 ns, nics: 2, pcie_rate: 400 "
      "Gb/s, pcie_delay: 100 ns}";
  EXPECT_EQ(machine(servers + ", storage_hosts: {servers: 1}}").storage_hosts(), (Hosts{6, 7}));
  expect_error(servers + ", storage_hosts: {servers: 4}}", 1, {"4", "3"});
  expect_error(network + ", storage_hosts: {servers: 1}}", 1, {"no servers"});
}

TEST(StorageHosts, OutlastAnExport) {
  std::ostringstream text;
  write_yaml(machine(star + ", storage_hosts: [2, 7]}"), text);
  EXPECT_EQ(machine(text.str()).storage_hosts(), (Hosts{2, 7}));
}

TEST(StorageHosts, Mistakes) {
  expect_error(star + ", storage_hosts: 8}", 1, {"8", "7"});
  expect_error(star + ", storage_hosts: 0}", 1, {"0"});
  expect_error(star + ", storage_hosts: [8]}", 1, {"there is no host 8", "0 to 7"});
  expect_error(star + ", storage_hosts: [3, 3]}", 1, {"host 3 is listed twice"});
  expect_error(star + ", storage_hosts: [0, 1, 2, 3, 4, 5, 6, 7]}", 1, {"at least 1 has to compute"});
  expect_error(star + ", storage_hosts: {every: 1}}", 1, {"1"});
  expect_error(star + ", storage_hosts: {evry: 2}}", 1, {"'every'"});
  expect_error("{kind: rails, rails: 2, rail: " + star + ", storage_hosts: 1}}", 1, {"beside 'rails'"});
}

}  // namespace
}  // namespace weft::storage_hosts_test
