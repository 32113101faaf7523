// SPDX-License-Identifier: GPL-2.0-only
// A file that takes its name when it is whole.
#pragma once

#include <fstream>
#include <string>

namespace weft {

/// Written as PATH.partial until take_name(): an older file of the name stays until then, and nothing remains of a file
/// that is not finished. A pipe or a device is written as it is.
class DraftFile {
 public:
  explicit DraftFile(const std::string& path);
  DraftFile(const DraftFile&) = delete;
  DraftFile& operator=(const DraftFile&) = delete;
  ~DraftFile();
  std::ostream& stream() { return file_; }
  /// Throws EnvironmentError if not all could be written.
  void close();
  void take_name();

 private:
  std::string path_;
  std::string draft_;
  std::ofstream file_;
  bool named_ = false;
};

}  // namespace weft
