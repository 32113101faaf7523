// SPDX-License-Identifier: GPL-2.0-only
// Ranks that wait for each other for ever.
#pragma once

#include <string>
#include <vector>

#include "runtime/execution/runtime.hpp"

namespace weft {

/// One line per rank or aggregator of a wait-for cycle: each waits for the next one and the last for the first, in more
/// than one operation. Empty if there is no cycle. A shortest cycle, beginning with a rank that waits for one that has
/// not begun.
std::vector<std::string> wait_for_cycle(const std::vector<RankWait>& waits);

/// Lines, to be gathered over processes, and back.
std::string to_lines(const std::vector<RankWait>& waits);
std::vector<RankWait> from_lines(const std::string& lines);

}  // namespace weft
