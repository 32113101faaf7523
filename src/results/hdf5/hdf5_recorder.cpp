// SPDX-License-Identifier: GPL-2.0-only
// Life of a result file: opened, described, finished or discarded. Its tables are written by hdf5_tables.cpp.
#include "results/hdf5/hdf5_recorder.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "results/processes/agreement.hpp"
#include "support/basics/contract.hpp"
#include "support/basics/error.hpp"

namespace weft {

namespace {

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Whether a file has content that is no HDF5, such as a trace or a table that the experiment names.
bool holds_something_else(const std::string& path) {
  constexpr std::string_view signature("\x89HDF\r\n\x1a\n", 8);  // HDF5 File Format Specification, section II.A
  std::ifstream file(path, std::ios::binary);
  std::array<char, signature.size()> begin{};
  file.read(begin.data(), begin.size());
  const std::string_view found(begin.data(), static_cast<std::size_t>(file.gcount()));
  return !found.empty() && found != signature;
}

/// Why `path` or `partial` beside it cannot be written; "" if they can. Creates and locks `partial`, and creates
/// nothing on failure.
std::string why_unwritable(const std::string& path, const std::string& partial, FileLock& lock) {
  struct stat status {};
  const std::string directory = directory_of(path);
  if (path.empty() || path.back() == '/') return "this is no file name";
  if (stat(directory.c_str(), &status) != 0)
    return fmt::format("directory '{}': {} (create it first?)", directory, std::strerror(errno));
  if (!S_ISDIR(status.st_mode)) return fmt::format("'{}' is not a directory", directory);
  if (stat(path.c_str(), &status) == 0) {
    // The finished file takes the name: a device or a directory must not be replaced.
    if (!S_ISREG(status.st_mode)) return "it exists and is not a regular file";
    if (access(path.c_str(), W_OK) != 0) return std::strerror(errno);
    if (holds_something_else(path)) return "it exists and is no HDF5 file, so it is kept; expected another name";
  }
  return lock.take(partial);
}

/// MPI waits for ever if only some processes can open a file.
void expect_writable_here(const std::string& partial) {
  const int descriptor = open(partial.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) throw EnvironmentError(fmt::format("'{}': {}", partial, std::strerror(errno)));
  close(descriptor);
}

bool mpi_is_over() {
  int over = 0;
  MPI_Finalized(&over);
  return over != 0;
}

/// True if all processes arrive here within two seconds of the first. Does not block for longer than three.
bool all_arrive(MPI_Comm comm) {
  using Clock = std::chrono::system_clock;
  using Milliseconds = std::chrono::milliseconds;
  constexpr Milliseconds patience(2000);
  constexpr Milliseconds clock_skew(1000);  // between machines
  struct Deadlines {
    std::int64_t mine = 0;
    std::int64_t earliest = 0;
  };
  const auto now = [] { return std::chrono::duration_cast<Milliseconds>(Clock::now().time_since_epoch()).count(); };
  // A process that is late must learn that others have given up: hence their deadlines instead of a simple barrier.
  auto deadlines = std::make_unique<Deadlines>();
  deadlines->mine = now() + patience.count();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&deadlines->mine, &deadlines->earliest, 1, MPI_INT64_T, MPI_MIN, comm, &request);
  for (;;) {
    int arrived = 0;
    MPI_Test(&request, &arrived, MPI_STATUS_IGNORE);
    if (arrived != 0) return now() <= deadlines->earliest;
    if (now() > deadlines->mine + clock_skew.count()) {
      deadlines.release();  // NOLINT(bugprone-unused-return-value): the operation that stays open may still write there
      return false;
    }
    std::this_thread::sleep_for(Milliseconds(1));
  }
}

Manifest broadcast_manifest(MPI_Comm comm, Manifest manifest) {
  for (std::string* text :
       {&manifest.version, &manifest.git_revision, &manifest.experiment_file, &manifest.experiment_text,
        &manifest.effective_experiment, &manifest.command_line, &manifest.host, &manifest.date, &manifest.engine})
    *text = broadcast_text(comm, std::move(*text));
  MPI_Bcast(&manifest.seed, 1, MPI_UINT64_T, 0, comm);
  for (Facts* facts : {&manifest.model, &manifest.partition}) {
    auto count = static_cast<std::uint64_t>(facts->size());
    MPI_Bcast(&count, 1, MPI_UINT64_T, 0, comm);
    facts->resize(count);
    for (auto& [name, value] : *facts) {
      name = broadcast_text(comm, std::move(name));
      value = broadcast_text(comm, std::move(value));
    }
  }
  return manifest;
}

}  // namespace

Hdf5Recorder::Hdf5Recorder(MPI_Comm comm, std::string path) : path_(std::move(path)) {
  MPI_Comm_dup(comm, &comm_);
  MPI_Comm_rank(comm_, &process_);
  MPI_Comm_size(comm_, &processes_);
  forget_failed_writes();
  try {
    path_ = broadcast_text(comm_, std::move(path_));
    partial_path_ = path_ + ".partial";
    together([&] {
      if (process_ != 0) return;
      if (const std::string reason = why_unwritable(path_, partial_path_, lock_); !reason.empty())
        throw EnvironmentError(reason);
    });
    created_ = true;
    together([&] { expect_writable_here(partial_path_); });
    create_file();
  } catch (...) {
    // All processes are here, because collectively() throws on all of them.
    discard_file();
    MPI_Comm_free(&comm_);
    throw;
  }
}

Hdf5Recorder::~Hdf5Recorder() {
  if (finished_ || mpi_is_over()) return;
  // One process alone may be unwinding: closing is collective, and the others might never arrive.
  if (all_arrive(comm_)) {
    discard_file();
    MPI_Comm_free(&comm_);
  } else {
    file_.release();
    unlink(partial_path_.c_str());
  }
}

void Hdf5Recorder::create_file() {
  hdf5::silence_error_stack();
  together([&] {
    const hdf5::Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "cannot make file access properties");
    hdf5::check(H5Pset_fapl_mpio(access.get(), comm_, MPI_INFO_NULL), "cannot choose MPI-IO");
    hdf5::check(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), "cannot set how the file closes");
    const hdf5::Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose, "cannot make file creation properties");
    hdf5::check(H5Pset_obj_track_times(creation.get(), false), "cannot switch time stamps off");
    const hid_t file = H5Fcreate(partial_path_.c_str(), H5F_ACC_TRUNC, creation.get(), access.get());
    file_ = hdf5::Handle(file, H5Fclose, "cannot create the file");
  });
  together([&] {
    const hid_t root = file_.get();
    hdf5::write_attribute(root, "format", std::string("weft-results"));
    hdf5::write_attribute(root, "format_version", std::int64_t{1});
    hdf5::write_attribute(root, "complete", std::uint8_t{0});
    hdf5::write_quantity(root, "simulated_time", std::int64_t{0}, "ps");
    hdf5::write_attribute(root, "fingerprint", std::string("0x0000000000000000"));
  });
  flush();
}

void Hdf5Recorder::flush() {
  together([&] { hdf5::check(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), "cannot write to the file"); });
}

void Hdf5Recorder::write_manifest(const Manifest& given) {
  const Manifest manifest = broadcast_manifest(comm_, given);
  hdf5::Handle group;
  hdf5::Handle run;
  together([&] {
    group = hdf5::create_group(file_.get(), "manifest");
    hdf5::write_attribute(group.get(), "version", manifest.version);
    hdf5::write_attribute(group.get(), "git_revision", manifest.git_revision);
    hdf5::write_attribute(group.get(), "experiment_file", manifest.experiment_file);
    hdf5::write_attribute(group.get(), "seed", manifest.seed);
    const hdf5::Handle model = hdf5::create_group(group.get(), "model");
    for (const auto& [name, value] : manifest.model) hdf5::write_attribute(model.get(), name, value);
    run = hdf5::create_group(group.get(), "run");
    hdf5::write_attribute(run.get(), "host", manifest.host);
    hdf5::write_attribute(run.get(), "date", manifest.date);
    hdf5::write_attribute(run.get(), "engine", manifest.engine);
    hdf5::write_attribute(run.get(), "mpi_ranks", static_cast<std::int64_t>(processes_));
    const hdf5::Handle partition = hdf5::create_group(run.get(), "partition");
    for (const auto& [name, value] : manifest.partition) hdf5::write_attribute(partition.get(), name, value);
  });
  write_text(group.get(), "experiment_text", manifest.experiment_text, "experiment file, verbatim");
  // Settings of the command line may be layout facts, such as the partition.
  write_text(run.get(), "effective_experiment", manifest.effective_experiment, "experiment as it was run");
  write_text(run.get(), "command_line", manifest.command_line, "command line");
  flush();
}

void Hdf5Recorder::write_outcome(std::int64_t simulated_time, std::uint64_t fingerprint) {
  simulated_time_ = simulated_time;
  together([&] {
    hdf5::write_quantity(file_.get(), "simulated_time", simulated_time, "ps");
    hdf5::write_attribute(file_.get(), "fingerprint", fmt::format("0x{:016x}", fingerprint));
  });
  flush();
}

void Hdf5Recorder::finish(bool complete) {
  WEFT_EXPECT(!finished_, "'{}' is finished already", path_);
  try {
    together([&] { hdf5::write_attribute(file_.get(), "complete", static_cast<std::uint8_t>(complete ? 1 : 0)); });
    flush();
    close_file();
    give_final_name();
  } catch (...) {
    discard_file();
    finished_ = true;
    MPI_Comm_free(&comm_);
    throw;
  }
  finished_ = true;
  MPI_Comm_free(&comm_);
}

void Hdf5Recorder::close_file() {
  open_.clear();  // an interrupted run leaves tables open
  together([&] {
    const hid_t file = file_.release();
    hdf5::check(H5Fclose(file), "cannot close the file");
  });
}

void Hdf5Recorder::give_final_name() {
  together([&] {
    if (process_ == 0 && std::rename(partial_path_.c_str(), path_.c_str()) != 0)
      throw EnvironmentError(std::strerror(errno));
  });
}

// A step has failed on some process. After a failed write of ours, unknown to HDF5, HDF5 can close the file; after a
// failure within HDF5, perhaps on some processes only, it cannot.
void Hdf5Recorder::give_up(const std::string& message, bool came_through) {
  int usable = came_through ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &usable, 1, MPI_INT, MPI_MIN, comm_);
  if (file_ && usable == 0) {
    abandon_file();
    throw FatalEnvironmentError(message);
  }
  discard_file();
  throw EnvironmentError(message);
}

// Forgets all that is open, without closing it.
void Hdf5Recorder::abandon_file() {
  file_.release();
  for (auto& [name, open] : open_) {
    open.group.release();
    for (hdf5::Handle& column : open.columns) column.release();
  }
}

void Hdf5Recorder::discard_file() {
  open_.clear();
  file_.reset();
  MPI_Barrier(comm_);
  if (process_ == 0 && created_) unlink(partial_path_.c_str());
  created_ = false;
}

}  // namespace weft
