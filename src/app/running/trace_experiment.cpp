// SPDX-License-Identifier: GPL-2.0-only
#include "app/running/trace_experiment.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include "app/processes/prepare.hpp"
#include "support/basics/error.hpp"
#include "support/system/interrupt.hpp"
#include "support/system/python.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr int not_recognised = 4;  // of scripts/importing/command.py, with --for-run
constexpr const char* experiment_name = "experiment.yaml";

/// A key of an experiment at the beginning of a line, as in YAML or JSON.
bool has_keys_of_experiment(const std::string& path) {
  constexpr std::size_t few = 1 << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text(few, '\0');
  file.read(text.data(), few);
  text.resize(static_cast<std::size_t>(file.gcount()));
  for (const char* key : {"topology", "workload"})
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
      const std::size_t end = text.find_first_not_of("\"' \t", at + std::strlen(key));
      const std::size_t before = text.find_last_not_of("\"' \t", at == 0 ? 0 : at - 1);
      const bool begins = at == 0 || before == std::string::npos || std::strchr("\n\r{,", text[before]) != nullptr;
      if (begins && end != std::string::npos && text[end] == ':') return true;
    }
  return false;
}

/// Whether there are files whose names continue `path` with a dot.
bool is_prefix(const fs::path& path) {
  const std::string start = path.filename().string() + ".";
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
    if (entry.path().filename().string().starts_with(start)) return true;
  return false;
}

/// The exit code of `weft import auto PATH -o EXPERIMENT`.
int run_importer(const std::string& path, const std::string& experiment) {
  const int code = run_script("commands/import.py", {"auto", path, "-o", experiment, "--quiet", "--for-run"});
  return code >= 0 ? code : exit_environment;
}

std::string new_folder(const std::string& within) {
  std::error_code none;
  const fs::path parent = within.empty() ? fs::temp_directory_path(none) : fs::path(within);
  std::string name = (parent / ".weft-import-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw EnvironmentError(fmt::format("cannot write into '{}': {}", parent.string(), std::strerror(errno)));
  return name;
}

/// Collective: the text of the first process.
std::string of_first(ProcessGroup& group, std::string text) {
  if (group.size() == 1) return text;
  std::uint64_t length = text.size();
  MPI_Bcast(&length, 1, MPI_UINT64_T, 0, group.communicator());
  text.resize(length);
  MPI_Bcast(text.data(), static_cast<int>(length), MPI_CHAR, 0, group.communicator());
  return text;
}

}  // namespace

bool may_be_trace(const std::string& path) {
  std::error_code none;
  const fs::file_status status = fs::status(path, none);
  if (fs::is_directory(status)) return true;
  if (!fs::exists(status)) return is_prefix(path);
  if (!fs::is_regular_file(status) || path.ends_with(".yaml") || path.ends_with(".yml")) return false;
  return fs::file_size(path, none) > 0 && !has_keys_of_experiment(path);
}

TraceExperiment::TraceExperiment(ProcessGroup& group, const std::string& path, const std::string& folder)
    : experiment_{path, path} {
  std::string made;
  int code = exit_done;
  prepare(group, [&] {
    if (group.rank() != 0 || !may_be_trace(path)) return;
    folder_ = new_folder(folder);
    remove_on_interrupt(folder_.c_str());
    code = run_importer(path, (fs::path(folder_) / experiment_name).string());
    if (code == exit_done) made = (fs::path(folder_) / experiment_name).string();
  });
  code = static_cast<int>(group.maximum(code));
  if (code != exit_done && code != not_recognised) {
    remove_interrupted_folder();
    throw AgreedFailure{code, ""};
  }
  made = of_first(group, made);
  if (!made.empty()) experiment_.file = made;
}

TraceExperiment::~TraceExperiment() {
  if (!folder_.empty()) remove_interrupted_folder();
}

}  // namespace weft
