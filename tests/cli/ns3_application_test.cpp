// SPDX-License-Identifier: GPL-2.0-only
// A program of its own, as docs/concepts/ns3.md shows it: ns-3 applications over the fabric's links, beside RoCE
// traffic.
#include <cstdlib>
#include <iostream>
#include <vector>

#include <ns3/application-container.h>
#include <ns3/config.h>
#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-address-helper.h>
#include <ns3/ipv4-global-routing-helper.h>
#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/udp-echo-helper.h>
#include <ns3/uinteger.h>

#include "app/running/experiment.hpp"
#include "app/running/simulation.hpp"
#include "engine/mpi_session.hpp"
#include "engine/process_group.hpp"
#include "fabric/ns3/ns3_view.hpp"
#include "units/text.hpp"

namespace {

const char* const text = R"(
topology: {kind: star, hosts: 3, link_rate: 100 Gb/s, link_delay: 500 ns}
workload: {kind: traffic, pattern: pairs, pairs: [[0, 1], [2, 1]], size: 1 MB, start: 50 us}
)";

std::vector<weft::Time> sent;
std::vector<weft::Time> answered;
std::uint64_t frames = 0;

weft::Time now() { return weft::Time::from_ps(ns3::Simulator::Now().GetTimeStep()); }
void note_sent(ns3::Ptr<const ns3::Packet>) { sent.push_back(now()); }
void note_answered(ns3::Ptr<const ns3::Packet>) { answered.push_back(now()); }
void note_frame(ns3::Ptr<const ns3::Packet>) { ++frames; }

// A request of host 0 to host 1 every 60 us, over the switch, which is their IP router.
void install_echo(const weft::Ns3View& view, std::uint32_t links) {
  ns3::InternetStackHelper stack;
  stack.Install(view.hosts());
  stack.Install(view.switches());
  ns3::Ipv4AddressHelper addresses("10.1.0.0", "255.255.255.0");
  ns3::Ipv4Address server;
  for (std::uint32_t link = 0; link < links; ++link, addresses.NewNetwork()) {
    const auto interfaces = addresses.Assign(view.ends(weft::LinkId(link)));  // the host's end comes first
    if (link == 1) server = interfaces.GetAddress(0);
  }
  ns3::Ipv4GlobalRoutingHelper::PopulateRoutingTables();

  ns3::UdpEchoServerHelper(9).Install(view.hosts().Get(1)).Start(ns3::Seconds(0));
  ns3::UdpEchoClientHelper client(server, 9);
  client.SetAttribute("MaxPackets", ns3::UintegerValue(2));
  client.SetAttribute("Interval", ns3::TimeValue(ns3::MicroSeconds(60)));
  client.SetAttribute("PacketSize", ns3::UintegerValue(1000));
  const auto clients = client.Install(view.hosts().Get(0));
  clients.Get(0)->TraceConnectWithoutContext("Tx", ns3::MakeCallback(&note_sent));
  clients.Get(0)->TraceConnectWithoutContext("Rx", ns3::MakeCallback(&note_answered));
}

}  // namespace

int main() {
  const weft::MpiSession session;
  ns3::Time::SetResolution(ns3::Time::PS);
  const weft::Experiment experiment =
      weft::read_experiment(weft::Spec::parse(text, "echo.yaml"), "echo.yaml", "workloads");
  weft::Simulation simulation(experiment, weft::ProcessGroup::alone(), weft::EngineChoice::weft);
  const weft::Ns3View view(simulation.fabric(), *experiment.topology);

  install_echo(view, experiment.topology->graph.link_count());
  ns3::Config::Set("/Names/switch0/DeviceList/*/Channel/Delay", ns3::StringValue("700ns"));
  ns3::Config::ConnectWithoutContext("/Names/host1/DeviceList/0/$weft::FabricPortDevice/PhyRxEnd",
                                     ns3::MakeCallback(&note_frame));
  simulation.run([](weft::Time) { return weft::Simulation::Look::go_on; });

  std::vector<weft::Time> round_trips;
  for (std::size_t i = 0; i < answered.size(); ++i) {
    round_trips.push_back(answered[i] - sent[i]);
    std::cout << "request at " << to_text(sent[i]) << ": answered after " << to_text(round_trips[i]) << '\n';
  }
  std::cout << frames << " frames arrived at host1\n";

  // Alone: four links, each with 1000 B and the headers of UDP, IPv4 and Ethernet, check sequence, preamble and gap.
  const auto frame = weft::Bytes(1000 + 8 + 20 + 14 + 4 + 20);
  const auto hop = weft::serialization_time(frame, weft::Bandwidth::from_gbps(100)) + weft::Time::from_ns(700);
  // Two messages of 245 packets, and two requests.
  const bool right = round_trips.size() == 2 && round_trips[0] == 4 * hop && round_trips[1] > 4 * hop && frames == 492;
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
