// SPDX-License-Identifier: GPL-2.0-only
// `weft run`: simulate, record, summarise.
#include <ctime>
#include <iostream>
#include <span>

#include <fmt/format.h>
#include <unistd.h>

#include "app/commands.hpp"
#include "app/interrupt.hpp"
#include "app/prepare.hpp"
#include "app/summary.hpp"
#include "app/version.hpp"
#include "fabric/ns3_attributes.hpp"
#include "fabric/ns3_view.hpp"
#include "fabric/pcap_tap.hpp"
#include "results/fingerprint.hpp"
#include "results/hdf5_recorder.hpp"
#include "support/progress.hpp"
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
                    {"hosts", std::to_string(graph.host_count())},
                    {"switches", std::to_string(graph.switch_count())},
                    {"links", std::to_string(graph.link_count())},
                    {"routing", experiment.routing_name},
                    {"ranks", std::to_string(experiment.workload->ranks())}};
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
                        {"lookahead", partition.cut_links > 0 ? to_text(simulation.fabric().lookahead()) : "none"}};
  return manifest;
}

std::vector<CollectiveInfo> collective_infos(const Workload& workload) {
  std::vector<CollectiveInfo> infos;
  for (const CollectiveCall& call : workload.calls())
    infos.push_back({call.id, std::string(to_text(call.kind)), call.algorithm, call.label, call.communicator->size(),
                     call.size.count(), bus_bandwidth_factor(call.kind, call.communicator->size())});
  return infos;
}

std::vector<LinkRecord> link_records(const Experiment& experiment, const Fabric& fabric, Time simulated) {
  const Topology& topology = *experiment.topology;
  std::vector<LinkRecord> rows;
  for (const LinkCounters& counters : fabric.link_counters()) {
    const LinkId link(counters.directed_link / 2);
    LinkRecord row;
    row.id = counters.directed_link;
    row.from = counters.from.value();
    row.to = counters.to.value();
    row.from_port = counters.from_port;
    row.rate = counters.times.rate.bps();
    row.delay = counters.times.delay.ps();
    row.bytes = counters.bytes;
    row.payload_bytes = counters.payload_bytes;
    row.packets = counters.packets;
    row.data_packets = counters.data_packets;
    row.busy = counters.busy_ps;
    row.peak_queue = counters.peak_queue_bytes;
    row.mean_queue = simulated > Time() ? counters.queue_byte_ps / static_cast<double>(simulated.ps()) : 0;
    row.from_name = topology.graph.name(counters.from);
    row.to_name = topology.graph.name(counters.to);
    row.link_class = topology.link_classes[topology.link_class[link.value()]];
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<LinkSample> link_samples(Fabric& fabric, Time end, Time interval) {
  std::vector<LinkSample> rows;
  for (const PortSample& sample : fabric.take_samples(end))
    rows.push_back({sample.directed_link, sample.interval, (sample.interval + 1) * interval.ps(), sample.busy_ps,
                    sample.queue_bytes});
  return rows;
}

template <class Row>
std::uint64_t sum_of(const std::vector<Row>& rows) {
  return fingerprint_sum(std::span<const Row>(rows));
}

// Writes every table and gives the run's fingerprint.
std::uint64_t record(Hdf5Recorder& recorder, const Experiment& experiment, Simulation& simulation,
                     const RunFacts& facts) {
  RunRecords& records = simulation.runtime().records();
  auto links = link_records(experiment, simulation.fabric(), facts.simulated);
  auto ranks = simulation.runtime().rank_records(facts.simulated);
  const Time interval = experiment.output.sampling;
  auto samples = link_samples(simulation.fabric(), facts.simulated, interval);
  const std::uint64_t fingerprint =
      simulation.group().sum(sum_of(records.messages) + sum_of(records.collectives) + sum_of(links) + sum_of(ranks));
  recorder.write_outcome(facts.simulated.ps(), fingerprint);
  recorder.write_messages(std::move(records.messages));
  recorder.write_collectives(records.collectives, collective_infos(*experiment.workload));
  recorder.write_links(std::move(links));
  if (interval > Time()) recorder.write_link_series(std::move(samples), interval.ps());
  recorder.write_ranks(std::move(ranks));
  if (records.keep_operations) recorder.write_operations(std::move(records.operations));
  recorder.write_run_quantity("wall_seconds", facts.wall_seconds, "s");
  recorder.write_run_quantity("build_seconds", facts.build_seconds, "s");
  recorder.write_run_quantity("events", static_cast<double>(facts.events), "1");
  recorder.write_run_quantity("windows", static_cast<double>(facts.windows), "1");
  return fingerprint;
}

using PcapTaps = std::vector<std::shared_ptr<PcapTap>>;

// Of the ports that this process owns.
PcapTaps add_pcap_taps(const Experiment& experiment, const std::string& output, Fabric& fabric) {
  PcapTaps taps;
  for (const PortName& name : experiment.output.pcap) {
    if (!fabric.owns(name.node)) continue;
    std::string file = output.ends_with(".h5") ? output.substr(0, output.size() - 3) : output;
    std::string port = name.text;
    port[port.find(':')] = '-';
    taps.push_back(std::make_shared<PcapTap>(file + "." + port + ".pcap", fabric.parameters()));
    fabric.add_tap(name.node, name.port, taps.back());
  }
  return taps;
}

// One after another and known to all processes before the next, so that the last one wins also where they overlap.
void apply_ns3_attributes(const Experiment& experiment, Simulation& simulation) {
  if (experiment.ns3_attributes.empty()) return;
  ProcessGroup& group = simulation.group();
  const Ns3View view(simulation.fabric(), *experiment.topology);
  for (const auto& attribute : experiment.ns3_attributes) {
    std::size_t objects = 0;
    prepare(group, [&] { objects = set_ns3_attribute(attribute.first, attribute.second); });
    const bool none = group.sum(objects) == 0;
    prepare(group, [&] {
      if (!none) return;
      throw attribute.second.error(fmt::format(
          "nothing has the ns-3 config path '{}'; this machine has {} hosts and {} switches, whose ports are such as "
          "/Names/host0/DeviceList/0 and /Names/switch0/DeviceList/1, and its links such as "
          "/Names/host0/DeviceList/0/Channel",
          attribute.first, experiment.topology->graph.host_count(), experiment.topology->graph.switch_count()));
    });
    simulation.fabric().settle_links(group);
  }
}

// Says which operations wait for what. Process by process, so that lines are in rank order and few.
void report_unfinished(Simulation& simulation, const Experiment& experiment) {
  constexpr std::size_t most = 12;
  std::string text;
  for (const std::string& line : simulation.runtime().waiting(most)) text += "  " + line + "\n";
  ProcessGroup& group = simulation.group();
  const auto all = gather_text(group, text);
  if (group.rank() != 0) return;
  std::cerr << fmt::format(
      "weft: {}: the run came to a halt with unfinished operations; every message that was sent has been delivered\n",
      experiment.path);
  std::size_t shown = 0;
  for (const std::string& part : all) {
    for (std::size_t at = 0; at < part.size() && shown < most; ++shown) {
      const auto end = part.find('\n', at);
      std::cerr << part.substr(at, end - at) << '\n';
      at = end + 1;
    }
  }
}

}  // namespace

int run_command(const CommandLine& line, ProcessGroup& group) {
  Experiment experiment;
  std::string output;
  prepare(group, [&] {
    experiment = load_experiment(line.experiment, line.settings);
    output = line.output.empty() ? experiment.output.file : line.output;
    if (line.engine == EngineChoice::ns3_default && group.size() > 1)
      throw InputError(SourceLine{"weft", 0}, fmt::format("--engine ns3-default runs on one MPI rank, found {}; leave "
                                                          "mpirun out or use --engine weft",
                                                          group.size()));
  });
  catch_interrupts();  // before there is a file that would be left behind
  Hdf5Recorder recorder(group.communicator(), output);
  Simulation simulation(experiment, group, line.engine);
  apply_ns3_attributes(experiment, simulation);
  recorder.write_manifest(make_manifest(line, experiment, simulation));
  PcapTaps taps;
  prepare(group, [&] { taps = add_pcap_taps(experiment, output, simulation.fabric()); });

  const WorkloadEstimate estimate = experiment.workload->estimate();
  Progress progress(group.rank() == 0 && !line.quiet);
  const auto look = [&](Time now) {
    if (group.rank() == 0 && !line.quiet) {
      const double share = static_cast<double>(simulation.fabric().hosts().size()) /
                           static_cast<double>(experiment.topology->graph.host_count());
      const double due = std::max(1.0, static_cast<double>(estimate.bytes.count()) * share);
      progress.update(std::min(1.0, static_cast<double>(simulation.runtime().bytes_delivered()) / due),
                      fmt::format("{:.3f} ms simulated", now.seconds() * 1e3));
    }
    return interrupted();
  };
  const RunFacts facts = simulation.run(look);
  if (!facts.interrupted && simulation.unfinished_ranks() > 0) {
    report_unfinished(simulation, experiment);
    return experiment.workload->from_user() ? exit_input : exit_bug;
  }
  if (!facts.interrupted) progress.finish();

  Summary summary;
  summary.collective_count = experiment.workload->calls().size();
  summary.collectives = reduce_collectives(group.communicator(), simulation.runtime().records().collectives,
                                           collective_infos(*experiment.workload));
  summary.fingerprint = record(recorder, experiment, simulation, facts);
  recorder.finish(!facts.interrupted);
  prepare(group, [&] {
    for (const auto& tap : taps) tap->close();
  });
  summary.experiment = experiment.path;
  summary.engine = line.engine == EngineChoice::weft ? "weft" : "ns3-default";
  summary.seed = experiment.seed;
  summary.mpi_ranks = group.size();
  summary.facts = facts;
  summary.complete = !facts.interrupted;
  summary.output = output;
  summary.partition = simulation.partition();
  if (summary.partition.cut_links > 0) summary.partition.lookahead = simulation.fabric().lookahead();
  summary.inner_window = simulation.fabric().inner_window();
  summary.memory_bytes = group.sum(simulation.fabric().memory_bytes());
  if (group.rank() == 0) {
    if (line.json_summary)
      std::cout << summary_json(summary) << std::endl;
    else if (!line.quiet)
      std::cout << summary_table(summary) << std::flush;
  }
  // As a shell reports a process that a signal has ended.
  return facts.interrupted ? 130 : exit_done;
}

}  // namespace weft
