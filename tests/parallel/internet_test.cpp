// SPDX-License-Identifier: GPL-2.0-only
// ns-3 applications on hosts of all processes, with random numbers, TCP losses and RDMA traffic beside them: the time
// at which a packet reaches the stack does not depend on the owners of hosts.
// MPI ranks: 1 2 3 4 8
// Also in Release: threads and processes meet at another pace there, and the compiler orders more
#include "internet/internet.hpp"

#include <gtest/gtest.h>
#include <ns3/bulk-send-helper.h>
#include <ns3/inet-socket-address.h>
#include <ns3/node-container.h>
#include <ns3/on-off-helper.h>
#include <ns3/packet-sink-helper.h>
#include <ns3/string.h>
#include <ns3/uinteger.h>

#include "support/basics/random.hpp"
#include "tests/fabric/ns3/ns3_scenario.hpp"

namespace weft::internet_test {
namespace {

constexpr std::uint32_t hosts = 16;
const std::string fat_tree = "{kind: fat_tree, k: 4, link_rate: 100 Gb/s, link_delay: 500 ns}";
const std::string small_queues = "{buffer: {queue: 40 kB}, switch_latency: 50 ns}";
const std::string incast = "{kind: traffic, pattern: incast, destination: 0, sources: 15, size: 30 KiB}";

struct Outcome {
  std::uint64_t packets = 0;
  std::uint64_t sum = 0;
  std::uint64_t dropped = 0;
  std::int64_t end = 0;
  bool operator==(const Outcome&) const = default;
};

/// Each host sends datagrams at random times to another, and half of them a TCP transfer to a third.
void install(Internet& internet, Outcome& outcome) {
  internet.install_everywhere();
  for (std::uint32_t host = 0; host < hosts; ++host) {
    for (const char* protocol : {"ns3::UdpSocketFactory", "ns3::TcpSocketFactory"}) {
      const bool tcp = protocol[5] == 'T';
      const ns3::InetSocketAddress here(Internet::address(NodeId(host)), 80);
      auto sinks = internet.add(ns3::PacketSinkHelper(protocol, here), NodeId(host));
      for (std::uint32_t i = 0; i < sinks.GetN(); ++i)
        sinks.Get(i)->TraceConnectWithoutContext(
            "Rx", ns3::Callback<void, ns3::Ptr<const ns3::Packet>, const ns3::Address&>(
                      [&outcome, host, tcp](ns3::Ptr<const ns3::Packet> packet, const ns3::Address&) {
                        ++outcome.packets;
                        outcome.sum += mix64(mix64(static_cast<std::uint64_t>(test::now().ps())) ^
                                             (std::uint64_t{packet->GetSize()} << 32 | host << 1 | (tcp ? 1 : 0)));
                      }));
    }
    ns3::OnOffHelper datagrams("ns3::UdpSocketFactory",
                               ns3::InetSocketAddress(Internet::address(NodeId((host + 5) % hosts)), 80));
    datagrams.SetAttribute("OnTime", ns3::StringValue("ns3::ExponentialRandomVariable[Mean=5e-6]"));
    datagrams.SetAttribute("OffTime", ns3::StringValue("ns3::ExponentialRandomVariable[Mean=5e-6]"));
    datagrams.SetAttribute("DataRate", ns3::StringValue("20Gb/s"));
    datagrams.SetAttribute("MaxBytes", ns3::UintegerValue(50'000));
    internet.add(datagrams, NodeId(host));
    if (const auto node = internet.node(NodeId(host)))
      datagrams.AssignStreams(ns3::NodeContainer(node), Internet::stream(NodeId(host)));
    if (host % 2 == 0) continue;
    ns3::BulkSendHelper bulk("ns3::TcpSocketFactory",
                             ns3::InetSocketAddress(Internet::address(NodeId(host * 3 % hosts)), 80));
    bulk.SetAttribute("MaxBytes", ns3::UintegerValue(100'000));
    if (host * 3 % hosts != host) internet.add(bulk, NodeId(host)).Start(ns3::MicroSeconds(host));
  }
}

Outcome run(ProcessGroup group) {
  test::Scenario scenario(fat_tree, small_queues, incast, EngineChoice::weft, group, "{partition: random, seed: 3}");
  Ns3View view(scenario.fabric(), scenario.topology());
  Internet internet(view, 7);
  Outcome outcome;
  install(internet, outcome);
  scenario.run();
  outcome.packets = group.sum(outcome.packets);
  outcome.sum = group.sum(outcome.sum);
  outcome.dropped = group.sum(scenario.fabric().frame_counters().dropped);
  outcome.end = scenario.facts.simulated.ps();
  return outcome;
}

TEST(internet, applications_see_the_same_on_any_number_of_processes) {
  const Outcome alone = run(ProcessGroup::alone());
  EXPECT_GT(alone.packets, 1000U);
  EXPECT_GT(alone.dropped, 0U);
  const Outcome together = run(ProcessGroup(MPI_COMM_WORLD));
  EXPECT_EQ(together.packets, alone.packets);
  EXPECT_EQ(together.sum, alone.sum);
  EXPECT_EQ(together.dropped, alone.dropped);
  EXPECT_EQ(together.end, alone.end);
}

}  // namespace
}  // namespace weft::internet_test
