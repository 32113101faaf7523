// SPDX-License-Identifier: GPL-2.0-only
// Machines in files of other programs.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "graph/shapes/reduction_shape.hpp"
#include "graph/shapes/server_shape.hpp"
#include "graph/shapes/tree_shape.hpp"
#include "graph/topology/graph_export.hpp"
#include "tests/topologies/properties.hpp"

namespace weft::readers_test {
namespace {

using test::Histogram;
using test::histogram_of;
using test::machine;

class Readers : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  Topology read(const std::string& name, const std::string& text, const std::string& more = "") const {
    return machine(fmt::format("{{kind: file, path: {}{}}}", write(name, text), more));
  }
  void expect_error_in_file(const std::string& name, const std::string& text, int line,
                            const std::vector<std::string>& fragments, const std::string& more = "") const {
    try {
      read(name, text, more);
      ADD_FAILURE() << "no error for\n" << text;
    } catch (const InputError& error) {
      const std::string what = error.what();
      const std::string place = (folder_ / name).string() + (line > 0 ? ":" + std::to_string(line) + ":" : ":");
      EXPECT_EQ(what.rfind(place, 0), 0U) << what;
      for (const std::string& fragment : fragments)
        EXPECT_NE(what.find(fragment), std::string::npos) << fragment << " in " << what;
    }
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("weft-readers-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(Readers, PhysicalTopologyOfNs3) {
  // Two switches with two hosts each; switch numbers need not follow the hosts'.
  const std::string text =
      "6 2 5\n4 5\n0 4 400Gbps 0.0005ms 0\n1 4 400Gbps 0.0005ms 0\n2 5 400Gbps 500ns 0.0\n3 5 400Gbps 500ns "
      "0\n\n4 5 800Gbps 1us 0\n";
  const Topology topology = read("machine.txt", text);
  EXPECT_EQ(topology.graph.host_count(), 4U);
  EXPECT_EQ(topology.graph.switch_count(), 2U);
  EXPECT_EQ(histogram_of(topology), (Histogram{{0, 4}, {1, 8}}));
  const LinkProperties& trunk = topology.graph.link(LinkId(4));
  EXPECT_EQ(trunk.rate, Bandwidth::from_gbps(800));
  EXPECT_EQ(trunk.delay, Time::from_us(1));
  EXPECT_EQ(topology.graph.link(LinkId(0)).delay, Time::from_ns(500));
  EXPECT_EQ(topology.routing, "shortest_path");
  // What generators write behind the links (ns-3 reads no further).
  const Topology same =
      read("explained.txt",
           text +
               "\nFirst line: total node #, switch node #, link #\nSecond line: switch node IDs...\nsrc0 dst0 "
               "rate delay error_rate\nsrc1 dst1 rate delay error_rate\n...\nswitch IDs: 4,5\n");
  EXPECT_EQ(same.graph.link_count(), topology.graph.link_count());
}

TEST_F(Readers, HostsWithSeveralLinksForward) {
  // ASTRA-sim's ring of eight nodes without a switch.
  std::string text = "8 0 8\n\n";
  for (int i = 0; i < 8; ++i) text += fmt::format("{} {} 400Gbps 0.0005ms 0\n", i, (i + 1) % 8);
  const Topology topology = read("ring.txt", text);
  EXPECT_EQ(topology.graph.host_count(), 8U);
  EXPECT_EQ(topology.graph.switch_count(), 8U);
  EXPECT_EQ(histogram_of(topology), (Histogram{{1, 16}, {2, 16}, {3, 16}, {4, 8}}));
  EXPECT_EQ(topology.graph.link(LinkId(0)).rate, Bandwidth::from_gbps(800));
}

TEST_F(Readers, TopologyOfSimai) {
  // Two servers of two GPUs with an NVSwitch each, rails on two leaves, a spine.
  const std::string text =
      "9 2 2 3 10 H100\n4 5 6 7 8\n0 4 2880Gbps 0.000025ms 0\n1 4 2880Gbps 0.000025ms 0\n2 5 2880Gbps 0.000025ms 0\n3 "
      "5 "
      "2880Gbps 0.000025ms 0\n0 6 400Gbps 0.0005ms 0\n1 7 400Gbps 0.0005ms 0\n2 6 400Gbps 0.0005ms 0\n3 7 400Gbps "
      "0.0005ms 0\n6 8 400Gbps 0.0005ms 0\n7 8 400Gbps 0.0005ms 0\n";
  const Topology topology = read("Spectrum-X_4g_2gps", text, ", format: simai");
  EXPECT_EQ(topology.graph.host_count(), 4U);
  EXPECT_EQ(topology.graph.switch_count(), 5U + 4);  // and the GPUs' own
  EXPECT_EQ(test::links_of_class(topology, "nvlink"), 4U);
  EXPECT_EQ(topology.graph.node(NodeId(0)).block, topology.graph.node(NodeId(1)).block);
  EXPECT_NE(topology.graph.node(NodeId(0)).block, topology.graph.node(NodeId(2)).block);
  // NVSwitches are of the servers of their GPUs.
  EXPECT_EQ(topology.graph.node(NodeId(4 + 4)).block, topology.graph.node(NodeId(0)).block);
}

TEST_F(Readers, Ns3AndSimaiErrorsAtTheirLine) {
  const std::string head = "3 1 2\n2\n";
  expect_error_in_file("a.txt", "3 1\n", 1, {"2 words", "'nodes switches links'"});
  expect_error_in_file("a.txt", "9 2 2 3 10 H100\n", 1, {"6 words", "format: simai"});
  expect_error_in_file("a.txt", "3 1 2\n", 1, {"the file ends here", "1 switches"});
  expect_error_in_file("a.txt", "3 1 2\n3\n", 2, {"found '3'", "0 to 2"});
  expect_error_in_file("a.txt", "3 2 2\n2 2\n", 2, {"listed twice"});
  expect_error_in_file("a.txt", "2 2 0\n0 1\n", 1, {"at least 1 host"});
  expect_error_in_file("a.txt", head + "0 2 400Gbps 1us 0\n", 3, {"link 2 of 2"});
  expect_error_in_file("a.txt", head + "0 2 400Gbps 1us 0\n0 2 400Gbps 1us 0\n", 4, {"linked already", ":3)"});
  expect_error_in_file("a.txt", head + "0 2 400Gbps 1us 0\n1 1 400Gbps 1us 0\n", 4, {"itself"});
  expect_error_in_file("a.txt", head + "0 2 400 1us 0\n1 2 400Gbps 1us 0\n", 3, {"'400'", "400Gbps"});
  expect_error_in_file("a.txt", head + "0 2 400Gbps 0us 0\n1 2 400Gbps 1us 0\n", 3, {"zero delay"});
  expect_error_in_file("a.txt", head + "0 2 400Gbps 1us 0.1\n1 2 400Gbps 1us 0\n", 3, {"loss rate of '0.1'"});
  expect_error_in_file("a.txt", head + "0 2 400Gbps 1us\n", 3, {"4 words", "node node rate delay loss"});
  expect_error_in_file("a.txt", head + "0 2 400Gbps 1us 0\n1 2 400Gbps 1us 0\n0 1 1Gbps 1us 0\n", 5,
                       {"more than the 2"});
  expect_error_in_file("a.txt", "4 1 2\n3\n0 3 400Gbps 1us 0\n1 3 400Gbps 1us 0\n", 1, {"host 2 has no link"});
  expect_error_in_file("a.txt", "3 1 2\n2\n", 1, {"3 words", "format: ns3"}, ", format: simai");
}

const std::string htsim_leaf_spine =
    "Nodes 32\nTiers 2\nPodsize 32\n\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 2\nDownlink_Latency_ns "
    "1000\nSwitch_Latency_ns 0\nOversubscribed 4\n\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns "
    "1000\n";

TEST_F(Readers, Htsim) {
  const Topology two = read("leaf_spine.topo", htsim_leaf_spine);
  EXPECT_EQ(two.graph.host_count(), 32U);
  EXPECT_EQ(two.graph.switch_count(), 4U + 2);
  EXPECT_EQ(histogram_of(two), (Histogram{{0, 32 * 7}, {2, 32 * 24}}));
  EXPECT_EQ(two.bisection_bps, 4 * 100'000'000'000);
  // Twelve pods of 36 hosts, six switches below and six above in each; three links to each of twelve cores.
  const Topology three =
      read("zrs.topo",
           "# three tiers\nNodes 432\nTiers 3\nPodsize 36\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down "
           "6\nRadix_Up 6\nDownlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down "
           "6\nRadix_Up 6\nDownlink_Latency_ns 1000\nTier 2\nDownlink_speed_Gbps 100\nRadix_Down "
           "36\nDownlink_Latency_ns 600000\nBundle 3\n");
  EXPECT_EQ(three.graph.host_count(), 432U);
  EXPECT_EQ(three.graph.switch_count(), 72U + 72 + 12);
  EXPECT_EQ(test::links_of_class(three, "tier 1-2"), 432U);
  EXPECT_EQ(three.graph.link(LinkId(three.graph.link_count() - 1)).delay, Time::from_us(600));
  EXPECT_EQ(shape_of<TreeShape>(three)->p.back(), 3U);
}

TEST_F(Readers, HtsimErrorsAtTheirLine) {
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = htsim_leaf_spine;
    return text.replace(text.find(from), from.size(), to);
  };
  expect_error_in_file("a.topo", changed("Radix_Down 8", "Radix_Down 7"), 7, {"Nodes", "do not divide: 32 by 7"});
  expect_error_in_file("a.topo", changed("Radix_Down 4", "Radix_Down 5"), 15, {"found 5; expected 4"});
  expect_error_in_file("a.topo", changed("Radix_Up 2", "Radix_Upp 2"), 8, {"did you mean 'radix_up'?"});
  expect_error_in_file("a.topo", changed("Switch_Latency_ns 0", "Switch_Latency_ns 5"), 10, {"network.switch_latency"});
  expect_error_in_file("a.topo", changed("Tiers 2", "Tiers 3"), 2, {"says 3 tiers"});
  expect_error_in_file("a.topo", changed("Tier 1", "Tier 2"), 13, {"expected tier 1"});
  expect_error_in_file("a.topo", changed("Downlink_speed_Gbps 100", "Downlink_speed_Gbps fast"), 6, {"'fast'"});
  expect_error_in_file("a.topo", changed("Nodes 32\n", ""), 0, {"'Nodes' is missing"});
  expect_error_in_file("a.topo", changed("Radix_Up 2\n", ""), 5, {"tier 0 does not say its 'radix_up'"});
}

TEST_F(Readers, GraphmlThatWeWrote) {
  for (const std::string text : {"{kind: dragonfly, p: 2, a: 4, h: 2, link_rate: 100 Gb/s, link_delay: 1 us}",
                                 "{kind: hyperx, dims: [3, 2], parallel: 2, link_rate: 100 Gb/s, link_delay: 1 us}",
                                 "{kind: line, links: 3, link_rate: [1 Gb/s, 2 Gb/s, 3 Gb/s], link_delay: 5 ns}"}) {
    const Topology first = machine(text);
    std::ostringstream out;
    write_graphml(first, out);
    const Topology second = read("machine.graphml", out.str());
    EXPECT_EQ(second.graph.host_count(), first.graph.host_count());
    EXPECT_EQ(second.graph.link_count(), first.graph.link_count());
    EXPECT_EQ(histogram_of(second), histogram_of(first));
    for (const std::string& name : first.link_classes)
      EXPECT_EQ(test::links_of_class(second, name), test::links_of_class(first, name));
    for (std::uint32_t i = 0; i < first.graph.link_count(); ++i) {
      EXPECT_EQ(second.graph.link(LinkId(i)).rate, first.graph.link(LinkId(i)).rate);
      EXPECT_EQ(second.graph.link(LinkId(i)).delay, first.graph.link(LinkId(i)).delay);
      EXPECT_EQ(second.graph.link(LinkId(i)).ends[0], first.graph.link(LinkId(i)).ends[0]);
    }
  }
}

TEST_F(Readers, YamlThatWeWrote) {
  const Topology first =
      machine("{kind: xgft, m: [2, 3], w: [1, 2], p: [1, 2], link_rate: 100 Gb/s, link_delay: 1 us}");
  std::ostringstream out;
  write_yaml(first, out);
  const Topology second = read("machine.yaml", out.str());
  EXPECT_EQ(second.kind, "file");
  EXPECT_EQ(histogram_of(second), histogram_of(first));
  EXPECT_EQ(machine("{kind: file, path: tpu_v5e_pod}").graph.host_count(), 256U);
}

TEST_F(Readers, GraphmlOfOthersAndErrors) {
  const std::string begin =
      "<graphml>\n<key id=\"r\" for=\"edge\" attr.name=\"rate\" attr.type=\"string\"/>\n<key id=\"d\" for=\"edge\" "
      "attr.name=\"delay\" attr.type=\"string\"/>\n<graph edgedefault=\"undirected\">\n<node id=\"x\"/>\n<node "
      "id=\"y\"/>\n<node id=\"hub\"/>\n";
  const std::string data = "<data key=\"r\">10 Gb/s</data><data key=\"d\">2 us</data></edge>\n";
  const std::string one = "<edge source=\"x\" target=\"hub\">" + data;
  const std::string end = "</graph>\n</graphml>\n";
  const Topology topology = read("machine.graphml", begin + one + "<edge source=\"y\" target=\"hub\">" + data + end);
  EXPECT_EQ(topology.graph.host_count(), 2U);  // they have one edge
  EXPECT_EQ(topology.graph.switch_count(), 1U);
  EXPECT_EQ(topology.graph.link(LinkId(0)).rate, Bandwidth::from_gbps(10));
  expect_error_in_file("a.graphml", "<graphml>\n<graph>\n", 2, {"no XML"});  // it ends there
  expect_error_in_file("a.graphml", "<gexf/>\n", 1, {"no <graphml>"});
  expect_error_in_file("a.graphml", begin + one + "<edge source=\"z\" target=\"hub\">" + data + end, 9,
                       {"source 'z' is no node"});
  expect_error_in_file("a.graphml", begin + "<edge source=\"x\" target=\"hub\"/>\n" + end, 8, {"rate_bps or rate"});
  expect_error_in_file("a.graphml", begin + "<node id=\"x\"/>\n" + end, 8, {"'x' is used already"});
  expect_error_in_file("a.graphml", begin + one + end, 6, {"switch 1 has no link"});
}

/// As networkx writes a DiGraph: an edge for each direction. Both are one link, not two.
TEST_F(Readers, GraphmlOfDirectedGraphs) {
  const auto edge = [](const std::string& from, const std::string& to, const std::string& rate) {
    return fmt::format("<edge source=\"{}\" target=\"{}\"><data key=\"r\"> {}\n</data></edge>\n", from, to, rate);
  };
  const std::string begin =
      "<graphml>\n<key id=\"r\" for=\"edge\" attr.name=\"rate\"/>\n<key id=\"d\" for=\"edge\" attr.name=\"delay\">"
      "<default>2 us</default></key>\n<graph edgedefault=\"directed\">\n<node id=\"x\"/>\n<node id=\"y\"/>\n<node "
      "id=\"hub\"/>\n";
  const std::string end = "</graph>\n</graphml>\n";
  const std::string to_hub = edge("x", "hub", "10 Gb/s") + edge("y", "hub", "10 Gb/s");
  for (const std::string& back : {std::string(), edge("hub", "y", "10 Gb/s") + edge("hub", "x", "10 Gb/s")}) {
    const Topology topology = read("machine.graphml", begin + to_hub + back + end);
    EXPECT_EQ(topology.graph.host_count(), 2U);
    EXPECT_EQ(topology.graph.switch_count(), 1U);
    ASSERT_EQ(topology.graph.link_count(), 2U);
    EXPECT_EQ(topology.graph.link(LinkId(1)).rate, Bandwidth::from_gbps(10));
    EXPECT_EQ(topology.graph.link(LinkId(1)).delay, Time::from_us(2));
  }
  expect_error_in_file("a.graphml", begin + to_hub + edge("hub", "y", "5 Gb/s") + end, 12,
                       {"5 Gb/s and 2 us", "a.graphml:10) has 10 Gb/s and 2 us", "the same rate and delay in both"});
  expect_error_in_file("a.graphml", begin + to_hub + edge("hub", "y", "10 Gb/s") + end, 8, {"no edge leads back"});
}

TEST_F(Readers, FilesThatAreNotThere) {
  test::expect_error("kind: file\npath: nowhere.topo\n", 2, {"nowhere.topo: cannot open this file: No such file"});
  test::expect_error("kind: file\npath: nowhere.yaml\n", 2, {"nowhere.yaml: cannot open this file: No such file"});
  test::expect_error("kind: file\npath: machine.xyz\n", 2, {".graphml", ".topo", "format:"});
  test::expect_error("kind: file\npath: tpu_v5e_pods\n", 2, {"did you mean 'tpu_v5e_pod'?"});
  test::expect_error("kind: file\npath: a.topo\nformat: htsm\n", 3, {"did you mean 'htsim'?"});
}

/// Two CPUs, each with a PCIe switch for two GPUs and a NIC.
std::string nccl_file() {
  std::string text = "<system version=\"1\">\n";
  for (int cpu = 0; cpu < 2; ++cpu) {
    text += fmt::format("<cpu numaid=\"{}\" arch=\"x86_64\" vendor=\"AuthenticAMD\">\n", cpu) +
            "<pci busid=\"s\" class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">\n";
    for (int gpu = 2 * cpu; gpu < 2 * cpu + 2; ++gpu)
      text += fmt::format(
          "<pci busid=\"g{0}\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">\n<gpu dev=\"{0}\" "
          "sm=\"80\">\n<nvlink target=\"bridge\" count=\"12\" tclass=\"0x068000\"/>\n</gpu>\n</pci>\n",
          gpu);
    text += fmt::format(
        "<pci busid=\"n{0}\" class=\"0x020700\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">\n<nic>\n<net "
        "name=\"mlx5_{0}\" dev=\"{0}\" speed=\"200000\" port=\"1\"/>\n</nic>\n</pci>\n</pci>\n</cpu>\n",
        cpu);
  }
  return text + "</system>\n";
}

std::string four_servers(const std::string& path, const std::string& more = "") {
  return fmt::format(
      "{{kind: star, hosts: 4, link_rate: 200 Gb/s, link_delay: 1 us, server: {{nccl_topology: {}, "
      "nvlink_delay: 100 ns, pcie_delay: 200 ns, smp_rate: 256 Gb/s, smp_delay: 300 ns{}}}}}",
      path, more);
}

TEST_F(Readers, ProcessorsOfNccl) {
  const auto cpu = [&](const std::string& attributes, const std::string& more = "") {
    std::string text = nccl_file();
    const std::string amd = "arch=\"x86_64\" vendor=\"AuthenticAMD\"";
    text.replace(text.find(amd), amd.size(), attributes);  // of the first one
    return shape_of<ServerShape>(machine_of(machine(four_servers(write("node.xml", text), more))))->design.cpu;
  };
  EXPECT_EQ(cpu("arch=\"x86_64\" vendor=\"AuthenticAMD\""), HostCpu::amd);
  EXPECT_EQ(cpu("arch=\"x86_64\" vendor=\"GenuineIntel\""), HostCpu::intel);
  EXPECT_EQ(cpu("arch=\"arm64\""), HostCpu::arm);
  EXPECT_EQ(cpu("arch=\"arm64\"", ", cpu: amd"), HostCpu::amd);
}

TEST_F(Readers, ServerOfNccl) {
  const Topology topology = machine(four_servers(write("node.xml", nccl_file())));
  const auto& design = shape_of<ServerShape>(machine_of(topology))->design;
  EXPECT_EQ(topology.graph.host_count(), 8U);
  EXPECT_EQ(design.gpus, 4U);
  EXPECT_EQ(design.nodes, 4U + 2 + 2 + 2 + 1);  // GPUs, CPUs, PCIe switches, NICs, NVSwitches as one
  EXPECT_EQ(design.nic_of_gpu, (std::vector<std::uint32_t>{0, 0, 1, 1}));
  std::map<std::string, std::size_t> count;
  for (const auto& link : design.links) {
    ++count[link.link_class];
    // 12 links of 25 GB/s; 16 lanes of 16 GT/s x 128/130.
    if (link.link_class == "nvlink") {
      EXPECT_EQ(link.link.rate, Bandwidth::from_gbps(2400));
    }
    if (link.link_class == "pcie") {
      EXPECT_NEAR(static_cast<double>(link.link.rate.bps()), 16e9 * 16 * 128 / 130, 16);
    }
  }
  EXPECT_EQ(count, (std::map<std::string, std::size_t>{{"nvlink", 4}, {"pcie", 8}, {"smp", 1}}));
}

// 16 lanes of 8 GT/s, as NCCL's ncclTopoAddPci() takes them.
TEST_F(Readers, PcieOfVirtualMachines) {
  for (const auto& [speed, width, rate] :
       {std::tuple("32.0 GT/s PCIe", "0", 32e9 * 16), {"Unknown", "0", 8e9 * 16}, {"", "4", 8e9 * 4}}) {
    std::string text = nccl_file();
    const std::string known = "link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"";
    text.replace(text.find(known), known.size(), fmt::format("link_speed=\"{}\" link_width=\"{}\"", speed, width));
    const Topology topology = machine(four_servers(write("node.xml", text)));
    const auto& first = shape_of<ServerShape>(machine_of(topology))->design.links.front();
    EXPECT_EQ(first.link_class, "pcie");
    EXPECT_NEAR(static_cast<double>(first.link.rate.bps()), rate * 128 / 130, 16);
  }
}

/// As RCCL writes it: two GPUs of AMD with two links between them.
std::string rccl_file(const std::string& gcn) {
  std::string text = "<system version=\"2\">\n<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\">\n";
  for (int gpu = 0; gpu < 2; ++gpu)
    text += fmt::format(
        "<pci busid=\"g{}\" class=\"0x120000\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n<gpu dev=\"{}\" "
        "sm=\"304\" gcn=\"{}\">\n<xgmi target=\"g{}\" count=\"2\" tclass=\"0x120000\"/>\n</gpu>\n</pci>\n",
        gpu, gpu, gcn, 1 - gpu);
  return text + "</cpu>\n</system>\n";
}

TEST_F(Readers, InfinityFabricOfRccl) {
  const std::string file = "{{kind: server, design: {{nccl_topology: {}, nvlink_delay: 100 ns, pcie_delay: 200 ns}}}}";
  for (const auto& [gcn, bytes, framing] : {std::tuple("gfx950", 76.8e9, LinkFraming{48, 16, 0}),
                                            {"gfx942", 64e9, {48, 16, 0}},
                                            {"gfx90a", 50e9, {36, 14, 0}}}) {
    const Topology topology = machine(fmt::format(fmt::runtime(file), write("node.xml", rccl_file(gcn))));
    const auto& links = shape_of<ServerShape>(machine_of(topology))->design.links;
    const auto xgmi =
        std::find_if(links.begin(), links.end(), [](const auto& one) { return one.link_class == "nvlink"; });
    ASSERT_NE(xgmi, links.end());
    EXPECT_EQ(xgmi->link.rate, Bandwidth::from_bps(static_cast<std::int64_t>(2 * 8 * bytes)));
    EXPECT_EQ(xgmi->framing, framing);
  }
  const std::string path = write("node.xml", rccl_file("gfx906"));
  try {
    machine(fmt::format(fmt::runtime(file), path));
    ADD_FAILURE() << "gfx906";
  } catch (const InputError& error) {
    EXPECT_EQ(error.what(),
              path + ":5: found an xgmi link of 'gfx906', whose rate is not known; expected gfx950, gfx942 or gfx90a");
  }
}

TEST_F(Readers, NcclErrorsAtTheirLine) {
  const auto expect = [&](const std::string& from, const std::string& to, int line, const std::string& fragment) {
    std::string text = nccl_file();
    text.replace(text.find(from), from.size(), to);
    const std::string path = write("node.xml", text);
    try {
      machine(four_servers(path));
      ADD_FAILURE() << from;
    } catch (const InputError& error) {
      const std::string what = error.what();
      EXPECT_EQ(what.rfind(path + ":" + std::to_string(line) + ":", 0), 0U) << what;
      EXPECT_NE(what.find(fragment), std::string::npos) << what;
    }
  };
  expect("16.0 GT/s PCIe", "fast", 3, "expected a speed such as '16.0 GT/s PCIe'");
  expect("link_width=\"16\"", "link_width=\"\"", 3, "link_width");
  expect("sm=\"80\"", "sm=\"new\"", 5, "sm");
  expect("count=\"12\"", "count=\"0\"", 6, "count");
  expect("busid=\"g1\"", "busid=\"g0\"", 10, "has a GPU already");
  expect("</system>", "<", 40, "no XML");
}

}  // namespace
}  // namespace weft::readers_test
