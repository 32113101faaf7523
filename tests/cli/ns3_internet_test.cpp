// SPDX-License-Identifier: GPL-2.0-only
// A program of its own, as docs/concepts/ns3.md shows it: ns-3 applications on hosts, three switches apart, on any
// number of MPI processes. MPI ranks: 1 2 3 4
#include <cstdlib>
#include <iostream>

#include <ns3/simulator.h>
#include <ns3/udp-echo-helper.h>
#include <ns3/uinteger.h>

#include "app/running/experiment.hpp"
#include "app/running/simulation.hpp"
#include "engine/mpi_session.hpp"
#include "engine/process_group.hpp"
#include "fabric/ns3/ns3_view.hpp"
#include "internet/internet.hpp"
#include "units/text.hpp"

namespace {

const char* const text = R"(
topology: {kind: line, links: 4, link_rate: 100 Gb/s, link_delay: 500 ns}
network: {switch_latency: 300 ns}
workload: {kind: program, ranks: 1, operations: [{rank: 0, compute: 1 ns}]}
)";

weft::Time sent;
weft::Time answered;

weft::Time now() { return weft::Time::from_ps(ns3::Simulator::Now().GetTimeStep()); }
void note_sent(ns3::Ptr<const ns3::Packet>) { sent = now(); }
void note_answered(ns3::Ptr<const ns3::Packet>) { answered = now(); }

// Host 0 sends a request to host 1. Every process schedules it; the one that owns a host executes it.
void install_echo(weft::Internet& internet) {
  internet.install_everywhere();
  internet.add(ns3::UdpEchoServerHelper(9), weft::NodeId(1)).Start(ns3::Seconds(0));
  ns3::UdpEchoClientHelper client(weft::Internet::address(weft::NodeId(1)), 9);
  client.SetAttribute("MaxPackets", ns3::UintegerValue(1));
  client.SetAttribute("PacketSize", ns3::UintegerValue(1000));
  auto clients = internet.add(client, weft::NodeId(0));
  clients.Start(ns3::MicroSeconds(5));
  for (std::uint32_t i = 0; i < clients.GetN(); ++i) {
    clients.Get(i)->TraceConnectWithoutContext("Tx", ns3::MakeCallback(&note_sent));
    clients.Get(i)->TraceConnectWithoutContext("Rx", ns3::MakeCallback(&note_answered));
  }
}

}  // namespace

int main() {
  const weft::MpiSession session;
  ns3::Time::SetResolution(ns3::Time::PS);
  const weft::Experiment experiment =
      weft::read_experiment(weft::Spec::parse(text, "echo.yaml"), "echo.yaml", "workloads");
  weft::Simulation simulation(experiment, session.processes(), weft::EngineChoice::weft);
  weft::Ns3View view(simulation.fabric(), *experiment.topology);
  weft::Internet internet(view, experiment.seed);
  install_echo(internet);
  simulation.run([](weft::Time) { return weft::Simulation::Look::go_on; });

  // There and back over four links, each with 1000 B and the headers of UDP, IPv4 and Ethernet, check sequence,
  // preamble and gap; and through three switches each way.
  const auto wire = weft::Bytes(1000 + 8 + 20 + 14 + 4 + 20);
  const auto hop = weft::serialization_time(wire, weft::Bandwidth::from_gbps(100)) + weft::Time::from_ns(500);
  const weft::Time expected = 2 * (4 * hop + 3 * weft::Time::from_ns(300));
  if (!internet.node(weft::NodeId(0))) return EXIT_SUCCESS;  // on another process
  std::cout << "answered after " << to_text(answered - sent) << '\n';
  return answered - sent == expected ? EXIT_SUCCESS : EXIT_FAILURE;
}
