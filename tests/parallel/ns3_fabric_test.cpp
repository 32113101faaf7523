// SPDX-License-Identifier: GPL-2.0-only
// The ns-3 view on several MPI ranks: attributes, traces and errors do not depend on the owners of nodes.
// MPI ranks: 1 2 3
// Also in Release: threads and processes meet at another pace there, and the compiler orders more
#include <algorithm>

#include <gtest/gtest.h>
#include <ns3/config.h>
#include <ns3/node-list.h>

#include "fabric/ns3/ns3_attributes.hpp"
#include "tests/fabric/ns3/ns3_scenario.hpp"

namespace weft::ns3_fabric_test {
namespace {

using test::Scenario;

const std::string fat_tree = "{kind: fat_tree, k: 4, link_rate: 400 Gb/s, link_delay: 500 ns}";
const std::string incast = "{kind: traffic, pattern: incast, destination: 0, sources: 15, size: 60 KiB}";
const std::string scattered = "{partition: random, seed: 3}";

/// Sums over all processes of a mixed value per row: equal if the rows are.
struct Digest {
  std::uint64_t rows = 0;
  std::uint64_t sum = 0;
  void add(std::initializer_list<std::uint64_t> values) {
    std::uint64_t mixed = 0;
    for (const std::uint64_t value : values) mixed = mix64(mixed ^ (value + 0x9e37));
    sum += mixed;
    ++rows;
  }
  Digest over(const ProcessGroup& group) const { return {group.sum(rows), group.sum(sum)}; }
  bool operator==(const Digest&) const = default;
};

struct Outcome {
  Digest messages;
  Digest links;
  Digest traces;
  std::int64_t end = 0;
  bool operator==(const Outcome&) const = default;
};

/// Faster, slower and nearer links, inside and over the cut, each set by the process that owns the object.
void change_links(ProcessGroup& group, Fabric& fabric) {
  const std::pair<const char*, const char*> changes[] = {
      {"/Names/switch0/DeviceList/*/Channel/Delay", "30 ns"},
      {"/Names/switch19/DeviceList/*/DataRate", "1600 Gb/s"},
      {"/Names/host5/DeviceList/0/DataRate", "100 Gb/s"},
      {"/Names/host5/DeviceList/0/Channel/DataRate", "200 Gb/s"},
      {"/Names/switch2/DeviceList/1/DataRate", "50 Gb/s"},
  };
  for (const auto& [path, value] : changes) {
    const Spec document = Spec::parse(fmt::format("v: {}\n", value), "x.yaml");
    EXPECT_GE(group.sum(set_ns3_attribute(path, document.at("v"))), 1U) << path;
    fabric.settle_links(group);
  }
}

Outcome run(ProcessGroup group) {
  Scenario scenario(fat_tree, "{switch_latency: 50 ns}", incast, EngineChoice::weft, group, scattered);
  Fabric& fabric = scenario.fabric();
  const Ns3View view(fabric, scenario.topology());
  change_links(group, fabric);
  Outcome outcome;
  Time latest;
  bool in_order = true;
  for (std::uint32_t n = 0; n < scenario.graph().node_count(); ++n) {
    if (!fabric.owns(NodeId(n))) continue;
    for (std::uint32_t p = 0; p < scenario.graph().ports(NodeId(n)).size(); ++p) {
      for (const char* source : {"PhyTxBegin", "PhyTxEnd", "PhyRxEnd"}) {
        const auto kind =
            static_cast<std::uint64_t>(source[3] == 'R') * 2 + static_cast<std::uint64_t>(source[5] == 'E');
        view.device(NodeId(n), p)
            ->TraceConnectWithoutContext(
                source,
                ns3::Callback<void, ns3::Ptr<const ns3::Packet>>([&, n, p, kind](ns3::Ptr<const ns3::Packet> packet) {
                  in_order = in_order && test::now() >= latest;
                  latest = test::now();
                  outcome.traces.add({n, p, kind, packet->GetSize(), static_cast<std::uint64_t>(test::now().ps())});
                }));
      }
    }
  }
  scenario.run();
  EXPECT_TRUE(in_order);
  for (const MessageRecord& m : scenario.messages())
    outcome.messages.add({m.id, static_cast<std::uint64_t>(m.issued), static_cast<std::uint64_t>(m.delivered),
                          static_cast<std::uint64_t>(m.ideal)});
  for (const LinkCounters& l : fabric.link_counters())
    outcome.links.add({l.directed_link, l.packets, static_cast<std::uint64_t>(l.bytes.count()),
                       static_cast<std::uint64_t>(l.busy.ps()), static_cast<std::uint64_t>(l.peak_queue_bytes.count()),
                       static_cast<std::uint64_t>(l.times.rate.bps()), static_cast<std::uint64_t>(l.times.delay.ps())});
  outcome.messages = outcome.messages.over(group);
  outcome.links = outcome.links.over(group);
  outcome.traces = outcome.traces.over(group);
  outcome.end = scenario.facts.simulated.ps();
  return outcome;
}

TEST(ns3_fabric, attributes_and_traces_are_the_same_on_any_number_of_processes) {
  const Outcome alone = run(ProcessGroup::alone());
  const Outcome together = run(ProcessGroup(MPI_COMM_WORLD));
  EXPECT_EQ(alone.messages.rows, 15U);
  EXPECT_EQ(together.messages, alone.messages);
  EXPECT_EQ(together.links, alone.links);
  EXPECT_EQ(together.traces, alone.traces);
  EXPECT_EQ(together.end, alone.end);
}

TEST(ns3_fabric, each_process_has_the_objects_of_what_it_owns) {
  ProcessGroup group(MPI_COMM_WORLD);
  Scenario scenario(fat_tree, "{}", test::silence, EngineChoice::weft, group, scattered);
  const Ns3View view(scenario.fabric(), scenario.topology());
  const ClusterGraph& graph = scenario.graph();
  EXPECT_EQ(group.sum(view.hosts().GetN()), graph.host_count());
  EXPECT_EQ(group.sum(view.switches().GetN()), graph.switch_count());
  const std::vector<std::uint16_t>& owner = scenario.simulation.partition().owner;
  std::uint64_t cut = 0;
  for (std::uint32_t l = 0; l < graph.link_count(); ++l) {
    const LinkProperties& link = graph.link(LinkId(l));
    const auto here = view.ends(LinkId(l));
    std::uint32_t owned = 0;
    for (const NodeId end : link.ends) owned += owner[end.value()] == group.rank() ? 1 : 0;
    ASSERT_EQ(here.GetN(), owned);
    if (owned == 0) continue;
    EXPECT_EQ(here.Get(0)->GetChannel()->GetNDevices(), owned);
    cut += owned == 1 ? 1 : 0;
  }
  EXPECT_EQ(group.sum(cut), 2 * scenario.simulation.partition().cut_links);
}

TEST(ns3_fabric, a_stack_does_not_reach_over_the_cut) {
  ProcessGroup group(MPI_COMM_WORLD);
  Scenario scenario(fat_tree, "{}", test::silence, EngineChoice::weft, group, scattered);
  const Ns3View view(scenario.fabric(), scenario.topology());
  std::uint64_t refused = 0;
  for (std::uint32_t l = 0; l < scenario.graph().link_count(); ++l) {
    const auto ends = view.ends(LinkId(l));
    for (std::uint32_t i = 0; i < ends.GetN(); ++i) {
      try {
        ends.Get(i)->Send(ns3::Create<ns3::Packet>(100), ends.Get(i)->GetBroadcast(), 0x88b5);
        EXPECT_EQ(ends.GetN(), 2U);
      } catch (const InputError& error) {
        EXPECT_EQ(ends.GetN(), 1U) << error.what();
        EXPECT_NE(std::string(error.what()).find("MPI"), std::string::npos);
        ++refused;
      }
    }
  }
  EXPECT_EQ(group.sum(refused), 2 * scenario.simulation.partition().cut_links);
  scenario.run();
}

TEST(ns3_fabric, contradicting_changes_of_a_link_are_refused) {
  ProcessGroup group(MPI_COMM_WORLD);
  Scenario scenario(fat_tree, "{}", test::silence, EngineChoice::weft, group, scattered);
  Fabric& fabric = scenario.fabric();
  fabric.set_link_times(7, {Bandwidth::from_gbps(10), Time::from_ns(10)});
  EXPECT_NO_THROW(fabric.settle_links(group));  // all alike
  fabric.set_link_times(7, {Bandwidth::from_gbps(10 + group.rank()), Time::from_ns(10)});
  if (group.size() == 1)
    EXPECT_NO_THROW(fabric.settle_links(group));
  else
    EXPECT_THROW(fabric.settle_links(group), InputError);
}

}  // namespace
}  // namespace weft::ns3_fabric_test
