// SPDX-License-Identifier: GPL-2.0-only
// ns-3's protocol stack and applications over the fabric's links, alone and beside RoCE packets, with times by formula.
#include <ns3/application-container.h>
#include <ns3/bulk-send-helper.h>
#include <ns3/config.h>
#include <ns3/inet-socket-address.h>
#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-address-helper.h>
#include <ns3/ipv4-static-routing-helper.h>
#include <ns3/ipv4.h>
#include <ns3/packet-sink-helper.h>
#include <ns3/packet-sink.h>
#include <ns3/string.h>
#include <ns3/udp-echo-helper.h>
#include <ns3/uinteger.h>

#include "tests/fabric/ns3/ns3_scenario.hpp"
#include "tests/fabric/ns3/packet_log.hpp"

namespace weft::ns3_stack_test {
namespace {

using test::PacketLog;
using test::Scenario;
using test::Seen;
using test::to_ns3;

constexpr Bandwidth rate = Bandwidth::from_gbps(100);
constexpr Time delay = Time::from_ns(500);
const std::string line1 = "{kind: line, links: 1, link_rate: 100 Gb/s, link_delay: 500 ns}";
const std::string line2 = "{kind: line, links: 2, link_rate: 100 Gb/s, link_delay: 500 ns}";

constexpr std::int64_t udp_ip = 8 + 20;
/// Time on the wire of an IP packet: Ethernet header 14, frame check sequence 4, at least 64 together, and preamble and
/// gap 20.
constexpr Time frame_time(std::int64_t packet_bytes) {
  return serialization_time(Bytes(std::max<std::int64_t>(14 + packet_bytes + 4, 64) + 20), rate);
}

/// A UDP echo client at host 0 with its server at host 1.
struct Echo {
  PacketLog sent;
  PacketLog answered;

  Echo(const Ns3View& view, ns3::Ipv4Address server_address, std::uint32_t bytes, std::uint32_t count, Time start,
       Time interval) {
    ns3::UdpEchoServerHelper(9).Install(view.hosts().Get(1)).Start(ns3::Seconds(0));
    ns3::UdpEchoClientHelper client(server_address, 9);
    client.SetAttribute("MaxPackets", ns3::UintegerValue(count));
    client.SetAttribute("Interval", ns3::TimeValue(to_ns3(interval)));
    client.SetAttribute("PacketSize", ns3::UintegerValue(bytes));
    auto clients = client.Install(view.hosts().Get(0));
    clients.Start(to_ns3(start));
    sent.watch(clients.Get(0), "Tx");
    answered.watch(clients.Get(0), "Rx");
  }
};

class Engines : public ::testing::TestWithParam<EngineChoice> {};
INSTANTIATE_TEST_SUITE_P(ns3_stack, Engines, ::testing::Values(EngineChoice::weft, EngineChoice::ns3_default));

TEST_P(Engines, udp_echo_between_two_hosts) {
  for (const std::uint32_t bytes : {1U, 1024U}) {
    Scenario scenario(line1, "{}", test::silence, GetParam());
    const Ns3View view(scenario.fabric(), scenario.topology());
    ns3::InternetStackHelper().Install(view.hosts());
    const auto devices = view.ends(LinkId(0));
    const auto interfaces = ns3::Ipv4AddressHelper("10.1.0.0", "255.255.255.0").Assign(devices);
    const Time start = Time::from_us(2);
    const Time interval = Time::from_us(10);
    const Echo echo(view, interfaces.GetAddress(1), bytes, 3, start, interval);
    scenario.run();
    const Time round_trip = 2 * (frame_time(bytes + udp_ip) + delay);
    Seen sent;
    Seen answered;
    for (std::int64_t i = 0; i < 3; ++i) {
      sent.emplace_back(start + interval * i, bytes);
      answered.emplace_back(start + interval * i + round_trip, bytes);
    }
    EXPECT_EQ(echo.sent.seen, sent);
    EXPECT_EQ(echo.answered.seen, answered);
    // Counted apart from the fabric's own packets.
    const LinkCounters link = scenario.counters(NodeId(0), 0);
    EXPECT_EQ(link.packets, 0U);
    EXPECT_EQ(link.bytes.count(), 0);
    EXPECT_EQ(link.other_packets, 3U);
    EXPECT_EQ(link.other_bytes.count(), 3 * (std::max<std::int64_t>(14 + bytes + udp_ip + 4, 64) + 20));
    EXPECT_EQ(link.busy.ps(), (3 * frame_time(bytes + udp_ip)).ps());
  }
}

TEST_P(Engines, udp_echo_through_a_switch_that_is_an_ip_router) {
  const Time latency = Time::from_ns(300);
  Scenario scenario(line2, "{switch_latency: 300 ns}", test::silence, GetParam());
  const Ns3View view(scenario.fabric(), scenario.topology());
  ns3::InternetStackHelper stack;
  stack.SetIpv6StackInstall(false);
  stack.Install(view.hosts());
  stack.Install(view.switches());
  const auto first = view.ends(LinkId(0));
  const auto second = view.ends(LinkId(1));
  ns3::Ipv4AddressHelper("10.1.0.0", "255.255.255.0").Assign(first);
  const auto far = ns3::Ipv4AddressHelper("10.2.0.0", "255.255.255.0").Assign(second);
  const ns3::Ipv4StaticRoutingHelper routing;
  for (std::uint32_t host = 0; host < 2; ++host) {
    const auto ip = view.hosts().Get(host)->GetObject<ns3::Ipv4>();
    routing.GetStaticRouting(ip)->SetDefaultRoute(host == 0 ? "10.1.0.2" : "10.2.0.1", 1);
  }
  constexpr std::uint32_t bytes = 1000;
  const Echo echo(view, far.GetAddress(1), bytes, 1, Time::from_us(1), Time::from_us(1));
  scenario.run();
  const Time one_way = 2 * (frame_time(bytes + udp_ip) + delay) + latency;
  EXPECT_EQ(echo.answered.seen, (Seen{{Time::from_us(1) + 2 * one_way, bytes}}));
}

TEST_P(Engines, tcp_delivers_everything) {
  constexpr std::uint32_t bytes = 300'000;
  Scenario scenario(line1, "{}", test::one_message(Bytes(500'000)), GetParam());
  const Ns3View view(scenario.fabric(), scenario.topology());
  ns3::InternetStackHelper().Install(view.hosts());
  const auto devices = view.ends(LinkId(0));
  const auto interfaces = ns3::Ipv4AddressHelper("10.1.0.0", "255.255.255.0").Assign(devices);
  const ns3::InetSocketAddress server(interfaces.GetAddress(1), 80);
  const auto sinks = ns3::PacketSinkHelper("ns3::TcpSocketFactory", server).Install(view.hosts().Get(1));
  ns3::BulkSendHelper client("ns3::TcpSocketFactory", server);
  client.SetAttribute("MaxBytes", ns3::UintegerValue(bytes));
  client.Install(view.hosts().Get(0));
  scenario.run();
  EXPECT_EQ(ns3::DynamicCast<ns3::PacketSink>(sinks.Get(0))->GetTotalRx(), bytes);
  EXPECT_EQ(scenario.messages().size(), 1U);
  EXPECT_GT(scenario.counters(NodeId(0), 0).other_packets, bytes / 1500);
}

/// Sends one packet by hand.
void send_at(Time at, const ns3::Ptr<FabricPortDevice>& device, std::uint32_t bytes) {
  ns3::Simulator::Schedule(to_ns3(at), [device, bytes] {
    EXPECT_TRUE(device->Send(ns3::Create<ns3::Packet>(bytes), device->GetBroadcast(), 0x88b5));
  });
}

TEST_P(Engines, a_frame_and_roce_packets_of_a_host_wait_for_each_other) {
  constexpr std::int64_t packets = 10;
  constexpr std::uint32_t bytes = 1500;
  for (const bool queued : {false, true}) {
    Scenario scenario(line1, "{}", test::one_message(Bytes(packets * 4096)), GetParam());
    const Ns3View view(scenario.fabric(), scenario.topology());
    const Time each = serialization_time(scenario.network().mtu + scenario.network().data_overhead(), rate);
    const Time frame = frame_time(bytes);
    // In the middle of the third packet; a second frame queues up behind the first.
    const Time at = 2 * each + Time::from_ps(each.ps() / 2);
    const auto device = view.device(NodeId(0), 0);
    PacketLog begins;
    PacketLog arrivals;
    begins.watch(device, "PhyTxBegin");
    arrivals.watch(view.device(NodeId(1), 0), "MacRx");
    send_at(at, device, bytes);
    if (queued) send_at(at, device, bytes);
    scenario.run();

    const std::int64_t frames = queued ? 2 : 1;
    Seen begin;
    for (std::int64_t i = 0; i < packets; ++i) {
      const Time pause = i < 3 ? Time() : frames * frame;
      begin.emplace_back(each * i + pause, 14 + 20 + 8 + 12 + 4096 + 4);
    }
    Seen arrival;
    for (std::int64_t i = 0; i < frames; ++i) {
      begin.insert(begin.begin() + 3 + i, {3 * each + i * frame, 14 + bytes});
      arrival.emplace_back(3 * each + (i + 1) * frame + delay, bytes);
    }
    EXPECT_EQ(begins.seen, begin);
    EXPECT_EQ(arrivals.seen, arrival);
    ASSERT_EQ(scenario.messages().size(), 1U);
    EXPECT_EQ(scenario.messages()[0].delivered, (packets * each + frames * frame + delay).ps());
  }
}

TEST_P(Engines, a_frame_queues_at_a_switch_first_in_first_out) {
  // Two packets of host 0 reach the switch's slower output at once after another; the frame comes between them.
  Scenario scenario("{kind: line, links: 2, link_rate: [200 Gb/s, 100 Gb/s], link_delay: [500 ns, 500 ns]}", "{}",
                    test::one_message(Bytes(3 * 4096)), GetParam());
  const Ns3View view(scenario.fabric(), scenario.topology());
  const Bytes wire = scenario.network().mtu + scenario.network().data_overhead();
  const Time in = serialization_time(wire, Bandwidth::from_gbps(200));
  const Time out = serialization_time(wire, rate);
  constexpr std::uint32_t bytes = 700;
  const auto device = view.device(NodeId(2), 1);
  PacketLog begins;
  PacketLog arrivals;
  begins.watch(device, "PhyTxBegin");
  arrivals.watch(view.device(NodeId(1), 0), "MacRx");
  // Packet k is in the output queue at k * in + delay, k = 1, 2, 3; the frame comes after the second.
  const Time at = 2 * in + delay + Time::from_ps(1);
  send_at(at, device, bytes);
  scenario.run();
  const Time first = in + delay;
  const std::uint32_t data = 14 + 20 + 8 + 12 + 4096 + 4;
  EXPECT_EQ(begins.seen, (Seen{{first, data},
                               {first + out, data},
                               {first + 2 * out, 14 + bytes},
                               {first + 2 * out + frame_time(bytes), data}}));
  EXPECT_EQ(arrivals.seen, (Seen{{first + 2 * out + frame_time(bytes) + delay, bytes}}));
  EXPECT_EQ(scenario.messages()[0].delivered, (first + 3 * out + frame_time(bytes) + delay).ps());
}

TEST(ns3_stack, at_the_same_time_the_frame_goes_before_the_packet) {
  // The frame comes at the very time at which the first packet is in the switch's output queue.
  Scenario scenario(line2, "{}", test::one_message(Bytes(4096)));
  const Ns3View view(scenario.fabric(), scenario.topology());
  const Time each = serialization_time(scenario.network().mtu + scenario.network().data_overhead(), rate);
  send_at(each + delay, view.device(NodeId(2), 1), 100);
  scenario.run();
  EXPECT_EQ(scenario.messages()[0].delivered, (2 * (each + delay) + frame_time(100)).ps());
}

TEST(ns3_stack, frames_count_in_samples_and_queues) {
  Scenario scenario(line1, "{}", test::silence);
  const Time interval = Time::from_us(1);
  scenario.fabric().probes().sample_ports(interval);
  const Ns3View view(scenario.fabric(), scenario.topology());
  constexpr std::uint32_t bytes = 4000;
  constexpr int frames = 4;
  for (int i = 0; i < frames; ++i) send_at(Time::from_ns(100), view.device(NodeId(0), 0), bytes);
  scenario.run();
  const Time each = frame_time(bytes);
  const auto samples = scenario.fabric().results().take_samples(Time::from_us(3));
  std::int64_t busy = 0;
  for (const PortSample& sample : samples) busy += sample.busy.ps();
  EXPECT_EQ(busy, (frames * each).ps());
  ASSERT_FALSE(samples.empty());
  EXPECT_EQ(samples[0].busy.ps(), (interval - Time::from_ns(100)).ps());
  const LinkCounters link = scenario.counters(NodeId(0), 0);
  // The second waits for one, the third for two, ...
  const std::int64_t wire = 14 + bytes + 4 + 20;
  EXPECT_EQ(link.queue_byte_ps, static_cast<double>(wire * each.ps() * (1 + 2 + 3)));
  EXPECT_EQ(link.peak_queue_bytes.count(), frames * wire);
}

TEST(ns3_stack, packets_longer_than_the_mtu_are_refused) {
  Scenario scenario(line1, "{}", test::silence);
  const Ns3View view(scenario.fabric(), scenario.topology());
  const auto device = view.device(NodeId(0), 0);
  ns3::Config::Set("/Names/host0/DeviceList/0/Mtu", ns3::UintegerValue(1500));
  PacketLog drops;
  PacketLog arrivals;
  drops.watch(device, "MacTxDrop");
  arrivals.watch(view.device(NodeId(1), 0), "MacRx");
  ns3::Simulator::Schedule(ns3::NanoSeconds(1), [device] {
    EXPECT_FALSE(device->Send(ns3::Create<ns3::Packet>(1501), device->GetBroadcast(), 0x88b5));
    EXPECT_TRUE(device->Send(ns3::Create<ns3::Packet>(1500), device->GetBroadcast(), 0x88b5));
  });
  scenario.run();
  EXPECT_EQ(drops.seen, (Seen{{Time::from_ns(1), 1501}}));
  EXPECT_EQ(arrivals.seen, (Seen{{Time::from_ns(1) + frame_time(1500) + delay, 1500}}));
}

TEST(ns3_stack, the_receive_callbacks_are_told_protocol_addresses_and_type) {
  Scenario scenario(line1, "{}", test::silence);
  const Ns3View view(scenario.fabric(), scenario.topology());
  const auto sender = view.device(NodeId(0), 0);
  const auto receiver = view.device(NodeId(1), 0);
  std::vector<ns3::NetDevice::PacketType> types;
  int received = 0;
  receiver->SetPromiscReceiveCallback(ns3::NetDevice::PromiscReceiveCallback(
      [&](ns3::Ptr<ns3::NetDevice> device, ns3::Ptr<const ns3::Packet> packet, std::uint16_t protocol,
          const ns3::Address& from, const ns3::Address&, ns3::NetDevice::PacketType type) {
        EXPECT_EQ(device, receiver);
        EXPECT_EQ(packet->GetSize(), 64U);
        EXPECT_EQ(protocol, 0x88b5);
        EXPECT_EQ(from, sender->GetAddress());
        types.push_back(type);
        return true;
      }));
  receiver->SetReceiveCallback(ns3::NetDevice::ReceiveCallback(
      [&](ns3::Ptr<ns3::NetDevice>, ns3::Ptr<const ns3::Packet>, std::uint16_t, const ns3::Address&) {
        ++received;
        return true;
      }));
  ns3::Simulator::Schedule(ns3::NanoSeconds(1), [&] {
    for (const ns3::Address& to : {receiver->GetAddress(), sender->GetBroadcast(),
                                   sender->GetMulticast(ns3::Ipv4Address("224.0.0.5")), sender->GetAddress()})
      EXPECT_TRUE(sender->Send(ns3::Create<ns3::Packet>(64), to, 0x88b5));
  });
  scenario.run();
  using Device = ns3::NetDevice;
  EXPECT_EQ(types, (std::vector<Device::PacketType>{Device::PACKET_HOST, Device::PACKET_BROADCAST,
                                                    Device::PACKET_MULTICAST, Device::PACKET_OTHERHOST}));
  EXPECT_EQ(received, 4);  // for any destination: there is no other node on the link
}

TEST(ns3_stack, a_trace_sink_cannot_send_at_once) {
  Scenario scenario(line1, "{}", test::one_message(Bytes(100)));
  const Ns3View view(scenario.fabric(), scenario.topology());
  const auto device = view.device(NodeId(1), 0);
  device->TraceConnectWithoutContext(
      "PhyRxEnd", ns3::Callback<void, ns3::Ptr<const ns3::Packet>>([device](ns3::Ptr<const ns3::Packet>) {
        device->Send(ns3::Create<ns3::Packet>(64), device->GetBroadcast(), 0x88b5);
      }));
  try {
    scenario.run();
    ADD_FAILURE() << "sent from within the data path";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("host1:0: ", 0), 0U) << error.what();
  }
}

}  // namespace
}  // namespace weft::ns3_stack_test
