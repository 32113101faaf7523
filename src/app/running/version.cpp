// SPDX-License-Identifier: GPL-2.0-only
// Versions of weft and of the libraries under it.
#include "app/running/version.hpp"

#include <boost/version.hpp>
#include <fmt/format.h>
#include <hdf5.h>
#include <mpi.h>

#include "app/running/revision.hpp"

namespace weft {

namespace {

/// The library's own name and version. Open MPI continues after a comma with packager and build host, which do not
/// belong into a result.
std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string full(text, static_cast<std::size_t>(length));
  return full.substr(0, full.find_first_of(",\n"));
}

/// The library that was loaded, not the header that was compiled against.
std::string hdf5_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

std::string boost_version() {
  return fmt::format("{}.{}.{}", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100);
}

}  // namespace

std::string version_number() { return build_version; }

std::string git_revision() { return build_revision; }

std::string version_text() {
  std::string text;
  const auto line = [&text](const char* what, const std::string& version) {
    text += fmt::format("{:<13} {}\n", what, version);
  };
  line("weft version", version_number());
  line("git revision", git_revision());
  line("ns-3", build_ns3_version);
  line("MPI", mpi_version());
  line("HDF5", hdf5_version());
  line("Boost", boost_version());
#ifdef __clang__
  line("compiler", "Clang " __clang_version__);
#else
  line("compiler", "GCC " __VERSION__);
#endif
  return text;
}

}  // namespace weft
