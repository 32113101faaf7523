// SPDX-License-Identifier: GPL-2.0-only
// A workload written out as execution traces of MLCommons Chakra (docs/reference/traces.md).
#pragma once

#include <string>

#include "schedule/program/workload.hpp"

namespace weft {

/// Writes PREFIX.0.et, PREFIX.1.et, ..., a node for each operation, one rank after another. Throws InputError (without
/// a file) if the workload has what such a trace cannot say, and EnvironmentError if a file cannot be written. Errors
/// name the file of the experiment.
void export_chakra(const Workload& workload, const std::string& prefix, const std::string& experiment);

}  // namespace weft
