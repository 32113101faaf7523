// SPDX-License-Identifier: GPL-2.0-only
// `weft list`: the names that an experiment can use.
#include <iostream>

#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "fabric/buffer_sharing/buffer_sharing.hpp"
#include "fabric/load_balancing/load_balancing.hpp"
#include "fabric/marking/queue_marking.hpp"
#include "fabric/scheduling/port_scheduler.hpp"
#include "graph/topology/topology_builder.hpp"
#include "internet/background.hpp"
#include "routing/algorithm/routing_algorithm.hpp"
#include "schedule/collective/collective.hpp"
#include "schedule/collective/selection.hpp"
#include "schedule/program/workload.hpp"
#include "transport/congestion_control/congestion_control.hpp"

namespace weft {
namespace {

template <class Interface>
void print(const std::string& title) {
  std::cout << title << '\n';
  for (const auto& [name, entry] : Registry<Interface>::instance().entries())
    std::cout << fmt::format("  {:<26} {}\n", name, entry.summary);
}

// Selections: those in code, and tables of files.
void print_selections() {
  print<CollectiveSelector>("selections (workload.algorithm)");
  for (const std::string& name : algorithm_names())
    if (SelectorRegistry::instance().find(name) == nullptr && CollectiveRegistry::instance().find(name) == nullptr)
      std::cout << fmt::format("  {:<26} the table collectives/selections/{}.yaml\n", name, name);
}

// Traffic beside the workload that RDMA carries: jobs of `workload.jobs` with `background: true`.
void print_background_jobs() {
  std::cout << "jobs with background: true (workload.jobs)\n";
  const std::pair<const char*, const char*> jobs[] = {
      {"training", "a second job: this or any other kind of workload, until all else has ended"},
      {"on_off",
       "traffic that is on and off by turns: start: {process: on_off, on, off, load or interval, [law, shape]}"},
      {"periodic",
       "traffic at intervals, with pattern: incast bursts of many to one: start: {process: periodic, interval}"},
      {"poisson", "traffic at random: start: {process: poisson, load or interval}"}};
  for (const auto& [name, summary] : jobs) std::cout << fmt::format("  {:<26} {}\n", name, summary);
}

}  // namespace

int list_command(const CommandLine& line, ProcessGroup& group) {
  if (group.rank() != 0) return exit_done;
  const auto wanted = [&line](const char* what) { return line.list_what.empty() || line.list_what == what; };
  if (wanted("topologies")) print<TopologyBuilder>("topologies (topology.kind)");
  if (wanted("topologies")) print<TopologyExtension>("keys of any topology");
  if (wanted("collectives")) print<CollectiveAlgorithm>("collectives (workload.algorithm)");
  if (wanted("collectives")) print_selections();
  if (wanted("workloads")) print<WorkloadReader>("workloads (workload.kind)");
  if (wanted("congestion-controls")) print<CongestionControlKind>("congestion-controls (network.congestion_control)");
  if (wanted("routing")) print<RoutingAlgorithm>("routing (network.routing)");
  if (wanted("marking")) print<MarkingDiscipline>("marking (network.ecn.algorithm)");
  if (wanted("scheduling"))
    print<SchedulingDiscipline>("scheduling (network.priorities.scheduling; or fifo: one queue)");
  if (wanted("buffer-sharing")) print<BufferSharing>("buffer-sharing (network.buffer.sharing)");
  if (wanted("load-balancing")) print<LoadBalancing>("load-balancing (network.load_balancing)");
  if (wanted("background")) print<BackgroundKind>("background (background.kind)");
  if (wanted("background")) print_background_jobs();
  return exit_done;
}

}  // namespace weft
