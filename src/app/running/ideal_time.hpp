// SPDX-License-Identifier: GPL-2.0-only
// How long variants of an experiment take on the ideal network, for workloads that plan by it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "units/time.hpp"

namespace weft {

/// Reads the text of an experiment again with some values replaced (dotted path, YAML text), runs it on the ideal
/// network in this process, without faults of the network and background transfers, and gives the end of the last
/// operation of a rank that is no storage target. `path` and `directory` as of read_experiment(). Throws InputError.
Time ideal_time(const std::string& text, const std::string& path, const std::string& directory,
                const std::vector<std::pair<std::string, std::string>>& changes);

}  // namespace weft
