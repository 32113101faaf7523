// SPDX-License-Identifier: GPL-2.0-only
// The errors of build_topology, for a machine of any family.
#include "graph/topology/topology_builder.hpp"

#include <gtest/gtest.h>

#include "tests/topologies/machine.hpp"

namespace weft::topology_builder_test {
namespace {

using test::expect_error;
using test::machine;

const Bandwidth rate = Bandwidth::from_gbps(100);
const Time delay = Time::from_ns(500);

/// Two hosts on a switch, with one fault.
class Faulty final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    const std::string fault = spec.at("fault").text();
    spec.finish();
    Topology topology;
    if (fault != "no host") {
      topology.graph.add_host();
      topology.graph.add_host();
    }
    const NodeId last = topology.graph.add_switch(1);
    for (std::uint32_t i = 0; i < topology.graph.host_count(); ++i)
      topology.graph.add_link(NodeId(i), last, rate, delay);
    spoil(topology.graph, fault, last);
    topology.link_class.assign(topology.graph.link_count(), 0);
    topology.link_classes = {"host"};
    return topology;
  }

 private:
  static void spoil(ClusterGraph& graph, const std::string& fault, NodeId hub) {
    if (fault == "second port") graph.add_link(NodeId(1), hub, rate, delay);
    if (fault == "no rate") graph.add_link(hub, graph.add_switch(1), Bandwidth(), delay);
    if (fault == "no delay") graph.add_link(hub, graph.add_switch(1), rate, Time());
    if (fault == "island") graph.add_switch(1);
  }
};
const Registration<TopologyBuilder, Faulty> registration("test_faulty", "for tests");

std::string faulty(const std::string& fault) { return "kind: test_faulty\nfault: " + fault + "\n"; }

TEST(BuildTopology, AcceptsASoundMachine) {
  const Topology topology = machine(faulty("none"));
  EXPECT_EQ(topology.kind, "test_faulty");
  EXPECT_EQ(topology.graph.host_count(), 2U);
}

TEST(BuildTopology, UnknownKindNamesTheKnown) {
  std::vector<std::string> wanted = TopologyRegistry::instance().names();
  EXPECT_GT(wanted.size(), 1U);
  wanted.push_back("unknown value 'qwertzuiop'");
  expect_error("# machine\nkind: qwertzuiop\n", 2, wanted);
  expect_error("kind: test_fault\n", 1, {"'test_fault'", "did you mean 'test_faulty'?"});
  expect_error("k: 4\n", 1, {"kind"});
}

TEST(BuildTopology, RefusesWhatCannotBeSimulated) {
  expect_error(faulty("no host"), 1, {"no host", "at least 1"});
  expect_error(faulty("second port"), 1, {"host1 has 2 links", "exactly 1"});
  expect_error(faulty("no rate"), 1, {"link switch0 - switch1 has no rate"});
  expect_error(faulty("no delay"), 1, {"link switch0 - switch1 has no delay", "zero delay", "1 ps"});
  expect_error(faulty("island"), 1, {"switch1 cannot be reached from host0"});
}

}  // namespace
}  // namespace weft::topology_builder_test
