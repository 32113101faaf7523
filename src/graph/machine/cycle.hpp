// SPDX-License-Identifier: GPL-2.0-only
// Cycles in directed graphs.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace weft {

/// A shortest cycle of a directed graph of `vertices` vertices: its vertices in order, beginning with the smallest
/// number of any such cycle; empty if there is none. Does not depend on the order of the edges.
std::vector<std::size_t> shortest_cycle(std::size_t vertices,
                                        const std::vector<std::pair<std::size_t, std::size_t>>& edges);

}  // namespace weft
