// SPDX-License-Identifier: GPL-2.0-only
// Failed writes of the file system. HDF5 gets the answer that every write has succeeded; callers of HDF5 check here
// afterwards.
#pragma once

#include <string>

namespace weft {

// If a write fails on one process, HDF5 returns from its function there and continues to the next collective call on
// the others, which then wait for ever. Therefore a failed write must be hidden from HDF5, and processes agree on it
// between two calls. MPI's profiling interface (MPI 4.0, chapter 15) allows this: file_writes.cpp defines the functions
// with which HDF5 writes. After the first failure nothing is written any more, so that HDF5 can close its open objects.

/// Why a write of this process has failed since forget_failed_writes(); "" if none has.
const std::string& failed_write();
/// Files are written from now on.
void forget_failed_writes();

}  // namespace weft
