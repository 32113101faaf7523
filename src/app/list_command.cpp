// SPDX-License-Identifier: GPL-2.0-only
// `weft list`: what can be named in an experiment.
#include <iostream>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "graph/topology_builder.hpp"
#include "routing/routing_algorithm.hpp"
#include "schedule/collective.hpp"
#include "schedule/selection.hpp"
#include "schedule/workload.hpp"
#include "transport/congestion_control.hpp"

namespace weft {
namespace {

template <class Interface>
void print(const std::string& title) {
  std::cout << title << '\n';
  for (const auto& [name, entry] : Registry<Interface>::instance().entries())
    std::cout << fmt::format("  {:<18} {}\n", name, entry.summary);
}

// Selections: those in code, and tables of files.
void print_selections() {
  print<CollectiveSelector>("selections (workload.algorithm)");
  for (const std::string& name : algorithm_names())
    if (SelectorRegistry::instance().find(name) == nullptr && CollectiveRegistry::instance().find(name) == nullptr)
      std::cout << fmt::format("  {:<18} the table collectives/selections/{}.yaml\n", name, name);
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
  return exit_done;
}

}  // namespace weft
