// SPDX-License-Identifier: GPL-2.0-only
// MPI from its initialisation to its end.
#pragma once

namespace weft {

class ProcessGroup;

/// Initialises MPI, unless this has been done. Works under mpirun and without it (a group of one process). When more
/// ranks run on this host than there are processor cores for them, Open MPI is told to yield while it waits (its
/// parameter mpi_yield_when_idle): ranks that spin on shared cores are many times slower. EnvironmentError if too
/// little memory is left for it.
void begin_mpi();

/// The use of MPI by a program, from main() to its end; one per program. Under mpirun, which waits for it, MPI begins
/// when this is built. In a process alone it begins when the communicator of processes() is asked for: it takes half
/// the time of a command that answers at once, and most of these need none. The end of the scope finalises MPI if it
/// has begun.
class MpiSession {
 public:
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// All processes that the launcher has started.
  ProcessGroup processes() const;
};

/// True if `local_ranks` processes that are not bound to cores of their own have fewer than `local_ranks` cores.
bool shares_cores(int local_ranks);
/// The same of the processes that mpirun has started on this host; false without mpirun.
bool shares_cores();

}  // namespace weft
