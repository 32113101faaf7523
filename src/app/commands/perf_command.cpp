// SPDX-License-Identifier: GPL-2.0-only
// `weft perf`: nccl-tests' table of a simulated machine.
#include <algorithm>
#include <iostream>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/command_line/collective_options.hpp"
#include "app/commands/commands.hpp"
#include "app/perf/perf_report.hpp"
#include "app/pictures/picture.hpp"
#include "app/processes/prepare.hpp"
#include "app/reports/recording.hpp"
#include "app/running/simulation.hpp"
#include "graph/shapes/server_shape.hpp"
#include "results/tables/collective_results.hpp"
#include "schedule/collective/selection.hpp"
#include "support/basics/error.hpp"

namespace weft {
namespace {

bool has_blocks(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::all_to_all || kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
}

struct PerfSize {
  Bytes bytes{0};
  std::string type;
  bool operator<(const PerfSize& other) const { return std::pair(bytes, type) < std::pair(other.bytes, other.type); }
};

/// Elements for about so many bytes: nccl-tests rounds blocks down to 16 bytes (src/{all_gather,reduce_scatter,...}.cu,
/// *GetCollByteCount).
std::int64_t count_of(CollectiveKind kind, const PerfSize& size, std::uint32_t ranks) {
  const std::int64_t each = bytes_of_type(size.type).value();
  const std::int64_t elements = size.bytes.count() / each;
  if (!has_blocks(kind)) return elements;
  const std::int64_t together = 16 / each;
  return elements / ranks / together * together;
}

Experiment experiment_of(const PerfOptions& options, Spec spec, std::int64_t bytes) {
  const auto slash = options.experiment.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : options.experiment.substr(0, slash);
  spec.set("workload.size", fmt::format("{} B", bytes));
  return read_experiment(spec, options.experiment, directory);
}

/// The algorithm that the experiment names, or the machine's default.
std::string algorithm_of(const PerfOptions& options, const Spec& spec) {
  if (const auto given = spec.at("workload").find("algorithm")) return given->text();
  return nccl_by_default(*experiment_of(options, spec, 0).topology) ? "nccl" : algorithm_of_network(options.kind);
}

/// Whether there are NVSwitches of a generation that reduces (since Hopper), and the machine has no units for it.
bool has_plain_nvswitches(const Shape* shape) {
  const auto* servers = dynamic_cast<const ServerShape*>(shape);
  if (servers == nullptr || servers->design.architecture < GpuArchitecture::hopper) return false;
  return std::any_of(servers->design.links.begin(), servers->design.links.end(), [&](const auto& link) {
    return link.link_class == "nvlink" && std::max(link.a, link.b) >= servers->design.gpus;
  });
}

/// One row of the sweep; collective over the group.
PerfRow simulate_once(const PerfOptions& options, const Spec& spec, const std::string& asked_for, const PerfSize& size,
                      ProcessGroup& group) {
  PerfRow row;
  Experiment experiment;
  prepare(group, [&] {
    row.asked_for = asked_for;
    row.wanted = size.bytes.count();
    row.type = size.type;
    const std::uint32_t ranks = experiment_of(options, spec, 0).workload->ranks();
    row.count = count_of(options.kind, size, ranks);
    row.bytes = row.count * bytes_of_type(size.type).value() * (has_blocks(options.kind) ? ranks : 1);
    experiment = experiment_of(options, spec, row.bytes);
    const CollectiveCall call = experiment.workload->call(0);
    row.algorithm = call.algorithm;
    row.protocol = to_text(call.tuning.protocol);
    row.channels = find_collective(call.algorithm)->channels(call);
    row.with_kernel = call.tuning.launch > Time();
    row.without_sharp = asked_for == "nccl" && options.kind == CollectiveKind::all_reduce &&
                        has_plain_nvswitches(experiment.topology->shape.get());
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

/// The same, and with --range the least and the greatest time of all values of kernel_constants.
PerfRow simulate_size(const PerfOptions& options, Spec spec, const std::string& asked_for, const PerfSize& size,
                      ProcessGroup& group) {
  if (!options.range) return simulate_once(options, spec, asked_for, size, group);
  std::vector<PerfRow> rows;
  for (const char* level : {"low", "high", "mid"}) {
    spec.set("workload.kernel_constants", level);
    rows.push_back(simulate_once(options, spec, asked_for, size, group));
  }
  PerfRow row = rows.back();
  std::tie(row.min_us, row.max_us) = std::minmax({rows[0].us, rows[1].us, rows[2].us});
  return row;
}

Spec perf_spec(const PerfOptions& options, const std::string& algorithm) {
  Spec spec = Spec::load(options.experiment);
  for (const auto& [key, value] : options.settings) spec.set(key, value);
  const auto workload = spec.find("workload");
  const auto kind = workload ? workload->find("kind") : std::nullopt;
  if (kind && kind->text() != "collective")
    throw kind->error("weft perf runs collectives; expected kind: collective, or no workload at all");
  spec.set("workload.kind", "collective");
  spec.set("workload.collective", std::string(to_text(options.kind)));
  spec.set("workload.iterations", std::to_string(options.iterations));
  const auto constants = options.range && workload ? workload->find("kernel_constants") : std::nullopt;
  if (constants) throw constants->error("--range runs low, mid and high; leave the key or the option out");
  if (has_root(options.kind)) spec.set("workload.root", std::to_string(options.root));
  if (!algorithm.empty()) spec.set("workload.algorithm", algorithm);
  return spec;
}

// As nccl-tests names its programs.
std::string program_of(CollectiveKind kind) {
  if (kind == CollectiveKind::all_to_all) return "alltoall_perf";
  if (kind == CollectiveKind::send_recv) return "sendrecv_perf";
  return fmt::format("{}_perf", to_text(kind));
}

/// For a log that does not name its program: a row with a reduction is no collective that only copies, and the reverse.
void check_operation(CollectiveKind kind, const MeasuredRow& row) {
  using K = CollectiveKind;
  const bool copies = kind == K::all_gather || kind == K::broadcast || kind == K::all_to_all;
  const bool reduces = kind == K::all_reduce || kind == K::reduce_scatter || kind == K::reduce;
  const bool none = row.operation == "none";
  if (row.operation.empty() || !(none ? reduces : copies)) return;
  throw InputError(
      row.place, fmt::format("the operation (redop) found is '{}', but {} {}; expected the output of {}", row.operation,
                             to_text(kind), copies ? "reduces nothing" : "reduces", program_of(kind)));
}

// Checks that the log is of this collective and number of ranks, and keeps the requested rows.
Measurements read_log(const PerfOptions& options, const std::string& file, std::uint32_t ranks) {
  Measurements log = read_measurements(file);
  if (!log.program.empty() && log.program != program_of(options.kind))
    throw InputError(log.program_place, fmt::format("this is the output of {}; expected that of {}", log.program,
                                                    program_of(options.kind)));
  if (log.ranks > 0 && log.ranks != ranks)
    throw InputError(log.ranks_place, fmt::format("{} ranks were measured; {} has {} ranks (--set workload.ranks={})",
                                                  log.ranks, options.experiment, ranks, log.ranks));
  const std::size_t found = log.rows.size();
  std::erase_if(log.rows, [&](const MeasuredRow& row) {
    return (options.sizes_given && row.bytes < options.begin.count()) ||
           (options.end_given && row.bytes > options.end.count()) || (options.type_given && row.type != options.type);
  });
  if (log.rows.empty())
    throw InputError({file, 0}, fmt::format("none of the {} rows has a size and type that was asked for", found));
  for (MeasuredRow& row : log.rows) {
    if (row.type.empty()) row.type = options.type;
    if (log.program.empty()) check_operation(options.kind, row);
    if (!bytes_of_type(row.type))
      throw InputError(row.place, fmt::format("the type found is '{}'; expected one of nccl-tests'", row.type));
    const std::optional<double>& time = options.in_place ? row.in_place : row.out_of_place;
    if (!time)
      throw InputError(row.place, fmt::format("there is no time {}", options.in_place ? "in place"
                                                                                      : "out of place; "
                                                                                        "give --in-place"));
    row.us = *time;
  }
  return log;
}

std::vector<PerfSize> sizes_of(const PerfOptions& options, const std::vector<Measurements>& logs) {
  std::set<PerfSize> measured;
  for (const Measurements& log : logs)
    for (const MeasuredRow& row : log.rows) measured.insert({Bytes(row.bytes), row.type});
  std::vector<PerfSize> sizes(measured.begin(), measured.end());
  for (Bytes size = options.begin; logs.empty() && size <= options.end;) {
    sizes.push_back({size, options.type});
    size = options.step.count() > 0 ? size + options.step : size * options.factor;
    if (size.count() == 0) break;
  }
  return sizes;
}

std::vector<Comparison> compare_all(const PerfOptions& options, const std::vector<Measurements>& logs,
                                    const PerfSweep& sweep) {
  std::vector<Comparison> comparisons;
  for (std::size_t i = 0; i < logs.size(); ++i)
    for (std::size_t a = 0; a < sweep.algorithms.size(); ++a)
      if (options.logs[i].algorithm.empty() || options.logs[i].algorithm == sweep.algorithms[a])
        comparisons.push_back(compare(logs[i], sweep, a));
  return comparisons;
}

void plot_sweep(const PerfOptions& options, const PerfSweep& sweep) {
  std::vector<SizeLine> lines;
  for (std::size_t a = 0; a < sweep.algorithms.size(); ++a) {
    lines.push_back({sweep.algorithms[a], {}});
    for (const std::vector<PerfRow>& rows : sweep.sizes)
      lines.back().points.emplace_back(static_cast<double>(rows[a].bytes), rows[a].bus_bandwidth);
  }
  write_size_plot(
      options.plot,
      fmt::format("{} by {}, {}", to_text(options.kind), fmt::join(sweep.algorithms, ", "), options.experiment),
      "bus bandwidth, GB/s", lines);
}

}  // namespace

int perf_command(const CommandLine& line, ProcessGroup& group) {
  PerfOptions options;
  PerfReport report;
  std::vector<Spec> specs;
  std::vector<Measurements> logs;
  prepare(group, [&] {
    options = parse_perf_options(line.words);
    report.options = &options;
    const std::vector<std::string> asked =
        options.algorithms.empty() ? std::vector<std::string>{""} : options.algorithms;
    for (const std::string& name : asked) specs.push_back(perf_spec(options, name));
    report.sweep.algorithms = options.algorithms.empty() ? std::vector{algorithm_of(options, specs[0])} : asked;
    const auto network = specs[0].find("network");
    const auto fidelity = network ? network->find("fidelity") : std::nullopt;
    report.fidelity = fidelity ? fidelity->text() : "packet";
    for (const PerfLog& log : options.logs)
      logs.push_back(read_log(options, log.file, experiment_of(options, specs[0], 0).workload->ranks()));
  });
  const bool prints = group.rank() == 0 && !options.json;
  if (prints) std::cout << perf_head(report);
  for (const PerfSize& size : sizes_of(options, logs)) {
    std::vector<PerfRow>& rows = report.sweep.sizes.emplace_back();
    for (std::size_t a = 0; a < specs.size(); ++a)
      rows.push_back(simulate_size(options, specs[a], report.sweep.algorithms[a], size, group));
    if (prints) std::cout << perf_line(report, rows) << std::flush;
  }
  prepare(group, [&] {
    if (group.rank() != 0) return;
    report.comparisons = compare_all(options, logs, report.sweep);
    std::cout << (options.json ? perf_json(report) : perf_foot(report));
    if (!options.csv.empty()) write_perf_csv(report);
    if (!options.plot.empty()) plot_sweep(options, report.sweep);
  });
  return exit_done;
}

}  // namespace weft
