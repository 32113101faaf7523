// SPDX-License-Identifier: GPL-2.0-only
#include "app/command_line/script_command.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "support/basics/error.hpp"
#include "support/system/data_directory.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

// Debian's, which sees Debian's packages, whatever else the path of a user finds first.
constexpr const char* interpreter = "/usr/bin/python3";

fs::path script_of(const std::string& name) { return data_directory("scripts") / "commands" / (name + ".py"); }

bool asks_for_help(int argc, char** argv) { return argc == 3 && std::strcmp(argv[1], "help") == 0; }

/// The command that the words name. `weft topology --hosts N` has no file: it is `weft propose`.
std::string script_named(int argc, char** argv) {
  if (asks_for_help(argc, argv)) return argv[2];
  const bool topology = std::strcmp(argv[1], "topology") == 0;
  const auto hosts = [](const char* word) { return std::string_view(word).starts_with("--hosts"); };
  return topology && std::any_of(argv + 2, argv + argc, hosts) ? "propose" : argv[1];
}

/// Whether mpirun has started this process as another than the first.
bool further_process() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"})
    if (const char* rank = std::getenv(variable); rank != nullptr) return std::strcmp(rank, "0") != 0;
  return false;
}

/// `weft export` of a workload, by its first word; that of results is a script.
bool exports_a_workload(int argc, char** argv) {
  if (argc < 3 || std::strcmp(argv[1], "export") != 0) return false;
  return std::strcmp(argv[2], "chakra") == 0 || std::strcmp(argv[2], "goal") == 0;
}

}  // namespace

std::vector<std::string> script_commands() {
  std::vector<std::string> names;
  std::error_code none;
  for (const fs::directory_entry& file : fs::directory_iterator(data_directory("scripts") / "commands", none))
    if (file.path().extension() == ".py") names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string script_commands_help() {
  std::string text;
  for (const std::string& name : script_commands()) {
    std::ifstream file(script_of(name));
    const std::string start = "# weft " + name;
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with(start)) continue;
      text += fmt::format("  {}\n", line.substr(2));
      break;
    }
  }
  return text;
}

void become_script(int argc, char** argv) {
  if (argc < 2 || exports_a_workload(argc, argv)) return;
  const std::vector<std::string> names = script_commands();
  const std::string name = script_named(argc, argv);
  if (std::find(names.begin(), names.end(), name) == names.end()) return;
  if (further_process()) std::_Exit(exit_done);
  std::error_code none;
  setenv("WEFT_PROGRAM", fs::read_symlink("/proc/self/exe", none).c_str(), 1);  // proc(5)
  const std::string script = script_of(name).string();
  // -B: nothing is written beside the scripts, which may be installed for all.
  std::vector<const char*> words = {interpreter, "-B", script.c_str()};
  if (asks_for_help(argc, argv))
    words.push_back("--help");
  else
    words.insert(words.end(), argv + 2, argv + argc);
  words.push_back(nullptr);
  execv(interpreter, const_cast<char* const*>(words.data()));
  throw EnvironmentError(fmt::format("`weft {}` is a script for {}, which cannot be started: {}", name, interpreter,
                                     std::strerror(errno)));
}

}  // namespace weft
