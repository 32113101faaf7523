// SPDX-License-Identifier: GPL-2.0-only
#include "support/documents/text_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "support/documents/spec.hpp"
#include "support/system/data_directory.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// " (did you mean 'a'?)" for the nearest name in a folder.
std::string nearest_in(const fs::path& folder, const fs::path& name) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? fs::path(".") : folder, ignored))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return did_you_mean(name.string(), names);
}

/// The path of a ready-made experiment, as seen from the working folder; empty without one.
std::string ready_made(const std::string& name) {
  std::error_code ignored;
  for (const char* folder : {"", "large", "studies"}) {
    for (const char* ending : {"", ".yaml"}) {
      const fs::path ready = data_directory("workloads") / folder / (name + ending);
      if (ready.extension() != ".yaml" || !fs::is_regular_file(ready, ignored)) continue;
      const fs::path near = fs::proximate(ready, ignored);
      return *near.begin() == ".." ? ready.string() : near.string();
    }
  }
  return "";
}

}  // namespace

std::string why_closed(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return "cannot open this file: it is a folder";
  errno = 0;
  if (std::ifstream(path, std::ios::binary)) return "";
  const int reason = errno;
  return fmt::format("cannot open this file: {}{}", std::strerror(reason),
                     reason == ENOENT ? hint_for_missing(path) : "");
}

std::string text_of_file(const std::string& path) {
  std::error_code ignored;
  std::ifstream stream(path, std::ios::binary);
  if (!stream || fs::is_directory(path, ignored)) throw InputError({path, 0}, why_closed(path));
  std::ostringstream text;
  text << stream.rdbuf();
  if (stream.bad()) throw InputError({path, 0}, "cannot read this file");
  return text.str();
}

std::string hint_for_missing(const fs::path& path) {
  std::error_code ignored;
  const fs::path beside(path.string() + ".yaml");
  if (fs::is_regular_file(beside, ignored)) return fmt::format(" (did you mean '{}'?)", beside.string());
  if (const std::string ready = ready_made(path.filename().string()); !ready.empty())
    return fmt::format(" (a ready-made one is '{}')", ready);
  const fs::path folder = path.parent_path();
  if (folder.empty() || fs::is_directory(folder, ignored)) return nearest_in(folder, path.filename());
  return fmt::format(", nor a folder '{}'{}", folder.string(), nearest_in(folder.parent_path(), folder.filename()));
}

}  // namespace weft
