// SPDX-License-Identifier: GPL-2.0-only
// Ranks that wait for each other for ever.
#pragma once

#include <string>
#include <vector>

#include "runtime/execution/runtime.hpp"

namespace weft {

/// One line per rank or aggregator of a cycle each of which waits for the next one, the last for the first, in more
/// than one operation; nothing if there is none. A shortest one, beginning with one that waits for somebody who has not
/// begun.
std::vector<std::string> wait_for_cycle(const std::vector<RankWait>& waits);

/// Lines, to be gathered over processes, and back.
std::string to_lines(const std::vector<RankWait>& waits);
std::vector<RankWait> from_lines(const std::string& lines);

}  // namespace weft
