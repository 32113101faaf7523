// SPDX-License-Identifier: GPL-2.0-only
// Ranks that wait for each other for ever.
#pragma once

#include <string>
#include <vector>

#include "runtime/runtime.hpp"

namespace weft {

/// One line per rank of a circle of ranks each of which waits for the next one, the last for the first; nothing if
/// there is none. The circle is the one with the lowest rank that is in any.
std::vector<std::string> wait_circle(const std::vector<RankWait>& waits);

/// "from to text" lines, to be gathered over processes, and back.
std::string to_lines(const std::vector<RankWait>& waits);
std::vector<RankWait> from_lines(const std::string& lines);

}  // namespace weft
