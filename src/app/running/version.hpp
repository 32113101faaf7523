// SPDX-License-Identifier: GPL-2.0-only
// Which weft this is and what it was built with, for `weft --version` and the manifest of a results file.
#pragma once

#include <string>

namespace weft {

/// The release, such as "0.1.0".
std::string version_number();

/// The git commit that was built, 12 hexadecimal digits; "-dirty" follows if files differed from it. "unknown" when the
/// sources were no git repository.
std::string git_revision();

/// One line each for weft, the git revision, ns-3, MPI, HDF5, Boost and the compiler; the last line ends with a
/// newline. May be called before MPI_Init.
std::string version_text();

}  // namespace weft
