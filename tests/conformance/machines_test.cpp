// SPDX-License-Identifier: GPL-2.0-only
// The contracts of machines and routings, for every registered family, key of any machine, format of files and routing,
// on its sample: each host reaches each other without a cycle, ports lead back, parts hold all nodes, and lanes
// suffice.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>

#include "graph/partition/partition.hpp"
#include "routing/algorithm/deadlock_check.hpp"
#include "tests/conformance/samples.hpp"
#include "tests/routing/formulas.hpp"
#include "tests/topologies/properties.hpp"
#include "topologies/files/machine_file.hpp"

namespace weft::machines_test {
namespace {

using conformance::sample_of;
using conformance::spec_of_sample;
using conformance::test_name;

/// Every node can be reached from host 0, counted without the code under test.
void expect_connected(const ClusterGraph& graph) {
  const auto distances = test::distances_from(graph, NodeId(0));
  for (std::uint32_t node = 0; node < graph.node_count(); ++node)
    ASSERT_LT(distances.hops[node], graph.node_count()) << graph.name(NodeId(node));
}

void expect_sound_links(const Topology& topology) {
  test::expect_consistent_ports(topology.graph);
  ASSERT_EQ(topology.link_class.size(), topology.graph.link_count());
  for (std::uint32_t i = 0; i < topology.graph.link_count(); ++i) {
    EXPECT_GT(topology.graph.link(LinkId(i)).rate.bps(), 0);
    EXPECT_GT(topology.graph.link(LinkId(i)).delay, Time());
    EXPECT_LT(topology.link_class[i], topology.link_classes.size());
  }
}

/// Calls `check` for each two hosts between which there is a way; rails have none to each other.
template <class Check>
void for_each_pair(const Topology& topology, Check&& check) {
  for (const NodeId source : topology.graph.hosts()) {
    const auto distances = test::distances_from(topology.graph, source);
    for (const NodeId destination : topology.graph.hosts())
      if (destination != source && distances.hops[destination.value()] < topology.graph.node_count())
        check(source, destination);
  }
}

/// trace_path() breaks a contract if a way leads in a cycle or to a port that is not there.
void expect_delivered(const Topology& topology, const RoutingAlgorithm& routing) {
  for_each_pair(topology, [&](NodeId source, NodeId destination) {
    for (const std::uint32_t queue_pair : {0U, 1U, 77U}) {
      const auto path = trace_path(topology, routing, {source, destination, queue_pair});
      ASSERT_FALSE(path.empty());
      const PathHop& last = path.back();
      EXPECT_EQ(topology.graph.ports(last.node)[last.port].peer, destination);
    }
  });
}

/// All equal choices, not only those that a hash takes: none leads in a cycle.
void expect_all_ways_to_end(const Topology& topology, const RoutingAlgorithm& routing) {
  std::vector<double> loads(2 * topology.graph.link_count(), 0);
  for_each_pair(topology, [&](NodeId source, NodeId destination) {
    test::add_load(topology, routing, source.value(), destination.value(), 1, loads);
  });
}

/// A verdict with its reason; with several lanes there is no cycle, for that is what lanes are for.
void expect_verdict(const Topology& topology, const RoutingAlgorithm& routing) {
  const DeadlockReport report = check_deadlock(topology, routing);
  EXPECT_GT(report.channels, 0U);
  for (const Channel& channel : report.cycle) EXPECT_LT(channel.lane, routing.lanes());
  if (routing.lanes() > 1) {
    EXPECT_TRUE(report.free_of_deadlock()) << to_text(topology, report.cycle);
  }
}

/// Each node has one owner, and the facts of the cut are those of the owners.
void expect_partition(const Topology& topology) {
  for (const std::uint32_t parts : {1U, 2U, 3U})
    for (const std::string method : {"auto", "groups", "metis", "random"}) {
      const Partition partition = make_partition(topology, parts, method, Bytes(66), 1);
      ASSERT_EQ(partition.owner.size(), topology.graph.node_count()) << method;
      for (const std::uint16_t owner : partition.owner) ASSERT_LT(owner, parts) << method;
      std::uint32_t cut = 0;
      for (std::uint32_t i = 0; i < topology.graph.link_count(); ++i) {
        const auto& ends = topology.graph.link(LinkId(i)).ends;
        cut += partition.owner[ends[0].value()] != partition.owner[ends[1].value()] ? 1 : 0;
      }
      EXPECT_EQ(partition.cut_links, cut) << method << ", " << parts << " parts";
    }
}

void expect_sound(const Topology& topology) {
  ASSERT_GT(topology.graph.host_count(), 1U);
  ASSERT_NO_FATAL_FAILURE(expect_connected(topology.graph));
  ASSERT_NO_FATAL_FAILURE(expect_sound_links(topology));
  const auto routing = test::prepared_routing(topology.routing, topology);
  ASSERT_NO_FATAL_FAILURE(expect_delivered(topology, *routing));
  expect_verdict(topology, *routing);
  expect_partition(topology);
}

class Families : public ::testing::TestWithParam<std::string> {};

TEST_P(Families, AreConnectedRoutedAndShared) {
  const Topology topology = build_topology(spec_of_sample("topologies", GetParam()));
  EXPECT_EQ(spec_of_sample("topologies", GetParam()).at("kind").text(), GetParam());
  expect_sound(topology);
}

// Two machines of one description are the same: results depend on the numbers of their nodes.
TEST_P(Families, HaveOneOrder) {
  const Topology one = build_topology(spec_of_sample("topologies", GetParam()));
  const Topology other = build_topology(spec_of_sample("topologies", GetParam()));
  ASSERT_EQ(one.graph.link_count(), other.graph.link_count());
  for (std::uint32_t i = 0; i < one.graph.link_count(); ++i)
    for (const std::size_t end : {0U, 1U})
      EXPECT_EQ(one.graph.link(LinkId(i)).ends[end], other.graph.link(LinkId(i)).ends[end]);
}

// A key that a family does not know is an error of the file's author.
TEST_P(Families, RefuseUnknownKeys) {
  Spec spec = spec_of_sample("topologies", GetParam());
  spec.set("qwertzuiop", "1");
  EXPECT_THROW(build_topology(spec), InputError);
}

INSTANTIATE_TEST_SUITE_P(Registered, Families, ::testing::ValuesIn(TopologyRegistry::instance().names()), test_name);

class Keys : public ::testing::TestWithParam<std::string> {};

TEST_P(Keys, GiveASoundMachine) {
  const Spec spec = spec_of_sample("machine_keys", GetParam());
  EXPECT_TRUE(spec.find(GetParam())) << "the sample lacks the key";
  expect_sound(build_topology(spec));
}

INSTANTIATE_TEST_SUITE_P(Registered, Keys, ::testing::ValuesIn(ExtensionRegistry::instance().names()), test_name);

class Formats : public ::testing::TestWithParam<std::string> {};

TEST_P(Formats, GiveASoundMachine) {
  const std::string path = sample_of("machine_formats", GetParam()).string();
  expect_sound(test::machine(fmt::format("{{kind: file, path: '{}', format: {}}}", path, GetParam())));
}

// Half a file is refused with its name.
TEST_P(Formats, RefuseDamage) {
  std::ifstream file(sample_of("machine_formats", GetParam()));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  try {
    MachineFormatRegistry::instance().find(GetParam())->make()->read(text.substr(0, text.size() / 2), "half.txt");
    ADD_FAILURE() << "half of it is taken for all";
  } catch (const InputError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("half.txt:")) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Registered, Formats, ::testing::ValuesIn(MachineFormatRegistry::instance().names()),
                         test_name);

class Routings : public ::testing::TestWithParam<std::string> {
 protected:
  Topology topology_ = build_part(spec_of_sample("routing", GetParam()));
};

TEST_P(Routings, DeliverBetweenAllPairs) {
  expect_delivered(topology_, *test::prepared_routing(GetParam(), topology_));
}

TEST_P(Routings, LeadNowhereInACycle) {
  const auto routing = test::prepared_routing(GetParam(), topology_);
  if (routing->per_packet() || topology_.paths) GTEST_SKIP() << "ways depend on more than the destination";
  expect_all_ways_to_end(topology_, *routing);
}

TEST_P(Routings, HaveLanesEnough) { expect_verdict(topology_, *test::prepared_routing(GetParam(), topology_)); }

// The same seed gives the same ways.
TEST_P(Routings, AnswerAlwaysTheSame) {
  const auto one = test::prepared_routing(GetParam(), topology_);
  const auto other = test::prepared_routing(GetParam(), topology_);
  for_each_pair(topology_, [&](NodeId source, NodeId destination) {
    const auto first = trace_path(topology_, *one, {source, destination, destination.value()});
    const auto second = trace_path(topology_, *other, {source, destination, destination.value()});
    EXPECT_TRUE(std::equal(first.begin(), first.end(), second.begin(), second.end(),
                           [](const PathHop& a, const PathHop& b) { return a.directed_link == b.directed_link; }));
  });
}

INSTANTIATE_TEST_SUITE_P(Registered, Routings, ::testing::ValuesIn(RoutingRegistry::instance().names()), test_name);

}  // namespace
}  // namespace weft::machines_test
