// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/export/draft_file.hpp"

#include <filesystem>
#include <system_error>

#include "support/basics/error.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// Of a symbolic link the file that it names, so that the link stays.
std::string target_of(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) ? fs::canonical(path, ignored).string() : path;
}

bool is_regular_or_absent(const std::string& path) {
  std::error_code ignored;
  return !fs::exists(path, ignored) || fs::is_regular_file(path, ignored);
}

}  // namespace

DraftFile::DraftFile(const std::string& path)
    : path_(target_of(path)),
      draft_(is_regular_or_absent(path_) ? path_ + ".partial" : path_),
      file_(draft_, std::ios::binary) {}

DraftFile::~DraftFile() {
  std::error_code ignored;
  if (!named_ && draft_ != path_) fs::remove(draft_, ignored);
}

void DraftFile::close() {
  file_.close();
  if (!file_) throw EnvironmentError("cannot write '" + path_ + "'");
}

void DraftFile::take_name() {
  std::error_code failure;
  if (draft_ != path_) fs::rename(draft_, path_, failure);
  if (failure) throw EnvironmentError("cannot write '" + path_ + "': " + failure.message());
  named_ = true;
}

}  // namespace weft
