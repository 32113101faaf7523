// SPDX-License-Identifier: GPL-2.0-only
// Trace sources: every packet, at its exact time, with bytes that ns-3 decodes, and without any effect on the run.
#include <algorithm>
#include <map>

#include <ns3/config.h>
#include <ns3/ethernet-header.h>
#include <ns3/ipv4-header.h>
#include <ns3/names.h>
#include <ns3/node-list.h>
#include <ns3/trace-helper.h>
#include <ns3/udp-header.h>

#include "tests/fabric/ns3/ns3_scenario.hpp"

namespace weft::ns3_traces_test {
namespace {

using test::Scenario;

/// One call of a sink.
struct Seen {
  Time at;
  std::string node;
  std::string port;
  std::string source;
  std::uint32_t bytes = 0;
  friend auto operator<=>(const Seen&, const Seen&) = default;
};
void PrintTo(const Seen& seen, std::ostream* out) {
  *out << seen.at.ps() << " ps " << seen.node << ':' << seen.port << ' ' << seen.source << ' ' << seen.bytes << " B";
}
using Trace = std::vector<Seen>;

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at != std::string::npos;) {
    const auto next = path.find('/', at + 1);
    parts.push_back(path.substr(at + 1, next == std::string::npos ? next : next - at - 1));
    at = next;
  }
  return parts;
}

/// Context: "/NodeList/2/DeviceList/0/$weft::FabricPortDevice/PhyTxBegin".
void note(Trace* trace, std::string context, ns3::Ptr<const ns3::Packet> packet) {
  const auto parts = split(context);
  const auto node = static_cast<std::uint32_t>(std::stoul(parts[1]));
  EXPECT_EQ(ns3::Simulator::GetContext(), node) << context;
  trace->push_back(
      {test::now(), ns3::Names::FindName(ns3::NodeList::GetNode(node)), parts[3], parts.back(), packet->GetSize()});
}

void connect_all(Trace& trace) {
  for (const char* source : {"PhyTxBegin", "PhyTxEnd", "PhyRxEnd"})
    ns3::Config::Connect(std::string("/NodeList/*/DeviceList/*/$weft::FabricPortDevice/") + source,
                         ns3::MakeBoundCallback(&note, &trace));
}

/// Bytes of a RoCEv2 frame without preamble and frame check sequence: Ethernet 14, IPv4 20, UDP 8, BTH 12, AETH 4 of an
/// ACK, payload padded to words, ICRC 4.
std::uint32_t data_frame(std::int64_t payload) {
  return static_cast<std::uint32_t>(14 + 20 + 8 + 12 + (payload + 3) / 4 * 4 + 4);
}
constexpr std::uint32_t ack_frame = 14 + 20 + 8 + 12 + 4 + 4;

class TracedEngines : public ::testing::TestWithParam<EngineChoice> {};
INSTANTIATE_TEST_SUITE_P(ns3_traces, TracedEngines, ::testing::Values(EngineChoice::weft, EngineChoice::ns3_default));

TEST_P(TracedEngines, one_packet_and_its_ack_through_a_switch) {
  constexpr std::int64_t payload = 1001;
  Scenario scenario("{kind: line, links: 2, link_rate: [100 Gb/s, 40 Gb/s], link_delay: [500 ns, 2 us]}",
                    "{switch_latency: 300 ns}", test::one_message(Bytes(payload)), GetParam());
  const Ns3View view(scenario.fabric(), scenario.topology());
  Trace trace;
  connect_all(trace);
  scenario.run();

  const Bytes data = Bytes(payload) + scenario.network().data_overhead();
  const Bytes ack = scenario.network().control_wire();
  const Bandwidth fast = Bandwidth::from_gbps(100);
  const Bandwidth slow = Bandwidth::from_gbps(40);
  const Time latency = scenario.network().switch_latency;
  Trace expected;
  const auto hop = [&](Time begin, Time serialization, Time delay, const std::string& from,
                       const std::string& from_port, const std::string& to, const std::string& to_port,
                       std::uint32_t bytes) {
    expected.push_back({begin, from, from_port, "PhyTxBegin", bytes});
    expected.push_back({begin + serialization, from, from_port, "PhyTxEnd", bytes});
    expected.push_back({begin + serialization + delay, to, to_port, "PhyRxEnd", bytes});
    return begin + serialization + delay;
  };
  Time at = hop(Time(), serialization_time(data, fast), Time::from_ns(500), "host0", "0", "switch0", "0",
                data_frame(payload));
  at = hop(at + latency, serialization_time(data, slow), Time::from_us(2), "switch0", "1", "host1", "0",
           data_frame(payload));
  at = hop(at, serialization_time(ack, slow), Time::from_us(2), "host1", "0", "switch0", "1", ack_frame);
  hop(at + latency, serialization_time(ack, fast), Time::from_ns(500), "switch0", "0", "host0", "0", ack_frame);
  EXPECT_EQ(trace, expected);
}

TEST_P(TracedEngines, packets_back_to_back_are_seen_in_the_order_of_time) {
  constexpr std::int64_t packets = 20;
  Scenario scenario("{kind: line, links: 1, link_rate: 100 Gb/s, link_delay: 500 ns}", "{}",
                    test::one_message(Bytes(packets * 4096)), GetParam());
  const Ns3View view(scenario.fabric(), scenario.topology());
  Trace trace;
  for (const char* source : {"PhyTxBegin", "PhyTxEnd"})
    ns3::Config::Connect(
        std::string("/Names/host0/DeviceList/0/$weft::FabricPortDevice/") + source,
        ns3::MakeBoundCallback(
            +[](Trace* into, std::string path, ns3::Ptr<const ns3::Packet> packet) {
              into->push_back({test::now(), "", "", path.substr(path.rfind('/') + 1), packet->GetSize()});
            },
            &trace));
  scenario.run();
  const Time each =
      serialization_time(scenario.network().mtu + scenario.network().data_overhead(), Bandwidth::from_gbps(100));
  Trace expected;
  for (std::int64_t i = 0; i < packets; ++i) {
    expected.push_back({each * i, "", "", "PhyTxBegin", data_frame(4096)});
    expected.push_back({each * (i + 1), "", "", "PhyTxEnd", data_frame(4096)});
  }
  // At equal times one packet ends before the next begins; ns-3's engine runs them in the order of scheduling instead.
  if (GetParam() == EngineChoice::ns3_default) {
    std::sort(trace.begin(), trace.end());
    std::sort(expected.begin(), expected.end());
  }
  EXPECT_EQ(trace, expected);
}

TEST(ns3_traces, bytes_are_what_ns3_decodes) {
  Scenario scenario("{kind: star, hosts: 4, link_rate: 100 Gb/s, link_delay: 500 ns}", "{mtu: 1 KiB}",
                    test::one_message(Bytes(3000)));
  const Ns3View view(scenario.fabric(), scenario.topology());
  std::vector<ns3::Ptr<const ns3::Packet>> packets;
  ASSERT_TRUE(view.device(NodeId(1), 0)
                  ->TraceConnectWithoutContext("PhyRxEnd",
                                               ns3::MakeBoundCallback(
                                                   +[](std::vector<ns3::Ptr<const ns3::Packet>>* into,
                                                       ns3::Ptr<const ns3::Packet> packet) { into->push_back(packet); },
                                                   &packets)));
  scenario.run();
  ASSERT_EQ(packets.size(), 3U);                      // 1024 + 1024 + 952
  const std::uint8_t opcodes[] = {0x00, 0x01, 0x02};  // SEND first, middle, last
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::int64_t payload = i < 2 ? 1024 : 3000 - 2 * 1024;
    const ns3::Ptr<ns3::Packet> packet = packets[i]->Copy();
    EXPECT_EQ(packet->GetSize(), data_frame(payload));
    ns3::EthernetHeader ethernet(false);
    ns3::Ipv4Header ip;
    ns3::UdpHeader udp;
    ip.EnableChecksum();
    packet->RemoveHeader(ethernet);
    packet->RemoveHeader(ip);
    packet->RemoveHeader(udp);
    EXPECT_EQ(ethernet.GetLengthType(), 0x0800);
    EXPECT_EQ(ethernet.GetSource(), ns3::Mac48Address::ConvertFrom(view.device(NodeId(0), 0)->GetAddress()));
    EXPECT_EQ(ethernet.GetDestination(), ns3::Mac48Address::ConvertFrom(view.device(NodeId(1), 0)->GetAddress()));
    EXPECT_TRUE(ip.IsChecksumOk());
    EXPECT_EQ(ip.GetSource(), ns3::Ipv4Address("10.0.0.0"));
    EXPECT_EQ(ip.GetDestination(), ns3::Ipv4Address("10.0.0.1"));
    EXPECT_EQ(ip.GetProtocol(), 17);
    EXPECT_EQ(ip.GetPayloadSize(), data_frame(payload) - 14 - 20);
    EXPECT_EQ(udp.GetDestinationPort(), 4791);
    std::uint8_t bth[12];
    packet->CopyData(bth, sizeof(bth));
    EXPECT_EQ(bth[0], opcodes[i]);
    EXPECT_EQ(bth[11], i);  // packet sequence number
  }
}

const std::string fat_tree = "{kind: fat_tree, k: 4, link_rate: 400 Gb/s, link_delay: 500 ns}";
const std::string incast = "{kind: traffic, pattern: incast, destination: 0, sources: 15, size: 100 KiB}";

TEST_P(TracedEngines, sinks_see_every_packet_and_change_nothing) {
  Scenario plain(fat_tree, "{switch_latency: 100 ns}", incast, GetParam());
  plain.run();
  const auto expected = test::history(plain);
  const Time end = plain.facts.simulated;
  // The engine must be free for the second run.
  ns3::Simulator::Destroy();

  Scenario traced(fat_tree, "{switch_latency: 100 ns}", incast, GetParam());
  const Ns3View view(traced.fabric(), traced.topology());
  Trace trace;
  connect_all(trace);
  traced.run();
  EXPECT_EQ(test::history(traced), expected);
  EXPECT_EQ(traced.facts.simulated, end);
  EXPECT_TRUE(std::is_sorted(trace.begin(), trace.end(), [](const Seen& a, const Seen& b) { return a.at < b.at; }));

  std::map<std::string, std::uint64_t> calls;
  for (const Seen& seen : trace) ++calls[fmt::format("{}:{} {}", seen.node, seen.port, seen.source)];
  for (const LinkCounters& link : traced.fabric().link_counters()) {
    const auto& end_of_link = traced.graph().ports(link.from)[link.from_port];
    const auto from = fmt::format("{}:{}", traced.graph().plain_name(link.from), link.from_port);
    const auto to = fmt::format("{}:{}", traced.graph().plain_name(link.to), end_of_link.peer_port);
    EXPECT_EQ(calls[from + " PhyTxBegin"], link.packets) << from;
    EXPECT_EQ(calls[from + " PhyTxEnd"], link.packets) << from;
    EXPECT_EQ(calls[to + " PhyRxEnd"], link.packets) << to;
  }
}

TEST(ns3_traces, both_engines_tell_the_same) {
  Trace traces[2];
  const EngineChoice engines[] = {EngineChoice::weft, EngineChoice::ns3_default};
  for (int i = 0; i < 2; ++i) {
    Scenario scenario(fat_tree, "{}", incast, engines[i]);
    const Ns3View view(scenario.fabric(), scenario.topology());
    connect_all(traces[i]);
    scenario.run();
    std::sort(traces[i].begin(), traces[i].end());
  }
  EXPECT_FALSE(traces[0].empty());
  EXPECT_EQ(traces[0], traces[1]);
}

TEST(ns3_traces, a_sink_may_go_again) {
  Scenario scenario("{kind: line, links: 1, link_rate: 100 Gb/s, link_delay: 500 ns}", "{}",
                    test::one_message(Bytes(9000)));
  const Ns3View view(scenario.fabric(), scenario.topology());
  Trace trace;
  const auto sink = ns3::MakeBoundCallback(&note, &trace);
  const std::string path = "/NodeList/0/DeviceList/0/$weft::FabricPortDevice/PhyTxBegin";
  ns3::Config::Connect(path, sink);
  ns3::Config::Disconnect(path, sink);
  scenario.run();
  EXPECT_TRUE(trace.empty());
}

TEST(ns3_traces, sinks_may_schedule_events_beyond_the_lookahead) {
  Scenario scenario("{kind: line, links: 1, link_rate: 100 Gb/s, link_delay: 500 ns}", "{}",
                    test::one_message(Bytes(9000)));
  const Ns3View view(scenario.fabric(), scenario.topology());
  struct Reaction {
    Time due;
    Time ran;
  };
  std::vector<Reaction> reactions;
  const Time lookahead = scenario.fabric().lookahead();
  const auto sink = [&reactions, lookahead](ns3::Ptr<const ns3::Packet>) {
    const Time due = test::now() + lookahead;
    ns3::Simulator::Schedule(test::to_ns3(lookahead), [&reactions, due] { reactions.push_back({due, test::now()}); });
  };
  view.device(NodeId(1), 0)
      ->TraceConnectWithoutContext("PhyRxEnd", ns3::Callback<void, ns3::Ptr<const ns3::Packet>>(sink));
  scenario.run();
  ASSERT_EQ(reactions.size(), 3U);  // 9000 B in 3 packets
  for (const Reaction& reaction : reactions) EXPECT_EQ(reaction.ran, reaction.due);
}

}  // namespace
}  // namespace weft::ns3_traces_test
