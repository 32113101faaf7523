// SPDX-License-Identifier: GPL-2.0-only
// `weft bench`: packet-hops per second of weft, of the same fabric under ns-3's default engine, and of ns-3's own
// stack.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.hpp"
#include "app/ns3_stack_bench.hpp"
#include "app/prepare.hpp"

namespace weft {
namespace {

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

/// Mechanisms on the permutation of 128 hosts, each measured against the model that needs none of them.
struct Mechanism {
  const char* name;
  const char* network;
};
constexpr Mechanism mechanisms[] = {
    {"queues", ", queues: output"},
    {"spray", ", load_balancing: spray"},
    {"pfc", ", flow_control: pfc, buffer: {size: 32 MiB}"},
    {"pfc_ecn_dcqcn", ", flow_control: pfc, buffer: {size: 32 MiB}, congestion_control: dcqcn"},
    {"pfc_hpcc", ", flow_control: pfc, buffer: {size: 32 MiB}, congestion_control: hpcc"},
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

const Case& find(const std::vector<Case>& cases, const std::string& name, std::uint32_t hosts,
                 const std::string& engine, int mpi_ranks = 1) {
  for (const Case& one : cases)
    if (one.name == name && one.hosts == hosts && one.engine == engine && one.mpi_ranks == mpi_ranks) return one;
  throw InternalError(fmt::format("benchmark without a case of {} on {} hosts for {}", name, hosts, engine));
}

/// Quotients of times per packet-hop, by name.
using Ratios = std::vector<std::pair<std::string, double>>;

Ratios ratios_of(const std::vector<Case>& cases, int mpi_ranks) {
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
  if (mpi_ranks > 1)
    for (const char* name : {"permutation", "all_reduce"})
      ratios.emplace_back(fmt::format("speedup_{}_1024_hosts", name),
                          cost(name, 1024, "weft") / cost(name, 1024, "weft", mpi_ranks));
  return ratios;
}

void print(const std::vector<Case>& cases, const Ratios& ratios) {
  std::cout << fmt::format("{:<14} {:>7} {:>10} {:<12} {:>13} {:>9} {:>13} {:>15}\n", "case", "hosts", "MPI ranks",
                           "engine", "packet-hops", "wall s", "ns per hop", "packet-hops/s");
  for (const Case& one : cases)
    std::cout << fmt::format("{:<14} {:>7} {:>10} {:<12} {:>13} {:>9.3f} {:>13.1f} {:>15.3e}\n", one.name, one.hosts,
                             one.mpi_ranks, one.engine, one.packet_hops, one.wall_seconds, one.ns_per_packet_hop(),
                             static_cast<double>(one.packet_hops) / one.wall_seconds);
  for (const auto& [name, value] : ratios) std::cout << fmt::format("{:<32} {:>8.2f}\n", name, value);
}

void write_json(const std::string& path, const std::vector<Case>& cases, const Ratios& ratios) {
  nlohmann::ordered_json json;
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
  const std::uint64_t unit = line.quick ? 1 : 10;
  std::vector<Case> cases;
  // Cases of one process run on the first; the others wait in the next collective call.
  if (group.rank() == 0) {
    // Once in small, so that no case pays for page faults and lazy binding of the others.
    const ProcessGroup alone = ProcessGroup::alone();
    run_weft("warm-up", permutation_text(8, 256 << 10), alone, EngineChoice::weft);
    cases.push_back(run_weft("permutation", permutation_text(8, unit * (1 << 20)), alone, EngineChoice::weft));
    cases.push_back(run_weft("permutation", permutation_text(8, unit * (512 << 10)), alone, EngineChoice::ns3_default));
    for (const Mechanism& mechanism : mechanisms)
      cases.push_back(run_weft(mechanism.name, permutation_text(8, unit * (512 << 10), mechanism.network), alone,
                               EngineChoice::weft));
    cases.push_back(run_ns3_stack(8, unit * (32 << 10)));
    cases.push_back(run_weft("permutation", permutation_text(16, unit * (256 << 10)), alone, EngineChoice::weft));
    cases.push_back(run_weft("permutation", permutation_text(32, unit * (64 << 10)), alone, EngineChoice::weft));
    if (group.size() > 1)
      cases.push_back(run_weft("all_reduce", all_reduce_text(unit * (1 << 20)), alone, EngineChoice::weft));
  }
  if (group.size() > 1) {
    group.minimum(0);
    for (const unsigned k : {8U, 16U}) {
      const std::string text = permutation_text(k, unit * (k == 8 ? 1 << 20 : 256 << 10));
      cases.push_back(run_weft("permutation", text, group, EngineChoice::weft));
    }
    cases.push_back(run_weft("all_reduce", all_reduce_text(unit * (1 << 20)), group, EngineChoice::weft));
  }
  if (group.rank() != 0) return exit_done;
  const Ratios ratios = ratios_of(cases, group.size());
  print(cases, ratios);
  if (!line.json_file.empty()) write_json(line.json_file, cases, ratios);
  return exit_done;
}

}  // namespace weft
