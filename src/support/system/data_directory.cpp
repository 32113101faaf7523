// SPDX-License-Identifier: GPL-2.0-only
#include "support/system/data_directory.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

fs::path find_data() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);  // proc(5)
  const fs::path installed = program.parent_path().parent_path() / "share" / "weft";
  return !program.empty() && fs::is_directory(installed, ignored) ? installed : fs::path(WEFT_SOURCE_DIRECTORY);
}

}  // namespace

fs::path data_directory(const std::string& room) {
  static const fs::path data = find_data();
  return data / room;
}

}  // namespace weft
