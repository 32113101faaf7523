// SPDX-License-Identifier: GPL-2.0-only
// `weft workload`: FLOPs, bytes and memory of a job, and the time of a step without congestion.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "app/analysis/timeline_trace.hpp"
#include "app/analysis/workload_summary.hpp"
#include "app/command_line/option_parsing.hpp"
#include "app/commands/commands.hpp"
#include "app/processes/prepare.hpp"
#include "schedule/export/chakra_export.hpp"
#include "schedule/program/configuration.hpp"
#include "schedule/program/program_dump.hpp"

namespace weft {
namespace {

/// The ranks to show: the requested ones, else the first of each kind if they are few.
std::vector<std::uint32_t> shown_ranks(const CommandLine& line, const Workload& workload) {
  constexpr std::uint32_t max = 64;
  std::vector<std::uint32_t> ranks = line.ranks;
  for (const std::uint32_t rank : ranks)
    if (rank >= workload.ranks())
      refuse(fmt::format("--ranks found {}; ranks 0 to {} are there", rank, workload.ranks() - 1));
  if (ranks.empty())
    for (std::uint32_t k = 0; k < std::min(max, workload.kind_count()); ++k)
      ranks.push_back(workload.first_of_kind(k).value());
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

/// The requested ranks; else all if they are few, or those that represent all.
std::vector<std::uint32_t> ranks_of_timeline(const CommandLine& line, const IdealSchedule& schedule,
                                             const WorkloadSummary& summary) {
  constexpr std::uint32_t max = 64;
  if (!line.ranks.empty() || !schedule.all_ranks || schedule.ranks.size() > max) return summary.ranks;
  std::vector<std::uint32_t> ranks;
  for (const ScheduledRank& rank : schedule.ranks) ranks.push_back(rank.rank);
  return ranks;
}

Spec with_settings(Spec spec, const CommandLine& line) {
  for (const auto& [key, value] : line.settings) spec.set(key, value);
  return spec;
}

/// Whether the file configures another program: such files are no traces.
bool is_configuration(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (std::filesystem::is_regular_file(path)) text << file.rdbuf();
  for (const auto& [name, entry] : ConfigurationRegistry::instance().entries())
    if (file && entry.make()->recognises(path, text.str())) return true;
  return false;
}

/// The experiment file, or that of another program's configuration, with the settings of the command line.
Spec open_document(const CommandLine& line, const ExperimentFile& experiment) {
  if (experiment.file != line.experiment) return with_settings(Spec::load(experiment.file), line);
  std::ifstream file(line.experiment);
  std::ostringstream text;
  text << file.rdbuf();
  std::optional<Spec> spec;
  for (const auto& [name, entry] : ConfigurationRegistry::instance().entries()) {
    const auto reader = entry.make();
    if (!file || spec || !reader->recognises(line.experiment, text.str())) continue;
    spec = Spec::parse(reader->experiment(line.experiment), line.experiment + " (" + name + ")");
  }
  return with_settings(spec ? *spec : Spec::load(line.experiment), line);
}

/// The experiment on the ideal network; its keys for results do not matter here.
Experiment load_for_schedule(const CommandLine& line, const ExperimentFile& file) {
  Spec spec = open_document(line, file);
  spec.set("network.fidelity", "ideal");
  spec.set("output", "{messages: none}");
  const auto parent = std::filesystem::path(file.file).parent_path();
  return read_experiment(spec, line.experiment, parent.empty() ? "." : parent.string());
}

/// Their programs do not end by themselves.
void refuse_background(const Experiment& experiment) {
  for (const JobInfo& job : experiment.workload->jobs())
    if (job.background)
      throw InputError(SourceLine{experiment.path, 0},
                       fmt::format("the job '{}' runs in the background until others end, so that there is nothing to "
                                   "count; leave it out, or see `weft run`",
                                   job.name));
}

std::uint64_t operations_of_all(const Workload& workload, const ProgramCounts& counts) {
  std::uint64_t sum = 0;
  for (std::uint32_t k = 0; k < workload.kind_count(); ++k) sum += counts.operations[k] * workload.ranks_of_kind(k);
  return sum;
}

/// The experiment with its workload written out.
void write_dump(const CommandLine& line, const ExperimentFile& from, const Experiment& experiment) {
  const std::string mark = "__written_out_below__";
  Spec spec = open_document(line, from);
  if (const auto noise = spec.at("workload").is_map() ? spec.at("workload").find("compute_noise") : std::nullopt)
    throw noise->error(
        "times that are drawn when an operation starts cannot be written out; --dump needs a workload "
        "without noise");
  spec.set("workload", mark);
  std::string text = spec.dump();
  text.replace(text.find(mark), mark.size(), dump_program(*experiment.workload, experiment.placement, experiment.path));
  std::ofstream file(line.dump);
  file << text;
  if (!text.ends_with('\n')) file << '\n';
  file.close();
  if (!file) throw EnvironmentError("cannot write '" + line.dump + "'");
}

}  // namespace

int workload_command(const CommandLine& line, ProcessGroup& group) {
  Experiment experiment;
  WorkloadSummary summary;
  std::optional<TraceExperiment> trace;
  if (!is_configuration(line.experiment)) trace.emplace(group, line.experiment, group.size() > 1 ? "." : "");
  const ExperimentFile file = trace ? trace->experiment() : ExperimentFile{line.experiment, line.experiment};
  prepare(group, [&] {
    if (group.size() > 1)
      refuse(fmt::format("`weft workload` runs on one MPI rank, found {}; leave mpirun out", group.size()));
    experiment = load_for_schedule(line, file);
    refuse_background(experiment);
    summary.experiment = &experiment;
    summary.report = experiment.workload->report();
    summary.ranks = shown_ranks(line, *experiment.workload);
    summary.counts = count_programs(*experiment.workload);
  });
  prepare(group, [&] {
    if (!line.dump.empty()) write_dump(line, file, experiment);
    if (!line.export_to.empty()) export_chakra(*experiment.workload, line.export_to, experiment.path);
  });
  IdealSchedule schedule;
  prepare(group, [&] {
    if (line.no_run) return;
    schedule = make_ideal_schedule(experiment, group, operations_of_all(*experiment.workload, summary.counts),
                                   summary.ranks, line.quiet);
    summary.schedule = &schedule;
    if (!line.timeline.empty())
      write_timeline(line.timeline, *experiment.workload, schedule, ranks_of_timeline(line, schedule, summary));
  });
  if (!line.quiet) std::cout << (line.json_summary ? workload_json(summary) : workload_text(summary)) << std::flush;
  return exit_done;
}

}  // namespace weft
