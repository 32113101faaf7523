// SPDX-License-Identifier: GPL-2.0-only
// What the file system did not take. HDF5 is told that every write has succeeded, and whoever called HDF5 asks here
// afterwards.
#pragma once

#include <string>

namespace weft {

// HDF5 leaves a function on a process where a write fails, and goes on to the next collective call on the others, which
// then wait for ever. That a write has failed must therefore not be known within HDF5, but be agreed on between two
// calls of it. MPI's profiling interface (MPI 4.0, chapter 15) is the place to step in between: file_writes.cpp defines
// the functions by which HDF5 writes. After the first failure nothing is written any more, so that HDF5 can close what
// is open.

/// Why a write of this process has failed since forget_failed_writes(); "" if none has.
const std::string& failed_write();
/// Files are written from now on.
void forget_failed_writes();

}  // namespace weft
