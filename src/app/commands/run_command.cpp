// SPDX-License-Identifier: GPL-2.0-only
// `weft run`: simulate, record, summarise.
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "app/commands/commands.hpp"
#include "app/processes/prepare.hpp"
#include "app/processes/shared_reading.hpp"
#include "app/reports/advice.hpp"
#include "app/reports/recording.hpp"
#include "app/reports/summary.hpp"
#include "app/reports/verify.hpp"
#include "app/reports/wait_for_cycle.hpp"
#include "app/running/ns3_settings.hpp"
#include "app/running/run_progress.hpp"
#include "app/running/version.hpp"
#include "fabric/ns3/pcap_tap.hpp"
#include "graph/shapes/reduction_shape.hpp"
#include "results/hdf5/hdf5_recorder.hpp"
#include "support/system/interrupt.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

Manifest make_manifest(const CommandLine& line, const Experiment& experiment, Simulation& simulation) {
  Manifest manifest;
  manifest.version = version_number();
  manifest.git_revision = git_revision();
  manifest.experiment_file = experiment.path;
  manifest.experiment_text = experiment.text;
  manifest.effective_experiment = experiment.effective_text;
  manifest.seed = experiment.seed;
  const ClusterGraph& graph = experiment.topology->graph;
  manifest.model = {{"topology", experiment.topology->kind},
                    {"hosts", std::to_string(machine_of(*experiment.topology).graph.host_count())},
                    {"switches", std::to_string(graph.switch_count())},
                    {"links", std::to_string(graph.link_count())},
                    {"routing", experiment.routing_name},
                    {"ranks", std::to_string(experiment.workload->ranks())},
                    {"fidelity", std::string(to_text(experiment.network.fidelity))}};
  if (const std::string between = experiment.network_routing_name(); !between.empty())
    manifest.model.emplace_back("network_routing", between);
  for (const auto& fact : experiment.workload->description()) manifest.model.push_back(fact);
  manifest.command_line = line.text;
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  manifest.host = host;
  char date[32] = "";
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  manifest.date = date;
  manifest.engine = line.engine == EngineChoice::weft ? "weft" : "ns3-default";
  const Partition& partition = simulation.partition();
  manifest.partition = {{"mpi_ranks", std::to_string(simulation.group().size())},
                        {"method", partition.method},
                        {"cut_links", std::to_string(partition.cut_links)},
                        {"balance", fmt::format("{:.4f}", partition.balance)},
                        {"lookahead", partition.cut_links > 0 ? to_text(simulation.network().lookahead()) : "none"}};
  return manifest;
}

using PcapTaps = std::vector<std::shared_ptr<PcapTap>>;

// Taps of the ports that this process owns.
PcapTaps add_pcap_taps(const Experiment& experiment, const std::string& output, Fabric& fabric) {
  PcapTaps taps;
  for (const PortName& name : experiment.output.pcap) {
    if (!fabric.owns(name.node)) continue;
    std::string file = output.ends_with(".h5") ? output.substr(0, output.size() - 3) : output;
    std::string port = name.text;
    std::replace_if(
        port.begin(), port.end(), [](char c) { return c == ':' || c == '/'; }, '-');
    taps.push_back(std::make_shared<PcapTap>(file + "." + port + ".pcap", fabric));
    fabric.probes().add_tap(name.node, name.port, taps.back());
  }
  return taps;
}

// Prints which operations wait, and for what. Process by process, so that lines are in rank order and few.
void report_unfinished(Simulation& simulation, const Experiment& experiment) {
  constexpr std::size_t max = 12;
  std::string text;
  for (const std::string& line : simulation.runtime().waiting(max)) text += "  " + line + "\n";
  ProcessGroup& group = simulation.group();
  const auto all = gather_text(group, text);
  const auto waits = gather_text(group, to_lines(simulation.runtime().waits()));
  if (group.rank() != 0) return;
  std::cerr << fmt::format(
      "weft: {}: the run came to a halt with unfinished operations; every message that was sent has been delivered\n",
      experiment.path);
  std::size_t shown = 0;
  for (const std::string& part : all) {
    for (std::size_t at = 0; at < part.size() && shown < max; ++shown) {
      const auto end = part.find('\n', at);
      std::cerr << part.substr(at, end - at) << '\n';
      at = end + 1;
    }
  }
  std::string edges;
  for (const std::string& part : waits) edges += part;
  const auto cycle = wait_for_cycle(from_lines(edges));
  if (cycle.empty()) return;
  std::cerr << "This is a deadlock, ranks wait for each other in a cycle:\n";
  for (const std::string& line : cycle) std::cerr << "  " << line << '\n';
}

// Where congestion was worst, for a first look.
std::vector<HotLinkLine> hot_links(const Experiment& experiment, Simulation& simulation, const RunFacts& facts) {
  constexpr std::size_t max = 3;
  const ClusterGraph& graph = experiment.topology->graph;
  const double time = std::max(1.0, static_cast<double>(facts.simulated.ps()));
  std::vector<HotLinkLine> lines;
  if (!simulation.has_fabric()) return lines;  // nothing waits inside the ideal network
  for (const HotLink& hot : simulation.fabric().results().hot_links(simulation.group(), max, facts.simulated)) {
    const LinkProperties& link = graph.link(LinkId(hot.directed_link / 2));
    const unsigned way = hot.directed_link % 2;
    lines.push_back({graph.name(link.ends[way]), graph.name(link.ends[1 - way]),
                     static_cast<double>(hot.busy.ps()) / time, hot.queue_byte_ps / time, hot.peak_queue_bytes.count(),
                     hot.p99_queue.count()});
  }
  return lines;
}

void advise_on_rings(const Experiment& experiment, Simulation& simulation, Time end,
                     std::vector<std::string>& warnings) {
  if (!simulation.has_fabric()) return;
  Time stopped, busy;
  for (const LinkClassCounters& link : simulation.fabric().results().class_counters(end))
    stopped = std::max(stopped, link.paused);
  for (const LinkCounters& link : simulation.network().link_counters()) busy = std::max(busy, link.busy_until(end));
  advise_on_rings(experiment, Time::from_ps(simulation.group().maximum(stopped.ps())),
                  Time::from_ps(simulation.group().maximum(busy.ps())), warnings);
}

Summary begin_summary(const CommandLine& line, const ProcessGroup& group, const Experiment& experiment,
                      const std::string& output) {
  Summary summary;
  summary.experiment = experiment.path;
  summary.engine = line.engine == EngineChoice::weft ? "weft" : "ns3-default";
  summary.seed = experiment.seed;
  summary.mpi_ranks = group.size();
  summary.output = output;
  summary.fidelity = experiment.network.fidelity;
  return summary;
}

// Runs, records and sums up; nothing if operations were left undone, which it has reported.
std::optional<Summary> simulate(const CommandLine& line, ProcessGroup& group, const Experiment& experiment,
                                const std::string& output, Hdf5Recorder& recorder) {
  Simulation simulation(experiment, group, line.engine);
  apply_ns3_attributes(experiment, simulation);
  recorder.write_manifest(make_manifest(line, experiment, simulation));
  PcapTaps taps;
  prepare(group, [&] {
    if (simulation.has_fabric()) taps = add_pcap_taps(experiment, output, simulation.fabric());
  });

  RunProgress progress(experiment, simulation, !line.quiet);
  Recording recording(recorder, experiment, simulation);
  simulation.set_on_pause([&](Time now) { recording.write_portion(now); });
  const auto look = [&](Time now) {
    progress.update(now);
    if (interrupted()) return Simulation::Look::stop;
    return recording.portion_due() ? Simulation::Look::pause : Simulation::Look::go_on;
  };
  const RunFacts facts = simulation.run(look);
  const bool ended = !facts.interrupted && !facts.cut_short;  // there was nothing more to do
  if (ended && simulation.unfinished_ranks() > 0) {
    report_unfinished(simulation, experiment);
    return std::nullopt;
  }
  if (!facts.interrupted) progress.finish();

  // Whatever a signal says from here on: the file is whole in a moment.
  const FileIsBeingWritten writing;
  Summary summary = begin_summary(line, group, experiment, output);
  summary.collective_count = experiment.workload->call_count();
  summary.collectives = reduce_collectives(group.communicator(), simulation.runtime().records().collectives,
                                           collective_directory(*experiment.workload));
  summary.fingerprint = recording.write_rest(facts);
  summary.call_groups = recording.shares().groups;
  summary.call_times = recording.shares().first_calls;
  summary.jobs = recording.job_rows();
  summary.job_shares = recording.job_shares();
  summary.transfers = recording.transfer_rows();
  recorder.finish(ended);
  prepare(group, [&] {
    for (const auto& tap : taps) tap->close();
  });
  summary.facts = facts;
  summary.operations = group.sum(simulation.runtime().operations_done());
  summary.complete = ended;
  summary.partition = simulation.partition();
  if (summary.partition.cut_links > 0) summary.partition.lookahead = simulation.network().lookahead();
  if (simulation.has_fabric()) summary.inner_epoch = simulation.fabric().inner_epoch();
  summary.warnings = advice(experiment, facts.congestion);
  advise_on_rings(experiment, simulation, facts.simulated, summary.warnings);
  if (ended) advise_on_transfers(summary.transfers, summary.warnings);
  if (recording.left_out() > 0)
    summary.warnings.push_back(
        fmt::format("the signal left no time to write the last {} rows of series: links are long against the intervals "
                    "of output.sampling or output.rates",
                    recording.left_out()));
  if (group.size() > 1) advise_on_portions(experiment, recording.portions(), summary.warnings);
  summary.hot_links = hot_links(experiment, simulation, facts);
  summary.memory_bytes = group.sum(simulation.network().memory_bytes());
  return summary;
}

// The same; if a signal arrives before there is anything to record, the file records only the interruption.
std::optional<Summary> simulate(const CommandLine& line, ProcessGroup& group, const Experiment& experiment,
                                const std::string& output) {
  Hdf5Recorder recorder(group.communicator(), output);
  try {
    return simulate(line, group, experiment, output, recorder);
  } catch (const Interrupted&) {
    // Others may be anywhere, and a file of all processes cannot be closed by one.
    if (group.size() > 1) end_interrupted();
    interruption_noticed();
    recorder.finish(false);
    Summary summary = begin_summary(line, group, experiment, output);
    summary.facts.interrupted = true;
    return summary;
  }
}

// Before hours are spent on a job that no such machine can hold.
void warn_of_memory(const Workload& workload) {
  const auto report = workload.report();
  if (report && !report->fits()) std::cerr << "weft: warning: " << report->verdict() << std::endl;
}

void add_throughput(const Workload& workload, Summary& summary) {
  if (summary.jobs.size() != 1 || !summary.jobs[0].complete || summary.jobs[0].time() == 0) return;
  if (const auto report = workload.report(); report && report->model_flops > 0)
    summary.throughput = throughput_of(*report, summary.jobs[0]);
}

}  // namespace

int run_command(const CommandLine& line, ProcessGroup& group) {
  Experiment experiment;
  std::string output;
  const auto beside = group.size() > 1 ? std::filesystem::path(line.output.empty() ? "." : line.output).parent_path()
                                       : std::filesystem::path();
  const TraceExperiment trace(group, line.experiment, group.size() > 1 && beside.empty() ? "." : beside.string());
  prepare(group, [&] {
    experiment = load_experiment(trace.experiment(), line.settings, reading_together(group));
    output = line.output.empty() ? experiment.output.file : line.output;
    refuse_output_over_input(output, line.experiment);
    if (line.engine == EngineChoice::ns3_default && group.size() > 1)
      throw InputError(SourceLine{}, fmt::format("--engine ns3-default runs on one MPI rank, found {}; leave "
                                                 "mpirun out or use --engine weft",
                                                 group.size()));
    if (experiment.network.fidelity != Fidelity::packet && (line.engine == EngineChoice::ns3_default || line.verify))
      throw InputError(
          experiment.network.fidelity_place,
          fmt::format("fidelity: {} has no events of packets for {}; use fidelity: packet, or leave "
                      "that option out",
                      to_text(experiment.network.fidelity), line.verify ? "--verify" : "--engine ns3-default"));
  });
  if (group.rank() == 0 && !line.quiet) warn_of_memory(*experiment.workload);
  remember_interrupts();  // before there is a file that would be left behind
  auto summary = simulate(line, group, experiment, output);
  if (!summary) return experiment.workload->from_user() ? exit_input : exit_bug;
  if (line.verify && !summary->facts.interrupted) {
    verify_against_reference(experiment, output, summary->fingerprint, group);
    summary->verified = true;
  }
  end_at_once_on_interrupts();
  if (group.rank() == 0) {
    add_throughput(*experiment.workload, *summary);
    if (line.json_summary)
      std::cout << summary_json(*summary) << std::endl;
    else if (!line.quiet)
      std::cout << summary_table(*summary) << std::flush;
  }
  // As a shell reports a process that a signal has ended.
  return summary->facts.interrupted ? exit_interrupted : exit_done;
}

}  // namespace weft
