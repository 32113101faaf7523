// SPDX-License-Identifier: GPL-2.0-only
// The words after `weft`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/running/simulation.hpp"

namespace weft {

/// A parsed command line.
struct CommandLine {
  /// run, describe, workload, export, topology, collective, perf, goodput, list, bench, serve, help, version
  std::string command;
  std::string text;     ///< as typed, for the manifest
  std::string help_of;  ///< help: one command in C++, or empty for all
  std::string experiment;
  std::vector<std::pair<std::string, std::string>> settings;  ///< --set and --seed
  std::string output;                                         ///< -o, or empty
  EngineChoice engine = EngineChoice::weft;
  bool json_summary = false;
  bool quiet = false;
  bool verify = false;               ///< run --verify
  std::vector<std::uint32_t> ranks;  ///< workload --ranks
  bool kernels = false;              ///< describe --kernels
  bool no_run = false;               ///< workload --no-run
  std::string timeline;              ///< workload --timeline, or empty
  std::string export_to;             ///< workload --export chakra:PREFIX: PREFIX, or empty
  std::string export_as;             ///< export: chakra or goal
  bool steps = false;                ///< export --steps
  std::string dump;                  ///< workload --dump, or empty
  std::string list_what;             ///< topologies, collectives, ... or empty for all
  std::string json_file;             ///< bench --json
  std::vector<std::string> words;    ///< collective, perf, goodput: what they read themselves; serve: its folder
  bool quick = false;                ///< bench --quick
  std::string export_format;         ///< topology --export, or empty
  std::string routing;               ///< topology --routing, or empty
  std::string picture;               ///< topology --picture, or empty
  std::vector<std::uint32_t> processes = {2, 4, 8};  ///< topology --processes
};

/// Throws InputError (without a file) that says what would be right.
CommandLine parse_command_line(int argc, const char* const* argv);

/// Throws InputError if a file that is to be written is the one that is read, also by another name or through a link.
void refuse_output_over_input(const std::string& output, const std::string& input);

}  // namespace weft
