// SPDX-License-Identifier: GPL-2.0-only
// MPI's functions that write files, in front of those of the library.
#include "results/hdf5/file_writes.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <mpi.h>

namespace weft {
namespace {

std::string failure;

/// The library passes no reason on; the system call's is often still there.
std::string reason() {
  for (const int known : {ENOSPC, EDQUOT, EFBIG, EIO, EROFS})
    if (errno == known) return std::strerror(known);
  return "the file system refused";
}

void remember(const std::string& what) {
  if (failure.empty()) failure = fmt::format("{}: {} (is the disk full?)", what, reason());
}

/// `write` fails, or writes less than it should: the disk has become full on the way.
template <class Write>
int write_all_or_remember(MPI_Offset offset, int count, MPI_Datatype type, MPI_Status* status, Write&& write) {
  MPI_Status own;
  MPI_Status* const result = status == MPI_STATUS_IGNORE ? &own : status;
  if (failure.empty()) {
    errno = 0;
    const int code = write(result);
    MPI_Count written = 0;
    MPI_Count width = 0;
    if (code == MPI_SUCCESS) PMPI_Get_elements_x(result, MPI_BYTE, &written);
    PMPI_Type_size_x(type, &width);
    if (code != MPI_SUCCESS || written < width * count)
      remember(fmt::format("{} bytes were not written at byte {}", width * count - written, offset));
  }
  if (!failure.empty()) PMPI_Status_set_elements(result, type, count);
  return MPI_SUCCESS;
}

/// For a function that is called on all processes: no process stays behind.
template <class Call>
int call_and_remember(const char* what, Call&& call) {
  errno = 0;
  if (call() != MPI_SUCCESS) remember(what);
  return MPI_SUCCESS;
}

}  // namespace

const std::string& failed_write() { return failure; }
void forget_failed_writes() { failure.clear(); }

}  // namespace weft

extern "C" {

int MPI_File_write_at(MPI_File file, MPI_Offset offset, const void* data, int count, MPI_Datatype type,
                      MPI_Status* status) {
  return weft::write_all_or_remember(offset, count, type, status, [&](MPI_Status* result) {
    return PMPI_File_write_at(file, offset, data, count, type, result);
  });
}

// Each process for itself: within the library's collective writing, too, processes could wait for one that has failed.
// The data that HDF5 writes in this way is small.
int MPI_File_write_at_all(MPI_File file, MPI_Offset offset, const void* data, int count, MPI_Datatype type,
                          MPI_Status* status) {
  return MPI_File_write_at(file, offset, data, count, type, status);
}

int MPI_File_set_size(MPI_File file, MPI_Offset size) {
  return weft::call_and_remember("the file cannot be made longer", [&] { return PMPI_File_set_size(file, size); });
}

int MPI_File_sync(MPI_File file) {
  return weft::call_and_remember("what was written did not reach the disk", [&] { return PMPI_File_sync(file); });
}

int MPI_File_close(MPI_File* file) {
  return weft::call_and_remember("the file cannot be closed", [&] { return PMPI_File_close(file); });
}
}
