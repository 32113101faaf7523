// SPDX-License-Identifier: GPL-2.0-only
// Every family of machines with every design of servers: built, and routed from each host to each.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <unistd.h>

#include "graph/shapes/reduction_shape.hpp"
#include "graph/shapes/server_shape.hpp"
#include "tests/routing/formulas.hpp"
#include "tests/topologies/machine.hpp"

namespace weft::machines_with_servers_test {
namespace {

using test::expect_error;
using test::machine;
using test::prepared_routing;

const std::string link = ", link_rate: 400 Gb/s, link_delay: 1 us";

std::string star(std::uint32_t hosts) { return fmt::format("kind: star, hosts: {}{}", hosts, link); }

/// A separate star, in a file that is removed with the test.
class MachineFile {
 public:
  explicit MachineFile(std::uint32_t hosts) { std::ofstream(path_) << "{" << star(hosts) << "}\n"; }
  ~MachineFile() { std::filesystem::remove(path_); }
  MachineFile(const MachineFile&) = delete;
  MachineFile& operator=(const MachineFile&) = delete;
  std::string path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / fmt::format("weft_{}.yaml", getpid())).string();
};

/// A sample of each family that grows with n, for servers of so many ports to the network.
using Sample = std::function<std::string(std::uint32_t n, std::uint32_t ports)>;
const std::map<std::string, Sample>& samples() {
  static const std::map<std::string, Sample> all = {
      {"star", [](auto n, auto) { return star(n); }},
      {"line", [](auto, auto) { return "kind: line, links: 2" + link; }},
      {"graph",
       [](auto n, auto) {
         std::string links;
         for (std::uint32_t h = 0; h < n; ++h) links += fmt::format("{{from: host{}, to: switch0}}, ", h);
         return fmt::format("kind: graph, hosts: {}, switches: 1, links: [{}]{}", n, links, link);
       }},
      {"file", [](auto, auto) { return std::string("kind: file"); }},
      {"fat_tree", [](auto n, auto) { return fmt::format("kind: fat_tree, k: {}{}", 2 * n, link); }},
      {"leaf_spine",
       [](auto n, auto) {
         return fmt::format("kind: leaf_spine, leaves: 2, hosts_per_leaf: {}, spines: 2{}", n, link);
       }},
      {"xgft", [](auto n, auto) { return fmt::format("kind: xgft, m: [{}, 2], w: [1, 2], p: [1, 2]{}", n, link); }},
      {"torus", [](auto n, auto) { return fmt::format("kind: torus, dims: [3, {}]{}", n + 1, link); }},
      {"mesh", [](auto n, auto) { return fmt::format("kind: mesh, dims: [2, {}]{}", n + 1, link); }},
      {"hyperx",
       [](auto n, auto) { return fmt::format("kind: hyperx, dims: [3, 2], hosts_per_switch: {}{}", n, link); }},
      {"hypercube",
       [](auto n, auto) { return fmt::format("kind: hypercube, dimensions: 3, hosts_per_switch: {}{}", n, link); }},
      {"fully_connected",
       [](auto n, auto) { return fmt::format("kind: fully_connected, switches: 4, hosts_per_switch: {}{}", n, link); }},
      {"dragonfly", [](auto n, auto) { return fmt::format("kind: dragonfly, p: {}, a: 2, h: 1{}", n, link); }},
      {"dragonfly_plus",
       [](auto n, auto) { return fmt::format("kind: dragonfly_plus, p: {}, leaves: 2, spines: 2, h: 1{}", n, link); }},
      {"slim_fly", [](auto n, auto) { return fmt::format("kind: slim_fly, q: 3, p: {}{}", n, link); }},
      {"rails",
       [](auto n, auto ports) { return fmt::format("kind: rails, rails: {}, rail: {{{}}}", ports, star(2 * n)); }},
      {"server", [](auto, auto) { return std::string("kind: server"); }},
  };
  return all;
}

/// Keys of `server:`, and how many ports to the network that makes.
struct Design {
  std::string keys;
  std::uint32_t ports;
  bool joined = true;  ///< inside, without NICs
};

const std::string pcie = ", pcie_rate: 500 Gb/s, pcie_delay: 200 ns";
const std::string nvlink = ", nvlink_rate: 2 Tb/s, nvlink_delay: 100 ns";

std::filesystem::path source_folder() {
  const char* source = std::getenv("WEFT_SOURCE");  // set by ctest
  return source != nullptr ? std::filesystem::path(source) : std::filesystem::current_path();
}

std::map<std::string, Design> designs() {
  std::map<std::string, Design> all = {
      {"nvswitch", {"gpus: 4, inside: nvswitch, nvswitches: 2, nics: 2" + nvlink + pcie, 2}},
      {"mesh", {"gpus: 3, inside: mesh, nics: 1, ports_per_nic: 2" + nvlink + pcie, 2}},
      {"links in a row",
       {"gpus: 3, inside: links, links: [[0, 1, 1 Tb/s], [1, 2, 1 Tb/s]], nvlink_delay: 100 ns, nics: 1" + pcie, 1}},
      {"links of some",
       {"gpus: 4, inside: links, links: [[0, 1, 1 Tb/s], [2, 3, 1 Tb/s]], nvlink_delay: 100 ns, nics: 2" + pcie, 2,
        false}},
      {"nothing but one NIC", {"gpus: 2, inside: none, nics: 1" + pcie, 1, false}},
      {"nothing but NICs", {"gpus: 2, inside: none, nics: 2" + pcie, 2, false}},
      {"one GPU", {"gpus: 1, inside: none, nics: 1, gpu_rate: 1 Tb/s, gpu_delay: 100 ns" + pcie, 1}},
  };
  for (const auto& file : std::filesystem::directory_iterator(source_folder() / "topologies" / "servers")) {
    const std::string name = file.path().stem().string();
    const Spec spec = Spec::load(file.path().string());
    const auto each = spec.find("ports_per_nic");
    all["ready-made " + name] = {"design: " + name,
                                 static_cast<std::uint32_t>(spec.at("nics").integer() * (each ? each->integer() : 1))};
  }
  return all;
}

/// Names are of one node each.
void expect_names(const Topology& topology) {
  std::set<std::string> names;
  for (std::uint32_t node = 0; node < topology.graph.node_count(); ++node)
    EXPECT_TRUE(names.insert(topology.graph.name(NodeId(node))).second) << topology.graph.name(NodeId(node));
}

// For any choice of each switch for each packet of a flow, the packet reaches its destination, and passes no node
// twice: a depth-first search that finds no node which is still being searched.
class Choices {
 public:
  Choices(const Topology& topology, const RoutingAlgorithm& routing, const RouteRequest& flow)
      : topology_(topology), routing_(routing), flow_(flow), state_(topology.graph.node_count()) {}

  bool all_end(NodeId at) {
    if (at == flow_.destination || state_[at.value()] == ends) return true;
    if (state_[at.value()] == being_searched) return false;
    state_[at.value()] = being_searched;
    const auto ports = routing_.candidates_of(at, flow_);
    for (const std::uint16_t port : ports)
      if (!all_end(topology_.graph.ports(at)[port].peer)) return false;
    state_[at.value()] = ends;
    return !ports.empty();
  }

 private:
  enum State { unknown, being_searched, ends };
  const Topology& topology_;
  const RoutingAlgorithm& routing_;
  RouteRequest flow_;
  std::vector<State> state_;
};

/// From each host to each, but on large machines from some of them; and all nodes have different names.
void expect_ways(const Topology& topology) {
  expect_names(topology);
  constexpr std::uint32_t many = 40'000;  // pairs
  const auto routing = prepared_routing(topology.routing, topology);
  const std::uint32_t hosts = topology.graph.host_count();
  const std::uint32_t every = 1 + hosts * hosts / many;
  for (std::uint32_t source = 0; source < hosts; source += every) {
    for (std::uint32_t destination = 0; destination < hosts; ++destination) {
      if (destination == source) continue;
      const auto path = trace_path(topology, *routing, {NodeId(source), NodeId(destination), 7});
      ASSERT_GE(path.size(), 2U);
      const auto ends = topology.graph.ports(path.back().node);
      ASSERT_EQ(ends[path.back().port].peer.value(), destination);
      const RouteRequest flow{NodeId(source), NodeId(destination), 7};
      if (routing->per_packet() || (source + destination) % 13 != 1) continue;
      ASSERT_TRUE(Choices(topology, *routing, flow).all_end(NodeId(source))) << source << " -> " << destination;
    }
  }
}

TEST(MachinesWithServers, EveryFamilyHasASample) {
  std::set<std::string> known;
  for (const auto& [kind, sample] : samples()) known.insert(kind);
  const auto names = TopologyRegistry::instance().names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), known);
}

class EveryFamily : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryFamily, WithoutServers) {
  if (GetParam() == "rails" || GetParam() == "server") GTEST_SKIP() << "a machine of servers";
  std::optional<MachineFile> file;
  std::string text = samples().at(GetParam())(3, 1);
  if (GetParam() == "file") text += ", path: " + file.emplace(3).path();
  expect_ways(machine("{" + text + "}"));
}

TEST_P(EveryFamily, WithEveryDesign) {
  for (const auto& [name, design] : designs()) {
    SCOPED_TRACE(name);
    if (GetParam() == "server") {
      const std::string text = "{kind: server, design: {" + design.keys + "}}";
      if (design.joined) {
        if (name != "one GPU") expect_ways(machine(text));
      } else {
        expect_error(text, 1, {"there is no way from GPU 0 of this server to GPU"});
      }
      continue;
    }
    // Rails are joined by the servers alone: by NVLink (PXN), or by nothing.
    const bool rails = GetParam() == "rails";
    const std::string server = ", server: {" + design.keys + (rails ? ", wiring: rail" : "") + "}}";
    bool fits = false;
    for (std::uint32_t n = 1; n <= 160 && !fits; ++n) {
      std::optional<MachineFile> file;
      std::string text = "{" + samples().at(GetParam())(n, design.ports);
      if (GetParam() == "file") text += ", path: " + file.emplace(n).path();
      const Topology network = build_part(Spec::parse(text + "}", "test.yaml"));
      if (network.graph.host_count() % design.ports != 0 || network.graph.host_count() == design.ports) continue;
      fits = true;
      if (rails && !design.joined && design.ports > 1)
        expect_error(text + server, 1, {"there is no way from GPU 0 of this server", "a rail of its own"});
      else
        expect_ways(machine(text + server));
    }
    // A line has two hosts.
    EXPECT_TRUE(fits || GetParam() == "line");
    if (!fits && design.ports > 2) expect_error("{" + samples().at("line")(1, 1) + server, 1, {"do not fill"});
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryFamily, ::testing::ValuesIn(TopologyRegistry::instance().names()),
                         [](const auto& one) { return one.param; });

TEST(MachinesWithServers, GpusThatNothingJoinsGoOutThroughTheirNics) {
  const Topology topology = machine("{" + star(4) + ", server: {gpus: 2, inside: none, nics: 2" + pcie + "}}");
  const auto routing = prepared_routing("server", topology);
  std::string way;
  for (const PathHop& hop : trace_path(topology, *routing, {NodeId(0), NodeId(1), 0}))
    way += topology.link_classes[topology.link_class[hop.directed_link / 2]] + " ";
  EXPECT_EQ(way, "gpu pcie nic nic pcie gpu ");
  const auto ports = routing->candidates(NodeId(shape_of<ServerShape>(machine_of(topology))->node(0, 0)), NodeId(1));
  EXPECT_EQ(ports.size(), 1U);
}

}  // namespace
}  // namespace weft::machines_with_servers_test
