// SPDX-License-Identifier: GPL-2.0-only
#include "results/processes/file_lock.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr long nfs = 0x6969;  // statfs(2), NFS_SUPER_MAGIC

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

/// Calls `wanted(entry)` for the entries of a folder until one returns true; skips entries that disappear meanwhile.
/// True if one does.
template <class Wanted>
bool any_entry(const fs::path& folder, Wanted&& wanted) {
  std::error_code problem;
  for (fs::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem))
    if (wanted(at->path())) return true;
  return false;
}

/// Some process of this machine other than this one that has the file open, as far as one may look; 0 if none.
pid_t user_of(const struct stat& file) {
  pid_t user = 0;
  any_entry("/proc", [&](const fs::path& process) {
    const std::string name = process.filename().string();
    pid_t id = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), id).ptr != name.data() + name.size()) return false;
    if (id == getpid()) return false;
    const bool found = any_entry(process / "fd", [&](const fs::path& open_file) {
      struct stat status {};
      return stat(open_file.c_str(), &status) == 0 && same_file(status, file);
    });
    if (found) user = id;
    return found;
  });
  return user;
}

std::string command_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", process));
  std::string words((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  while (!words.empty() && words.back() == '\0') words.pop_back();
  for (char& c : words)
    if (c == '\0') c = ' ';
  return words;
}

std::string who_writes(const struct stat& file) {
  const pid_t user = user_of(file);
  if (user == 0) return "another process is writing it, perhaps on another machine";
  return fmt::format("process {} is writing it: {}", user, command_of(user));
}

}  // namespace

FileLock::~FileLock() { give_back(); }

void FileLock::give_back() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

// A lock of the open file description (fcntl(2), F_OFD_SETLK): the process may open and close the file elsewhere, as
// MPI-IO does, without losing it; and it does not disturb flock(2) locks, which HDF5 takes to read. It is on one byte
// that no file has.
std::string FileLock::take(const std::string& path) {
  struct statfs system {};
  for (;;) {
    give_back();
    descriptor_ = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (descriptor_ < 0) return fmt::format("'{}': {}", path, std::strerror(errno));
    // On NFS, MPI-IO locks the whole file for each of its accesses, and would wait for us for ever.
    if (fstatfs(descriptor_, &system) == 0 && system.f_type == nfs) return "";
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = off_t{1} << 62;
    lock.l_len = 1;
    struct stat mine {};
    struct stat there {};
    fstat(descriptor_, &mine);
    if (fcntl(descriptor_, F_OFD_SETLK, &lock) != 0) {
      const int reason = errno;
      give_back();
      if (reason == EAGAIN || reason == EACCES) return fmt::format("'{}': {}", path, who_writes(mine));
      return "";  // a file system without locks
    }
    // The former owner may have given the file its final name in between.
    if (stat(path.c_str(), &there) == 0 && same_file(mine, there)) return "";
  }
}

}  // namespace weft
