// SPDX-License-Identifier: GPL-2.0-only
// `weft export chakra|goal`: the operations of an experiment as a trace for other simulators.
#include <iostream>

#include <fmt/format.h>

#include "app/command_line/option_parsing.hpp"
#include "app/commands/commands.hpp"
#include "app/processes/prepare.hpp"
#include "app/running/trace_experiment.hpp"
#include "schedule/export/chakra_export.hpp"
#include "schedule/export/goal_export.hpp"

namespace weft {
namespace {

/// Their programs do not end by themselves.
void refuse_endless(const Experiment& experiment) {
  for (const JobInfo& job : experiment.workload->jobs())
    if (job.background)
      throw InputError(SourceLine{experiment.path, 0},
                       fmt::format("the job '{}' runs in the background until others end; leave it out", job.name));
}

std::string write_trace(const CommandLine& line, const Experiment& experiment) {
  const Workload& workload = *experiment.workload;
  if (line.export_as == "goal") {
    const GoalCounts counts = export_goal(workload, {line.export_to, experiment.path, line.steps});
    return fmt::format("{}: {} ranks, {} operations: calc {}, send {}, recv {}\n", line.export_to, workload.ranks(),
                       counts.calcs + counts.sends + counts.recvs, counts.calcs, counts.sends, counts.recvs);
  }
  export_chakra(workload, line.export_to, experiment.path);
  return fmt::format("{0}.0.et to {0}.{1}.et: {2} ranks\n", line.export_to, workload.ranks() - 1, workload.ranks());
}

}  // namespace

int export_command(const CommandLine& line, ProcessGroup& group) {
  const TraceExperiment trace(group, line.experiment, group.size() > 1 ? "." : "");
  prepare(group, [&] {
    if (group.size() > 1)
      refuse(fmt::format("`weft export` runs on one MPI rank, found {}; leave mpirun out", group.size()));
    const Experiment experiment = load_experiment(trace.experiment(), line.settings);
    refuse_endless(experiment);
    const std::string report = write_trace(line, experiment);
    if (!line.quiet) std::cout << report << std::flush;
  });
  return exit_done;
}

}  // namespace weft
