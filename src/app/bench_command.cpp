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
std::string permutation_text(unsigned k, std::uint64_t bytes_per_host) {
  return fmt::format(
      "topology: {{kind: fat_tree, k: {}, link_rate: 400 Gb/s, link_delay: 500 ns}}\n"
      "network: {{mtu: 4096 B, window: 256 KiB}}\n"
      "workload: {{kind: traffic, pattern: permutation, size: {} B}}\n"
      "simulation: {{seed: 1}}\n",
      k, bytes_per_host);
}

Case run_weft(const std::string& name, unsigned k, std::uint64_t bytes_per_host, ProcessGroup group,
              EngineChoice engine) {
  const Experiment experiment = read_experiment(Spec::parse(permutation_text(k, bytes_per_host), name), name, ".");
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

const Case& find(const std::vector<Case>& cases, const std::string& engine) {
  for (const Case& one : cases)
    if (one.hosts == 128 && one.engine == engine && one.mpi_ranks == 1) return one;
  throw InternalError("benchmark without a case for " + engine);
}

void print(const std::vector<Case>& cases, double over_engine, double over_stack) {
  std::cout << fmt::format("{:<14} {:>7} {:>10} {:<12} {:>13} {:>9} {:>13} {:>15}\n", "case", "hosts", "MPI ranks",
                           "engine", "packet-hops", "wall s", "ns per hop", "packet-hops/s");
  for (const Case& one : cases)
    std::cout << fmt::format("{:<14} {:>7} {:>10} {:<12} {:>13} {:>9.3f} {:>13.1f} {:>15.3e}\n", one.name, one.hosts,
                             one.mpi_ranks, one.engine, one.packet_hops, one.wall_seconds, one.ns_per_packet_hop(),
                             static_cast<double>(one.packet_hops) / one.wall_seconds);
  std::cout << fmt::format(
      "at 128 hosts, per packet-hop on one core: {:.1f} x the same fabric under ns-3's engine, {:.1f} x ns-3's stack\n",
      over_engine, over_stack);
}

void write_json(const std::string& path, const std::vector<Case>& cases, double over_engine, double over_stack) {
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
  json["ratios"] = {{"weft_over_ns3_engine", over_engine}, {"weft_over_ns3_stack", over_stack}};
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
    run_weft("warm-up", 8, 256 << 10, ProcessGroup::alone(), EngineChoice::weft);
    cases.push_back(run_weft("permutation", 8, unit * (1 << 20), ProcessGroup::alone(), EngineChoice::weft));
    cases.push_back(run_weft("permutation", 8, unit * (512 << 10), ProcessGroup::alone(), EngineChoice::ns3_default));
    cases.push_back(run_ns3_stack(8, unit * (32 << 10)));
    cases.push_back(run_weft("permutation", 16, unit * (256 << 10), ProcessGroup::alone(), EngineChoice::weft));
  }
  if (group.size() > 1) {
    group.minimum(0);
    for (const unsigned k : {8U, 16U}) {
      const Case one = run_weft("permutation", k, unit * (k == 8 ? 1 << 20 : 256 << 10), group, EngineChoice::weft);
      cases.push_back(one);
    }
  }
  if (group.rank() != 0) return exit_done;
  const double weft = find(cases, "weft").ns_per_packet_hop();
  const double over_engine = find(cases, "ns3-default").ns_per_packet_hop() / weft;
  const double over_stack = find(cases, "ns3-stack").ns_per_packet_hop() / weft;
  print(cases, over_engine, over_stack);
  if (!line.json_file.empty()) write_json(line.json_file, cases, over_engine, over_stack);
  return exit_done;
}

}  // namespace weft
