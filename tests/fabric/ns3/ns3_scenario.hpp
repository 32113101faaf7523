// SPDX-License-Identifier: GPL-2.0-only
// Small experiments with the ns-3 view of their machine, and formulas for their times.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "app/running/experiment.hpp"
#include "app/running/simulation.hpp"
#include "fabric/ns3/ns3_view.hpp"
#include "tests/picoseconds.hpp"
#include "units/text.hpp"

namespace weft::test {

/// ns-3's clock counts picoseconds, as in the program.
inline const bool picoseconds = [] {
  count_in_picoseconds();
  return true;
}();

inline ns3::Time to_ns3(Time time) { return ns3::TimeStep(static_cast<std::uint64_t>(time.ps())); }
inline Time now() { return Time::from_ps(ns3::Simulator::Now().GetTimeStep()); }

/// An experiment of topology, network and workload maps in YAML, built and ready to run.
struct Scenario {
  Experiment experiment;
  Simulation simulation;
  RunFacts facts;

  Scenario(const std::string& topology, const std::string& network, const std::string& workload,
           EngineChoice engine = EngineChoice::weft, ProcessGroup group = ProcessGroup::alone(),
           const std::string& more = "{}")
      : experiment(read_experiment(Spec::parse(fmt::format("topology: {}\nnetwork: {}\nworkload: {}\nsimulation: {}\n",
                                                           topology, network, workload, more),
                                               "test.yaml"),
                                   "test.yaml", ".")),
        simulation(experiment, std::move(group), engine) {}

  Fabric& fabric() { return simulation.fabric(); }
  const Topology& topology() const { return *experiment.topology; }
  const ClusterGraph& graph() const { return experiment.topology->graph; }
  const NetworkParameters& network() const { return experiment.network; }
  void run() {
    facts = simulation.run([](Time) { return Simulation::Look::go_on; });
    EXPECT_EQ(simulation.unfinished_ranks(), 0U);
  }
  const std::vector<MessageRecord>& messages() { return simulation.runtime().records().messages.rows(); }
  LinkCounters counters(NodeId node, std::uint32_t port) {
    for (const LinkCounters& counters : fabric().link_counters())
      if (counters.from == node && counters.from_port == port) return counters;
    ADD_FAILURE() << "node " << node.value() << " has no port " << port;
    return {};
  }
};

/// Rank 0 sends one message to rank 1.
inline std::string one_message(Bytes size) {
  return fmt::format(
      "{{kind: program, ranks: 2, operations: [{{rank: 0, send: {0}, to: 1}}, {{rank: 1, recv: {0}, from: 0}}]}}",
      to_text(size));
}
/// Nothing on the network.
inline const std::string silence = "{kind: program, ranks: 1, operations: [{rank: 0, compute: 1 ns}]}";

/// Everything that the network did: messages and counters of links, in the order of their ids.
using History = std::vector<std::tuple<std::uint64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, double>>;
inline History history(Scenario& scenario) {
  History result;
  for (const MessageRecord& m : scenario.messages())
    result.emplace_back(m.id, m.issued, m.delivered, m.ideal, m.bytes, 0.0);
  for (const LinkCounters& l : scenario.fabric().link_counters())
    result.emplace_back(l.directed_link, l.packets, l.bytes.count(), l.busy.ps(), l.peak_queue_bytes.count(),
                        l.queue_byte_ps);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace weft::test
