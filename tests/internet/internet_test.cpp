// SPDX-License-Identifier: GPL-2.0-only
// ns-3's stack on hosts, with its packets switched by the fabric: times by formula, classes, and refused inputs.
#include "internet/internet.hpp"

#include <ns3/bulk-send-helper.h>
#include <ns3/inet-socket-address.h>
#include <ns3/packet-sink-helper.h>
#include <ns3/packet-sink.h>
#include <ns3/udp-echo-helper.h>
#include <ns3/uinteger.h>

#include "fabric/frames/ethernet.hpp"
#include "tests/fabric/ns3/ns3_scenario.hpp"
#include "tests/fabric/ns3/packet_log.hpp"

namespace weft::internet_test {
namespace {

using test::PacketLog;
using test::Scenario;
using test::Seen;
using test::to_ns3;

constexpr Bandwidth rate = Bandwidth::from_gbps(100);
constexpr Time delay = Time::from_ns(500);
constexpr Bytes gap(20);  // and preamble
const std::string line = "{kind: line, links: 4, link_rate: 100 Gb/s, link_delay: 500 ns}";

Time frame_time(Bytes packet) { return serialization_time(frame_of_packet(packet) + gap, rate); }

class InternetEngines : public ::testing::TestWithParam<EngineChoice> {};
INSTANTIATE_TEST_SUITE_P(internet, InternetEngines, ::testing::Values(EngineChoice::weft, EngineChoice::ns3_default));

TEST_P(InternetEngines, udp_echo_through_three_switches) {
  for (const std::uint32_t bytes : {1U, 1000U, 4000U}) {
    Scenario scenario(line, "{switch_latency: 300 ns}", test::silence, GetParam());
    Ns3View view(scenario.fabric(), scenario.topology());
    Internet internet(view, 1);
    internet.install_everywhere();
    internet.add(ns3::UdpEchoServerHelper(9), NodeId(1)).Start(ns3::Seconds(0));
    ns3::UdpEchoClientHelper helper(Internet::address(NodeId(1)), 9);
    helper.SetAttribute("MaxPackets", ns3::UintegerValue(2));
    helper.SetAttribute("Interval", ns3::TimeValue(ns3::MicroSeconds(20)));
    helper.SetAttribute("PacketSize", ns3::UintegerValue(bytes));
    auto client = internet.add(helper, NodeId(0));
    client.Start(ns3::MicroSeconds(2));
    PacketLog answered;
    PacketLog begins;
    PacketLog arrives;
    answered.watch(client.Get(0), "Rx");
    begins.watch(view.device(NodeId(3), 1), "PhyTxBegin");  // of the middle switch, towards host 1
    arrives.watch(view.device(NodeId(1), 0), "PhyRxEnd");
    scenario.run();
    const Bytes packet(bytes + 8 + 20);
    const Time hop = frame_time(packet) + delay;
    const Time way = 4 * hop + 3 * Time::from_ns(300);
    Seen expected[3];
    for (int i = 0; i < 2; ++i) {
      const Time start = Time::from_us(2 + 20 * i);
      const auto frame = static_cast<std::uint32_t>(14 + packet.count());
      expected[0].emplace_back(start + 2 * way, bytes);
      expected[1].emplace_back(start + 2 * (hop + Time::from_ns(300)), frame);
      expected[2].emplace_back(start + way, frame);
    }
    EXPECT_EQ(answered.seen, expected[0]);
    EXPECT_EQ(begins.seen, expected[1]);
    EXPECT_EQ(arrives.seen, expected[2]);
    // Counted like other packets, on all links and in both directions.
    for (const LinkCounters& link : scenario.fabric().link_counters()) {
      EXPECT_EQ(link.packets, 2U);
      EXPECT_EQ(link.data_packets, 0U);
      EXPECT_EQ(link.bytes, 2 * (frame_of_packet(packet) + gap));
      EXPECT_EQ(link.busy, 2 * frame_time(packet));
    }
    const FrameCounters& frames = scenario.fabric().frame_counters();
    EXPECT_EQ(frames.sent, 4U);
    EXPECT_EQ(frames.delivered, 4U);
    EXPECT_EQ(frames.delivered_bytes, 4 * frame_of_packet(packet));
  }
}

TEST_P(InternetEngines, bulk_transfer_between_pods_beside_rdma_traffic) {
  constexpr std::uint64_t bytes = 400'000;
  Scenario scenario("{kind: fat_tree, k: 4, link_rate: 100 Gb/s, link_delay: 500 ns}", "{}",
                    "{kind: traffic, pattern: permutation, size: 300 kB}", GetParam());
  Ns3View view(scenario.fabric(), scenario.topology());
  Internet internet(view, 1);
  internet.install(NodeId(0));
  internet.install(NodeId(13));
  const ns3::InetSocketAddress server(Internet::address(NodeId(0)), 80);
  const auto sinks = internet.add(ns3::PacketSinkHelper("ns3::TcpSocketFactory", server), NodeId(0));
  ns3::BulkSendHelper client("ns3::TcpSocketFactory", server);
  client.SetAttribute("MaxBytes", ns3::UintegerValue(bytes));
  internet.add(client, NodeId(13));
  scenario.run();
  EXPECT_EQ(ns3::DynamicCast<ns3::PacketSink>(sinks.Get(0))->GetTotalRx(), bytes);
  EXPECT_EQ(scenario.messages().size(), 16U);
}

TEST(internet, precedence_names_the_class) {
  for (const bool urgent : {false, true}) {
    Scenario scenario(line, "{priorities: {data: 3, other: 1}}", test::silence);
    Ns3View view(scenario.fabric(), scenario.topology());
    Internet internet(view, 1);
    internet.install_everywhere();
    ns3::UdpEchoClientHelper helper(Internet::address(NodeId(1)), 9);
    helper.SetAttribute("MaxPackets", ns3::UintegerValue(1));
    ns3::InetSocketAddress to(Internet::address(NodeId(1)), 9);
    to.SetTos(urgent ? 3U << 5 : 5U << 5);
    helper.SetAttribute("RemoteAddress", ns3::AddressValue(to));
    internet.add(helper, NodeId(0)).Start(ns3::MicroSeconds(1));
    scenario.run();
    for (const LinkClassCounters& row : scenario.fabric().results().class_counters(scenario.facts.simulated)) {
      // The server answers that no application listens (ICMP, precedence 0).
      const bool forth = row.directed_link % 2 == 0;
      const std::uint32_t expected = forth && urgent ? 3 : 1;
      EXPECT_EQ(row.packets, row.priority == expected ? 1U : 0U) << row.directed_link << " " << row.priority;
    }
  }
}

TEST(internet, what_has_no_host_is_refused) {
  Scenario scenario(line, "{}", test::silence);
  Ns3View view(scenario.fabric(), scenario.topology());
  const Internet internet(view, 1);
  const auto device = view.device(NodeId(0), 0);
  PacketLog drops;
  drops.watch(device, "MacTxDrop");
  ns3::Simulator::Schedule(ns3::NanoSeconds(1), [device] {
    const auto packet = ns3::Create<ns3::Packet>(100);
    EXPECT_FALSE(device->Send(packet, device->GetBroadcast(), 0x88b5));
    EXPECT_FALSE(device->Send(packet, host_mac_address(NodeId(0)), 0x88b5));  // itself
    EXPECT_FALSE(device->Send(packet, host_mac_address(NodeId(2)), 0x88b5));  // there are two
    EXPECT_TRUE(device->Send(packet, host_mac_address(NodeId(1)), 0x88b5));
    // A full transmit queue: 1,000 times 64 KiB.
    const Bytes room = Bytes(1000 * 65'536) - frame_of_packet(Bytes(100));
    const auto large = ns3::Create<ns3::Packet>(device->GetMtu());
    std::int64_t sent = 0;
    while (device->Send(large, host_mac_address(NodeId(1)), 0x88b5)) ++sent;
    EXPECT_EQ(sent, room / frame_of_packet(Bytes(device->GetMtu())));
  });
  scenario.run();
  EXPECT_EQ(drops.seen.size(), 4U);
  const FrameCounters& frames = scenario.fabric().frame_counters();
  EXPECT_GT(frames.delivered, 15'000U);
  EXPECT_EQ(frames.sent, frames.delivered);
}

TEST(internet, acknowledgements_are_due) {
  Scenario scenario(line, "{ack: none}", test::silence);
  Ns3View view(scenario.fabric(), scenario.topology());
  EXPECT_THROW(Internet(view, 1), InputError);
}

}  // namespace
}  // namespace weft::internet_test
