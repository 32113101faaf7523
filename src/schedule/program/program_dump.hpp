// SPDX-License-Identifier: GPL-2.0-only
// A workload written out as the map of a workload of kind `program` (docs/reference/program_format.md).
#pragma once

#include <string>

#include "schedule/program/placement.hpp"
#include "schedule/program/workload.hpp"

namespace weft {

/// YAML in flow style, one operation a line. Operations that ranks of one kind have in common are written once; calls
/// keep their numbers, communicators their order. Throws InputError (without a file) if the workload has what a program
/// cannot say: messages that nobody receives, ranks that start later.
std::string dump_program(const Workload& workload, const Placement& placement, const std::string& experiment);

}  // namespace weft
