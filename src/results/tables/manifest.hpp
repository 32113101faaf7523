// SPDX-License-Identifier: GPL-2.0-only
// What a result file says about its own origin.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// Named facts in the order in which they are to be read. Numbers carry their unit in the text ("124 M parameters").
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Where a result came from. Process 0's values count.
struct Manifest {
  // The same for any number of MPI ranks: attributes and data sets of /manifest.
  std::string version;
  std::string git_revision;
  std::string experiment_file;  ///< as named on the command line
  std::string experiment_text;  ///< verbatim
  std::uint64_t seed = 0;
  Facts model;  ///< what was simulated: topology, workload, ... (/manifest/model)

  // Facts of this very run, left out of comparisons: /manifest/run.
  std::string command_line;
  std::string effective_experiment;  ///< YAML after --set and the like (the partition among them)
  std::string host;
  std::string date;
  std::string engine;
  Facts partition;
};

}  // namespace weft
