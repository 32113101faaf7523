// SPDX-License-Identifier: GPL-2.0-only
// One search for channels at given speeds and types of paths: NCCL src/graph/search.cc, ncclTopoSearchRec and what it
// calls, v2.30.
#pragma once

#include "nccl/graph_search.hpp"

namespace weft {

constexpr int perfect_search = -1;  ///< the remaining steps when nothing better can be found

/// Puts into `best` what is better than it, in at most so many steps. Returns the steps that are left, or
/// `perfect_search`.
int search_channels(const NcclSystem& system, const NcclSearchGraph& wanted, NcclSearchGraph& best, int steps);

}  // namespace weft
