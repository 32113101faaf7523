// SPDX-License-Identifier: GPL-2.0-only
// MPI from its initialisation to its end, as a scope.
#pragma once

namespace weft {

/// Initialises MPI when built and finalises it when destroyed; one per program, in main(). Works under mpirun and
/// without it (a group of one process). When more ranks run on this host than there are processor cores for them, Open
/// MPI is told to yield while it waits (its parameter mpi_yield_when_idle): ranks that spin on shared cores are many
/// times slower. EnvironmentError if too little memory is left for it.
class MpiSession {
 public:
  MpiSession(int& argc, char**& argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
};

/// True if `local_ranks` processes that are not bound to cores of their own have fewer than `local_ranks` cores.
bool shares_cores(int local_ranks);
/// The same of the processes that mpirun has started on this host; false without mpirun.
bool shares_cores();

}  // namespace weft
