// SPDX-License-Identifier: GPL-2.0-only
// `weft perf`: nccl-tests' table of a simulated machine.
#include <fstream>
#include <iostream>

#include <fmt/format.h>

#include "app/command_line/collective_options.hpp"
#include "app/commands/commands.hpp"
#include "app/pictures/picture.hpp"
#include "app/reports/recording.hpp"
#include "app/running/prepare.hpp"
#include "app/running/simulation.hpp"
#include "results/collective_results.hpp"
#include "support/error.hpp"

namespace weft {
namespace {

struct Row {
  std::int64_t bytes = 0;
  std::int64_t count = 0;  ///< elements, as nccl-tests prints them: per rank's block where there are blocks
  double us = 0;
  double algorithm_bandwidth = 0;  ///< GB/s
  double bus_bandwidth = 0;
  std::string algorithm;  ///< that has run: a selection may choose another one for each size
  std::string protocol;
  std::uint32_t channels = 0;
};

bool has_blocks(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::all_to_all || kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
}

/// Elements for about so many bytes: nccl-tests rounds blocks down to 16 bytes (src/{all_gather,reduce_scatter,...}.cu,
/// *GetCollByteCount).
std::int64_t count_of(const PerfOptions& options, std::int64_t bytes, std::uint32_t ranks) {
  const std::int64_t elements = bytes / options.type_bytes;
  if (!has_blocks(options.kind)) return elements;
  const std::int64_t together = 16 / options.type_bytes;
  return elements / ranks / together * together;
}

/// One line of the sweep; collective over the group.
Row measure(const PerfOptions& options, const Spec& original, Bytes size, ProcessGroup& group) {
  Row row;
  Experiment experiment;
  prepare(group, [&] {
    const auto slash = options.experiment.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : options.experiment.substr(0, slash);
    Spec spec = original;
    spec.set("workload.size", "0 B");
    const std::uint32_t ranks = read_experiment(spec, options.experiment, directory).workload->ranks();
    row.count = count_of(options, size.count(), ranks);
    row.bytes = row.count * options.type_bytes * (has_blocks(options.kind) ? ranks : 1);
    spec.set("workload.size", fmt::format("{} B", row.bytes));
    experiment = read_experiment(spec, options.experiment, directory);
    const CollectiveCall call = experiment.workload->call(0);
    row.algorithm = call.algorithm;
    row.protocol = to_text(call.tuning.protocol);
    row.channels = find_collective(call.algorithm)->channels(call);
  });
  Simulation simulation(experiment, group, EngineChoice::weft);
  simulation.run([](Time) { return Simulation::Look::go_on; });
  const bool done = simulation.unfinished_ranks() == 0;
  const auto results = reduce_collectives(group.communicator(), simulation.runtime().records().collectives,
                                          collective_directory(*experiment.workload));
  prepare(group, [&] {
    if (!done)
      throw InputError(
          SourceLine{options.experiment, 0},
          fmt::format("the collective of {} B does not come to an end; `weft run` says who waits for whom", row.bytes));
  });
  if (results.empty()) return row;
  double ps = 0;
  for (const CollectiveResult& result : results) ps += static_cast<double>(result.time());
  ps /= static_cast<double>(results.size());
  row.us = ps / 1e6;
  row.algorithm_bandwidth = ps > 0 ? static_cast<double>(row.bytes) * 1e3 / ps : 0;
  row.bus_bandwidth = row.algorithm_bandwidth * results.front().info.bus_factor;
  return row;
}

// Columns and widths of nccl-tests' src/common.cu.
void print_head(const PerfOptions& options, const std::string& algorithm, const std::string& fidelity) {
  std::cout << fmt::format("# weft perf {} on {}, algorithm {}, {} call{} per size, simulated, fidelity {}\n",
                           to_text(options.kind), options.experiment, algorithm, options.iterations,
                           options.iterations == 1 ? "" : "s", fidelity)
            << fmt::format("#\n# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>8} {:>8} {:>8}  {}\n", "size", "count", "type",
                           "redop", "root", "time", "algbw", "busbw", "algorithm, protocol, channels")
            << fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>8} {:>8} {:>8}\n", "(B)", "(elements)", "", "",
                           "", "(us)", "(GB/s)", "(GB/s)");
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce || kind == CollectiveKind::reduce_scatter;
}

void print(const PerfOptions& options, const Row& row) {
  std::cout << fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}  {:>8} {:>8.2f} {:>8.2f}  {} {} {}\n", row.bytes,
                           row.count, options.type, reduces(options.kind) ? "sum" : "none",
                           has_root(options.kind) ? static_cast<int>(options.root) : -1,
                           row.us < 1e4 ? fmt::format("{:.2f}", row.us) : fmt::format("{:.0f}", row.us),
                           row.algorithm_bandwidth, row.bus_bandwidth, row.algorithm, row.protocol, row.channels)
            << std::flush;
}

void write_csv(const PerfOptions& options, const std::vector<Row>& rows) {
  std::ofstream file(options.csv);
  file << "size_bytes,count,type,time_us,algbw_GBps,busbw_GBps,algorithm,protocol,channels\n";
  for (const Row& row : rows)
    file << fmt::format("{},{},{},{:.6f},{:.6f},{:.6f},{},{},{}\n", row.bytes, row.count, options.type, row.us,
                        row.algorithm_bandwidth, row.bus_bandwidth, row.algorithm, row.protocol, row.channels);
  file.close();
  if (!file) throw EnvironmentError(fmt::format("cannot write '{}'", options.csv));
}

Spec read_spec(const PerfOptions& options) {
  Spec spec = Spec::load(options.experiment);
  for (const auto& [key, value] : options.settings) spec.set(key, value);
  const auto workload = spec.find("workload");
  const auto kind = workload ? workload->find("kind") : std::nullopt;
  if (kind && kind->text() != "collective")
    throw kind->error("weft perf runs collectives; kind: collective, or no workload at all, is due here");
  spec.set("workload.kind", "collective");
  spec.set("workload.collective", std::string(to_text(options.kind)));
  spec.set("workload.iterations", std::to_string(options.iterations));
  if (has_root(options.kind)) spec.set("workload.root", std::to_string(options.root));
  return spec;
}

}  // namespace

int perf_command(const CommandLine& line, ProcessGroup& group) {
  PerfOptions options;
  std::optional<Spec> spec;
  std::string algorithm = "ring";
  std::string fidelity = "packet";
  prepare(group, [&] {
    options = parse_perf_options(line.words);
    spec = read_spec(options);
    if (const auto name = spec->at("workload").find("algorithm")) algorithm = name->text();
    if (const auto network = spec->find("network"))
      if (const auto value = network->find("fidelity")) fidelity = value->text();
  });
  std::vector<Row> rows;
  if (group.rank() == 0) print_head(options, algorithm, fidelity);
  for (Bytes size = options.begin; size <= options.end;) {
    rows.push_back(measure(options, *spec, size, group));
    if (group.rank() == 0) print(options, rows.back());
    size = options.step.count() > 0 ? size + options.step : size * options.factor;
    if (size.count() == 0) break;
  }
  prepare(group, [&] {
    if (group.rank() != 0) return;
    double sum = 0;
    std::vector<std::pair<double, double>> points;
    for (const Row& row : rows) {
      sum += row.bus_bandwidth;
      points.emplace_back(static_cast<double>(row.bytes), row.bus_bandwidth);
    }
    std::cout << fmt::format("# Avg bus bandwidth    : {:.4f}\n", sum / static_cast<double>(rows.size()));
    if (!options.csv.empty()) write_csv(options, rows);
    if (!options.plot.empty())
      write_size_plot(options.plot, fmt::format("{} by {}, {}", to_text(options.kind), algorithm, options.experiment),
                      "bus bandwidth, GB/s", points);
  });
  return exit_done;
}

}  // namespace weft
