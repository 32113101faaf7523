// SPDX-License-Identifier: GPL-2.0-only
// The files of a trace that has one for each rank.
#include "workloads/chakra/trace_files.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "support/documents/text_file.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

struct RankFileNames {
  std::string before, after;
  std::string of(std::uint64_t rank) const { return before + std::to_string(rank) + after; }
  /// The rank in such a name, or -1.
  std::int64_t rank_of(const std::string& path) const {
    if (path.size() <= before.size() + after.size() || !path.starts_with(before) || !path.ends_with(after)) return -1;
    const std::string digits = path.substr(before.size(), path.size() - before.size() - after.size());
    constexpr std::size_t max_digits = 9;
    if (digits.size() > max_digits || digits.find_first_not_of("0123456789") != std::string::npos) return -1;
    return std::stoll(digits);
  }
};

bool is_trace_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

RankFileNames names_of(const Spec& value, const std::string& directory, const std::vector<std::string>& endings) {
  static const std::string hole = "{rank}";
  const std::string path = (fs::path(directory) / value.text()).string();
  if (const std::size_t at = path.rfind(hole); at != std::string::npos)
    return {path.substr(0, at), path.substr(at + hole.size())};
  for (const std::string& ending : endings)
    if (is_trace_file(path + ".0" + ending)) return {path + ".", ending};
  return {path + ".", endings.front()};
}

}  // namespace

std::vector<std::string> trace_files_of_ranks(const Spec& value, const std::string& directory,
                                              const std::vector<std::string>& endings) {
  const RankFileNames names = names_of(value, directory, endings);
  std::vector<std::string> files;
  while (is_trace_file(names.of(files.size()))) files.push_back(names.of(files.size()));
  std::int64_t last = -1;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::path(names.before).parent_path(), ignored))
    last = std::max(last, names.rank_of(entry.path().string()));
  if (last >= static_cast<std::int64_t>(files.size()))
    throw value.error(fmt::format("there is a file '{}' and no '{}'; ranks are 0, 1, ... without gaps",
                                  names.of(static_cast<std::uint64_t>(last)), names.of(files.size())));
  if (files.empty())
    throw value.error(
        fmt::format("there is no file '{}'; the name of a trace is what stands before '.0{}', or has "
                    "{{rank}} where the number stands{}",
                    names.of(0), endings.front(), hint_for_missing(names.of(0))));
  return files;
}

}  // namespace weft
