// SPDX-License-Identifier: GPL-2.0-only
// ns-3's own applications over its own devices and protocol stack: the same times under our engine as under the default
// one.
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <ns3/application-container.h>
#include <ns3/bulk-send-helper.h>
#include <ns3/error-model.h>
#include <ns3/inet-socket-address.h>
#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-address-helper.h>
#include <ns3/packet-sink-helper.h>
#include <ns3/packet-sink.h>
#include <ns3/packet.h>
#include <ns3/point-to-point-helper.h>
#include <ns3/pointer.h>
#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/udp-echo-helper.h>
#include <ns3/uinteger.h>

#include "engine/parallel_simulator_impl.hpp"
#include "tests/picoseconds.hpp"

namespace weft::ns3_applications_test {
namespace {

struct PicosecondResolution {
  PicosecondResolution() { count_in_picoseconds(); }
} const picosecond_resolution;

struct Occurrence {
  std::string what;
  std::int64_t time = 0;  // ps
  std::uint32_t bytes = 0;
  bool operator==(const Occurrence&) const = default;
};
void PrintTo(const Occurrence& occurrence, std::ostream* out) {
  *out << occurrence.what << " of " << occurrence.bytes << " B at " << occurrence.time;
}
using Trace = std::vector<Occurrence>;

void note(Trace* trace, std::string what, ns3::Ptr<const ns3::Packet> packet) {
  trace->push_back({std::move(what), ns3::Simulator::Now().GetTimeStep(), packet->GetSize()});
}
void note_received(Trace* trace, std::string what, ns3::Ptr<const ns3::Packet> packet, const ns3::Address&) {
  note(trace, std::move(what), packet);
}

/// Two nodes with an IPv4 stack and a point-to-point link; transmissions and receptions of both devices are traced.
struct TwoHosts {
  ns3::NodeContainer nodes;
  ns3::NetDeviceContainer devices;
  ns3::Ipv4InterfaceContainer interfaces;

  TwoHosts(Trace& trace, const std::string& rate, const std::string& delay) {
    nodes.Create(2);
    ns3::PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", ns3::StringValue(rate));
    link.SetChannelAttribute("Delay", ns3::StringValue(delay));
    devices = link.Install(nodes);
    ns3::InternetStackHelper().Install(nodes);
    interfaces = ns3::Ipv4AddressHelper("10.1.1.0", "255.255.255.0").Assign(devices);
    for (std::uint32_t i = 0; i < devices.GetN(); ++i) {
      for (const char* source : {"PhyTxBegin", "PhyTxEnd", "PhyRxEnd"}) {
        EXPECT_TRUE(devices.Get(i)->TraceConnectWithoutContext(
            source, ns3::MakeBoundCallback(&note, &trace, fmt::format("{} {}", source, i))));
      }
    }
  }
};

void udp_echo(Trace& trace) {
  const TwoHosts hosts(trace, "5Mbps", "2ms");
  ns3::UdpEchoServerHelper server(9);
  server.Install(hosts.nodes.Get(1)).Start(ns3::Seconds(1));
  ns3::UdpEchoClientHelper client(hosts.interfaces.GetAddress(1), 9);
  client.SetAttribute("MaxPackets", ns3::UintegerValue(5));
  client.SetAttribute("Interval", ns3::TimeValue(ns3::MilliSeconds(300)));
  client.SetAttribute("PacketSize", ns3::UintegerValue(1024));
  ns3::ApplicationContainer clients = client.Install(hosts.nodes.Get(0));
  clients.Start(ns3::Seconds(2));
  clients.Stop(ns3::Seconds(10));
  for (const char* source : {"Tx", "Rx"}) {
    EXPECT_TRUE(clients.Get(0)->TraceConnectWithoutContext(
        source, ns3::MakeBoundCallback(&note, &trace, std::string("application ") + source)));
  }
  ns3::Simulator::Stop(ns3::Seconds(20));
  ns3::Simulator::Run();
}

void tcp_bulk(Trace& trace) {
  const TwoHosts hosts(trace, "10Mbps", "1ms");
  const ns3::InetSocketAddress address(hosts.interfaces.GetAddress(1), 5000);
  ns3::PacketSinkHelper sink("ns3::TcpSocketFactory", address);
  const ns3::ApplicationContainer sinks = sink.Install(hosts.nodes.Get(1));
  EXPECT_TRUE(sinks.Get(0)->TraceConnectWithoutContext(
      "Rx", ns3::MakeBoundCallback(&note_received, &trace, std::string("sink"))));
  // A few packets are lost, so that timers are set, cancelled and run out.
  const auto losses = ns3::CreateObject<ns3::ReceiveListErrorModel>();
  losses->SetList({3, 40, 41, 42, 90, 150});
  hosts.devices.Get(1)->SetAttribute("ReceiveErrorModel", ns3::PointerValue(losses));
  ns3::BulkSendHelper bulk("ns3::TcpSocketFactory", address);
  bulk.SetAttribute("MaxBytes", ns3::UintegerValue(200'000));
  bulk.Install(hosts.nodes.Get(0)).Start(ns3::MilliSeconds(10));
  ns3::Simulator::Run();
  EXPECT_EQ(ns3::DynamicCast<ns3::PacketSink>(sinks.Get(0))->GetTotalRx(), 200'000U);
}

struct Outcome {
  Trace trace;
  std::uint64_t events = 0;
  std::int64_t end = 0;
};

Outcome run(const std::function<void(Trace&)>& model) {
  Outcome outcome;
  model(outcome.trace);
  outcome.events = ns3::Simulator::GetEventCount();
  outcome.end = ns3::Simulator::Now().GetTimeStep();
  ns3::Simulator::Destroy();
  return outcome;
}

Outcome compare(const std::function<void(Trace&)>& model) {
  use_default_simulator();
  const Outcome reference = run(model);
  use_parallel_simulator();
  const Outcome ours = run(model);
  EXPECT_EQ(ours.trace, reference.trace);
  EXPECT_EQ(ours.events, reference.events);
  EXPECT_EQ(ours.end, reference.end);
  return ours;
}

TEST(Ns3Applications, UdpEchoHasTheTimesOfTheDefaultEngine) {
  const Outcome outcome = compare(udp_echo);
  // Each of 5 requests and 5 answers: begin, end and reception on the link; a transmission or reception at the client.
  EXPECT_EQ(outcome.trace.size(), 5U * (2 * 3 + 2));
  // (1024 B + UDP 8 B + IPv4 20 B + PPP 2 B) at 5 Mb/s, and 2 ms, each way.
  const std::int64_t one_way = (1024 + 8 + 20 + 2) * 8 * (1'000'000'000'000 / 5'000'000) + 2'000'000'000;
  std::int64_t sent = 0;
  for (const Occurrence& occurrence : outcome.trace) {
    if (occurrence.what == "application Tx") sent = occurrence.time;
    if (occurrence.what == "application Rx") {
      EXPECT_EQ(occurrence.time - sent, 2 * one_way);
    }
  }
  EXPECT_EQ(outcome.end, ns3::Seconds(20).GetTimeStep());
}

TEST(Ns3Applications, TcpTransferHasTheTimesOfTheDefaultEngine) {
  const Outcome outcome = compare(tcp_bulk);
  std::uint64_t delivered = 0;
  for (const Occurrence& occurrence : outcome.trace) {
    if (occurrence.what == "sink") delivered += occurrence.bytes;
  }
  EXPECT_EQ(delivered, 200'000U);
}

}  // namespace
}  // namespace weft::ns3_applications_test
