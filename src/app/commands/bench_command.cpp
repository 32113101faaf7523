// SPDX-License-Identifier: GPL-2.0-only
// `weft bench`: packet-hops per second of weft, of the same fabric under ns-3's default engine, and of ns-3's own
// stack.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/ns3_baseline/ns3_stack_bench.hpp"
#include "app/processes/prepare.hpp"

namespace weft {
namespace {

/// The result of one run, or the median of several.
struct Case {
  std::string name;
  std::uint32_t hosts = 0;
  int mpi_ranks = 1;
  std::string engine;
  std::uint64_t packet_hops = 0;
  double wall_seconds = 0;
  double ns_per_packet_hop() const { return wall_seconds * 1e9 / static_cast<double>(packet_hops); }
};

// Random permutation, 4 KiB packets, an ACK per packet, ECMP, counters on.
std::string permutation_text(unsigned k, std::uint64_t bytes_per_host, const std::string& network = "") {
  return fmt::format(
      "topology: {{kind: fat_tree, k: {}, link_rate: 400 Gb/s, link_delay: 500 ns}}\n"
      "network: {{mtu: 4096 B, window: 256 KiB{}}}\n"
      "workload: {{kind: traffic, pattern: permutation, size: {} B}}\n"
      "simulation: {{seed: 1}}\n",
      k, network, bytes_per_host);
}

/// Mechanisms on the permutation of 128 hosts, each measured against the model that needs none of them; in the long
/// benchmark some of them on 1,024 hosts, too.
struct Mechanism {
  const char* name;
  const char* network;
  bool also_large = false;
};
constexpr Mechanism mechanisms[] = {
    {"queues", ", queues: output"},
    {"spray", ", load_balancing: spray"},
    {"pfc", ", flow_control: pfc, buffer: {size: 32 MiB}", true},
    {"pfc_ecn_dcqcn", ", flow_control: pfc, buffer: {size: 32 MiB}, congestion_control: dcqcn", true},
    {"pfc_hpcc", ", flow_control: pfc, buffer: {size: 32 MiB}, congestion_control: hpcc", true},
    {"swift", ", congestion_control: swift", true},
    {"credit", ", flow_control: credit"},
};

// 1,024 ranks in a ring that visits the hosts in order; `bytes` per rank.
std::string all_reduce_text(std::uint64_t bytes) {
  return fmt::format(
      "topology: {{kind: fat_tree, k: 16, link_rate: 400 Gb/s, link_delay: 500 ns}}\n"
      "network: {{mtu: 4096 B, window: 256 KiB}}\n"
      "workload: {{kind: collective, collective: all_reduce, algorithm: ring, size: {} B}}\n"
      "simulation: {{seed: 1}}\n"
      "output: {{messages: none}}\n",
      bytes);
}

Case run_weft(const std::string& name, const std::string& text, ProcessGroup group, EngineChoice engine) {
  const Experiment experiment = read_experiment(Spec::parse(text, name), name, ".");
  Simulation simulation(experiment, group, engine);
  const RunFacts facts = simulation.run([](Time) { return Simulation::Look::go_on; });
  WEFT_EXPECT(simulation.unfinished_ranks() == 0, "benchmark {} is incomplete", name);
  return {name,
          experiment.topology->graph.host_count(),
          group.size(),
          engine == EngineChoice::weft ? "weft" : "ns3-default",
          facts.packet_hops,
          facts.wall_seconds};
}

// The same permutation as the traffic workload's, read from its programs.
std::vector<std::uint32_t> permutation(unsigned k) {
  const Experiment experiment = read_experiment(Spec::parse(permutation_text(k, 1), "permutation"), "permutation", ".");
  std::vector<std::uint32_t> destinations;
  for (std::uint32_t r = 0; r < experiment.workload->ranks(); ++r) {
    Operation operation;
    const auto program = experiment.workload->program(Rank(r));
    WEFT_EXPECT(program->next(operation), "rank {} sends nothing", r);
    destinations.push_back(operation.peer.value());
  }
  return destinations;
}

Case run_ns3_stack(unsigned k, std::uint64_t bytes_per_host) {
  const auto destinations = permutation(k);
  const Ns3StackResult result = run_ns3_stack_permutation(k, destinations, bytes_per_host);
  return {"permutation",      static_cast<std::uint32_t>(destinations.size()), 1, "ns3-stack", result.packet_hops,
          result.wall_seconds};
}

/// One case, to be run in turn with the others: by all processes together, or by the first one while the others rest.
struct Measurement {
  bool by_all = false;
  std::function<Case()> run;
};

/// All cases, those that are compared near each other; `unit`: the amounts of traffic are multiples of it.
std::vector<Measurement> plan(std::uint64_t unit, bool quick, ProcessGroup& group) {
  std::vector<Measurement> all;
  const auto alone = [&all](const std::string& name, const std::string& text, EngineChoice engine) {
    all.push_back({false, [=] { return run_weft(name, text, ProcessGroup::alone(), engine); }});
  };
  const auto together = [&all, &group](const std::string& name, const std::string& text) {
    all.push_back({true, [=, &group] { return run_weft(name, text, group, EngineChoice::weft); }});
  };
  // The same traffic with each mechanism: of a shorter run more is its beginning, when memory is touched first.
  const std::uint64_t small_bytes = unit * (1 << 20);
  const std::uint64_t middle_bytes = unit * (256 << 10);
  const std::string small = permutation_text(8, small_bytes);
  const std::string middle = permutation_text(16, middle_bytes);
  const std::string ring = all_reduce_text(unit * (1 << 20));
  const bool several = group.size() > 1;
  alone("permutation", small, EngineChoice::weft);
  if (several) together("permutation", small);
  alone("permutation", permutation_text(8, unit * (512 << 10)), EngineChoice::ns3_default);
  for (const Mechanism& mechanism : mechanisms)
    alone(mechanism.name, permutation_text(8, small_bytes, mechanism.network), EngineChoice::weft);
  all.push_back({false, [unit] { return run_ns3_stack(8, unit * (32 << 10)); }});
  alone("permutation", middle, EngineChoice::weft);
  if (several) together("permutation", middle);
  for (const Mechanism& mechanism : mechanisms)
    if (mechanism.also_large && !quick)
      alone(mechanism.name, permutation_text(16, middle_bytes, mechanism.network), EngineChoice::weft);
  alone("permutation", permutation_text(32, unit * (64 << 10)), EngineChoice::weft);
  if (!several) return all;
  alone("all_reduce", ring, EngineChoice::weft);
  together("all_reduce", ring);
  return all;
}

/// The median in the order of `before`; of an even number the lesser of the two in the middle.
template <class Value, class Before>
Value median(std::vector<Value> values, const Before& before) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end(), before);
  return *middle;
}

const Case& find(const std::vector<Case>& cases, const std::string& name, std::uint32_t hosts,
                 const std::string& engine, int mpi_ranks = 1) {
  for (const Case& one : cases)
    if (one.name == name && one.hosts == hosts && one.engine == engine && one.mpi_ranks == mpi_ranks) return one;
  throw InternalError(fmt::format("benchmark without a case of {} on {} hosts for {}", name, hosts, engine));
}

/// Quotients of times per packet-hop, by name.
using Ratios = std::vector<std::pair<std::string, double>>;

Ratios ratios_of(const std::vector<Case>& cases, bool quick, int mpi_ranks) {
  const auto cost = [&cases](const std::string& name, std::uint32_t hosts, const std::string& engine, int ranks = 1) {
    return find(cases, name, hosts, engine, ranks).ns_per_packet_hop();
  };
  const double weft = cost("permutation", 128, "weft");
  Ratios ratios = {{"weft_over_ns3_engine", cost("permutation", 128, "ns3-default") / weft},
                   {"weft_over_ns3_stack", cost("permutation", 128, "ns3-stack") / weft},
                   {"cost_1024_hosts_over_128", cost("permutation", 1024, "weft") / weft},
                   {"cost_8192_hosts_over_128", cost("permutation", 8192, "weft") / weft}};
  for (const Mechanism& mechanism : mechanisms)
    ratios.emplace_back(fmt::format("cost_{}_over_committed", mechanism.name),
                        cost(mechanism.name, 128, "weft") / weft);
  for (const Mechanism& mechanism : mechanisms)
    if (mechanism.also_large && !quick)
      ratios.emplace_back(fmt::format("cost_{}_over_committed_1024_hosts", mechanism.name),
                          cost(mechanism.name, 1024, "weft") / cost("permutation", 1024, "weft"));
  if (mpi_ranks > 1)
    for (const char* name : {"permutation", "all_reduce"})
      ratios.emplace_back(fmt::format("speedup_{}_1024_hosts", name),
                          cost(name, 1024, "weft") / cost(name, 1024, "weft", mpi_ranks));
  return ratios;
}

// The median of each ratio over the turns: a temporary disturbance of the machine affects both sides of a ratio.
Ratios median_ratios(const std::vector<std::vector<Case>>& turns, bool quick, int mpi_ranks) {
  std::vector<Ratios> of_turn;
  for (const std::vector<Case>& cases : turns) of_turn.push_back(ratios_of(cases, quick, mpi_ranks));
  Ratios medians = of_turn.front();
  for (std::size_t r = 0; r < medians.size(); ++r) {
    std::vector<double> values;
    for (const Ratios& ratios : of_turn) values.push_back(ratios[r].second);
    medians[r].second = median(std::move(values), std::less<>());
  }
  return medians;
}

// For each case the run with the median time.
std::vector<Case> median_cases(const std::vector<std::vector<Case>>& turns) {
  std::vector<Case> medians;
  for (std::size_t i = 0; i < turns.front().size(); ++i) {
    std::vector<Case> runs;
    for (const std::vector<Case>& cases : turns) runs.push_back(cases[i]);
    medians.push_back(
        median(std::move(runs), [](const Case& a, const Case& b) { return a.wall_seconds < b.wall_seconds; }));
  }
  return medians;
}

void print(const std::vector<Case>& cases, const Ratios& ratios) {
  std::cout << fmt::format("{:<14} {:>7} {:>10} {:<12} {:>13} {:>9} {:>13} {:>15}\n", "case", "hosts", "MPI ranks",
                           "engine", "packet-hops", "wall s", "ns per hop", "packet-hops/s");
  for (const Case& one : cases)
    std::cout << fmt::format("{:<14} {:>7} {:>10} {:<12} {:>13} {:>9.3f} {:>13.1f} {:>15.3e}\n", one.name, one.hosts,
                             one.mpi_ranks, one.engine, one.packet_hops, one.wall_seconds, one.ns_per_packet_hop(),
                             static_cast<double>(one.packet_hops) / one.wall_seconds);
  for (const auto& [name, value] : ratios) std::cout << fmt::format("{:<46} {:>8.2f}\n", name, value);
}

void write_json(const std::string& path, std::size_t turns, const std::vector<Case>& cases, const Ratios& ratios) {
  nlohmann::ordered_json json;
  json["turns"] = turns;
  json["cases"] = nlohmann::ordered_json::array();
  for (const Case& one : cases)
    json["cases"].push_back({{"name", one.name},
                             {"hosts", one.hosts},
                             {"mpi_ranks", one.mpi_ranks},
                             {"engine", one.engine},
                             {"packet_hops", one.packet_hops},
                             {"wall_seconds", one.wall_seconds},
                             {"ns_per_packet_hop", one.ns_per_packet_hop()}});
  for (const auto& [name, value] : ratios) json["ratios"][name] = value;
  const std::string partial = path + ".partial";
  std::ofstream file(partial);
  file << json.dump(2) << '\n';
  file.close();
  if (!file || std::rename(partial.c_str(), path.c_str()) != 0)
    throw EnvironmentError(fmt::format("cannot write '{}'", path));
}

}  // namespace

int bench_command(const CommandLine& line, ProcessGroup& group) {
  prepare(group, [&] {
    if (line.json_file.empty() || group.rank() != 0) return;
    if (!std::ofstream(line.json_file + ".partial")) throw EnvironmentError("cannot write '" + line.json_file + "'");
  });
  const auto measurements = plan(line.quick ? 1 : 10, line.quick, group);
  // Once in small, so that no case pays for page faults and lazy binding of the others.
  if (group.rank() == 0) run_weft("warm-up", permutation_text(8, 256 << 10), ProcessGroup::alone(), EngineChoice::weft);
  std::vector<std::vector<Case>> turns(line.quick ? 1 : 5);
  for (std::vector<Case>& cases : turns)
    for (const Measurement& measurement : measurements) {
      if (measurement.by_all) group.sleep_until_all_arrive();
      if (measurement.by_all || group.rank() == 0) cases.push_back(measurement.run());
    }
  if (group.rank() != 0) return exit_done;
  const std::vector<Case> cases = median_cases(turns);
  const Ratios ratios = median_ratios(turns, line.quick, group.size());
  print(cases, ratios);
  if (!line.json_file.empty()) write_json(line.json_file, turns.size(), cases, ratios);
  return exit_done;
}

}  // namespace weft
