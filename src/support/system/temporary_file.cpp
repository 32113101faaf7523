// SPDX-License-Identifier: GPL-2.0-only
// Bytes that a reader keeps outside of memory.
#include "support/system/temporary_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "support/basics/error.hpp"

namespace weft {
namespace {

EnvironmentError temporary_error(const char* what) {
  std::error_code none;
  return EnvironmentError(fmt::format("a temporary file in '{}' {}: {} (TMPDIR names another folder)",
                                      std::filesystem::temp_directory_path(none).string(), what, std::strerror(errno)));
}

int open_without_name() {
  std::error_code none;
  std::string path = (std::filesystem::temp_directory_path(none) / "weft-trace-XXXXXX").string();
  const int file = mkstemp(path.data());
  if (file < 0) throw temporary_error("cannot be made");
  unlink(path.c_str());
  return file;
}

}  // namespace

TemporaryFile::~TemporaryFile() {
  if (file_ >= 0) close(file_);
}
TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), written_(other.written_), tail_(std::move(other.tail_)) {}
TemporaryFile& TemporaryFile::operator=(TemporaryFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(written_, other.written_);
  std::swap(tail_, other.tail_);
  return *this;
}

void TemporaryFile::append(const void* bytes, std::size_t count) {
  const auto* from = static_cast<const std::byte*>(bytes);
  tail_.insert(tail_.end(), from, from + count);
  if (tail_.size() > in_memory) write_out();
}

void TemporaryFile::write_out() {
  if (file_ < 0) file_ = open_without_name();
  for (std::size_t done = 0; done < tail_.size();) {
    const auto count = pwrite(file_, tail_.data() + done, tail_.size() - done, static_cast<off_t>(written_ + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw temporary_error("cannot be written");
    done += static_cast<std::size_t>(count);
  }
  written_ += tail_.size();
  tail_.clear();
}

std::size_t TemporaryFile::read(std::uint64_t from, void* to, std::size_t max) const {
  auto* target = static_cast<std::byte*>(to);
  std::size_t done = 0;
  while (done < max && from + done < written_) {
    const std::size_t wanted = std::min<std::uint64_t>(max - done, written_ - from - done);
    const auto count = pread(file_, target + done, wanted, static_cast<off_t>(from + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw temporary_error("cannot be read");
    done += static_cast<std::size_t>(count);
  }
  if (from + done >= size()) return done;
  const std::size_t rest = std::min<std::uint64_t>(max - done, size() - from - done);
  std::copy_n(tail_.begin() + static_cast<std::ptrdiff_t>(from + done - written_), rest, target + done);
  return done + rest;
}

}  // namespace weft
