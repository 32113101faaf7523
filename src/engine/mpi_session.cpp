// SPDX-License-Identifier: GPL-2.0-only
// MPI from its initialisation to its end.
#include "engine/mpi_session.hpp"

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include <mpi.h>
#include <sched.h>
#include <sys/mman.h>

#include "engine/process_group.hpp"
#include "support/basics/error.hpp"

namespace weft {
namespace {

/// Cores in this process's affinity mask.
int allowed_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return std::numeric_limits<int>::max();
  return CPU_COUNT(&set);
}

/// Cores' worth of time that the control group grants ("quota period" in microseconds, or "max period"), rounded up.
/// Source: Linux kernel documentation, "Control Group v2", cpu.max.
int granted_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return std::numeric_limits<int>::max();
  return static_cast<int>(std::ceil(std::strtod(quota.c_str(), nullptr) / period));
}

int environment_number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// The memory that Open MPI 4.1 needs beside the program, with some to spare: without it, MPI_Init ends the program with
// a text of Open MPI and one of several exit codes.
void expect_room_for_mpi() {
  constexpr std::size_t due = std::size_t{256} << 20;
  void* const room = mmap(nullptr, due, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    throw EnvironmentError("out of memory: expected 256 MiB of address space for MPI alone (ulimit -v)");
  munmap(room, due);
}

/// True unless mpirun, or another launcher that speaks PMI or PMIx, has started this process.
bool started_alone() {
  for (const char* mark : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK", "PMI_FD", "SLURM_PROCID"})
    if (std::getenv(mark) != nullptr) return false;
  return true;
}

/// True if mpirun has started all processes on this machine.
bool all_are_here() {
  const int all = environment_number("OMPI_COMM_WORLD_SIZE", 0);
  return all > 0 && environment_number("OMPI_COMM_WORLD_LOCAL_SIZE", 0) == all;
}

/// A variable of the environment until the end of the scope, so that no program that this one starts inherits it. A
/// value set by the user stays.
class Meanwhile {
 public:
  Meanwhile(const char* name, const char* value) : name_(std::getenv(name) == nullptr ? name : nullptr) {
    if (name_ != nullptr) setenv(name_, value, /*overwrite=*/1);
  }
  ~Meanwhile() {
    if (name_ != nullptr) unsetenv(name_);
  }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;

 private:
  const char* name_;
};

}  // namespace

bool shares_cores(int local_ranks) {
  // mpirun binds each rank to a core of its own only if there are enough of them, and says so to the process.
  const bool bound = environment_number("OMPI_MCA_orte_bound_at_launch", 0) != 0;
  return (!bound && local_ranks > allowed_cores()) || local_ranks > granted_cores();
}

bool shares_cores() { return shares_cores(environment_number("OMPI_COMM_WORLD_LOCAL_SIZE", 1)); }

void begin_mpi() {
  int begun = 0;
  MPI_Initialized(&begun);
  if (begun != 0) return;
  expect_room_for_mpi();
  if (shares_cores()) {
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", /*overwrite=*/0);  // the user's choice stays
  }
  // mpirun and its processes would share locks in memory: a process that is killed while it holds one, as a signal may
  // do in MPI_Init, leaves mpirun waiting for ever in PMIx_server_finalize (seen with Open MPI 4.1.4 and PMIx 4.2.2).
  setenv("PMIX_MCA_gds", "hash", /*overwrite=*/0);
  // hwloc (2.9, "Environment Variables") would load X11, OpenCL and drivers to look for graphics cards.
  const Meanwhile no_graphics(
      "HWLOC_PLUGINS_BLACKLIST",
      "hwloc_gl.so,hwloc_opencl.so,hwloc_cuda.so,hwloc_nvml.so,hwloc_rsmi.so,hwloc_levelzero.so");
  std::optional<Meanwhile> no_daemon, no_folder, no_search;
  // Processes of one machine need no search for network cards, and one alone no daemon of Open MPI's: 0.35 of the 0.45
  // s that it took to start.
  if (started_alone()) {
    no_daemon.emplace("OMPI_MCA_ess_singleton_isolated", "1");
    // Without the daemon all such processes would have one folder for temporary files, and one that ends would remove
    // it while another begins: of 1,600 starts, four at a time, 9 failed in MPI_Init. The one user of the folder,
    // pointers into files that processes share, has others to choose from; its choice is made when a file is opened.
    no_folder.emplace("OMPI_MCA_orte_create_session_dirs", "0");
    setenv("OMPI_MCA_sharedfp", "^sm", /*overwrite=*/0);
  }
  if (started_alone() || all_are_here()) no_search.emplace("OMPI_MCA_pml", "ob1");
  MPI_Init(nullptr, nullptr);
}

MpiSession::MpiSession() {
  if (!started_alone()) begin_mpi();
}

MpiSession::~MpiSession() {
  int begun = 0;
  MPI_Initialized(&begun);
  if (begun != 0) MPI_Finalize();
}

ProcessGroup MpiSession::processes() const {
  return started_alone() ? ProcessGroup::alone() : ProcessGroup(MPI_COMM_WORLD);
}

}  // namespace weft
