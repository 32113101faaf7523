// SPDX-License-Identifier: GPL-2.0-only
// Bytes that a reader keeps outside of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

/// A file without a name in the folder for temporary files (TMPDIR): it is gone when the process ends, however that
/// is. The last `in_memory` bytes at most stand in memory, so that small contents need no file.
class TemporaryFile {
 public:
  static constexpr std::size_t in_memory = std::size_t{1} << 18;

  TemporaryFile() = default;
  ~TemporaryFile();
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&& other) noexcept;

  std::uint64_t size() const { return written_ + tail_.size(); }
  /// Throws EnvironmentError if the folder takes no more.
  void append(const void* bytes, std::size_t count);
  /// Up to `max` bytes from byte `from` on; gives how many there were. Throws EnvironmentError.
  std::size_t read(std::uint64_t from, void* to, std::size_t max) const;

 private:
  void write_out();

  int file_ = -1;
  std::uint64_t written_ = 0;  // bytes in the file
  std::vector<std::byte> tail_;
};

}  // namespace weft
