// SPDX-License-Identifier: GPL-2.0-only
// One writer per file.
#pragma once

#include <string>

namespace weft {

/// The right of one process to write a file. The kernel takes it back when the process ends, however it ends.
class FileLock {
 public:
  FileLock() = default;
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// Creates the file if it does not exist; keeps its content. Returns "" if no other process holds the lock, else
  /// which process holds it or what failed.
  std::string take(const std::string& path);
  void give_back();

 private:
  int descriptor_ = -1;
};

}  // namespace weft
