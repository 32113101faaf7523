// SPDX-License-Identifier: GPL-2.0-only
// The files of a trace that has one for each rank.
#pragma once

#include <string>
#include <vector>

#include "support/documents/spec.hpp"

namespace weft {

/// Paths in the order of the ranks, 0 to as many as there are. The value is a name with "{rank}" in it, or the part
/// before ".0.et", or whatever of `endings` the files have. Throws InputError if there is none, and if one is missing
/// between others.
std::vector<std::string> trace_files_of_ranks(const Spec& value, const std::string& directory,
                                              const std::vector<std::string>& endings);

}  // namespace weft
