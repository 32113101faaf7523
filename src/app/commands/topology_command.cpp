// SPDX-License-Identifier: GPL-2.0-only
// `weft topology`: facts, exports and pictures of a machine.
#include <fstream>
#include <iostream>
#include <sstream>

#include <fmt/format.h>

#include "app/analysis/topology_report.hpp"
#include "app/commands/commands.hpp"
#include "app/pictures/topology_picture.hpp"
#include "app/processes/prepare.hpp"
#include "graph/shapes/reduction_shape.hpp"
#include "graph/topology/graph_export.hpp"

namespace weft {
namespace {

/// The file is an experiment, or the content of its `topology:` map alone.
Topology load_topology(const CommandLine& line) {
  Spec spec = Spec::load(line.experiment);
  const bool experiment = spec.is_map() && spec.has("topology");
  if (!experiment && spec.is_map() && spec.has("experiment"))
    throw spec.at("experiment")
        .error("found a study, which `weft sweep` runs; expected an experiment, or its topology map");
  for (const auto& [key, value] : line.settings) spec.set(key, value);
  return build_topology(experiment ? spec.at("topology") : spec);
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (!file.flush()) throw EnvironmentError(fmt::format("cannot write {}", path));
}

std::string exported(const Topology& topology, const std::string& format) {
  std::ostringstream text;
  if (format == "graphml")
    write_graphml(topology, text);
  else if (format == "dot")
    write_dot(topology, text);
  else
    write_yaml(topology, text);
  return text.str();
}

}  // namespace

int topology_command(const CommandLine& line, ProcessGroup& group) {
  prepare(group, [&] {
    if (group.rank() != 0) return;
    const Topology topology = load_topology(line);
    const Topology& machine = machine_of(topology);
    if (!line.picture.empty()) write_file(line.picture, draw_topology(machine, line.picture));
    if (!line.export_format.empty()) {
      const std::string text = exported(machine, line.export_format);
      if (line.output.empty())
        std::cout << text;
      else
        write_file(line.output, text);
      if (!line.json_summary) return;
    }
    if (line.quiet) return;
    const TopologyReport report = report_topology(topology, line.processes, line.routing);
    std::cout << (line.json_summary ? to_json(report) : to_table(report));
  });
  return exit_done;
}

}  // namespace weft
