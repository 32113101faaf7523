// SPDX-License-Identifier: GPL-2.0-only
// The order in which a channel tries GPUs as its next one: NCCL src/graph/search.cc, ncclTopoSearchNextGpuSort, v2.30.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nccl/graph_search.hpp"
#include "nccl/system.hpp"

namespace weft {

/// Where a channel is.
struct GpuChoice {
  std::uint32_t gpu = 0;        ///< the last one of it
  std::uint32_t net_in = 0;     ///< the network at which it started, if `goes_back`
  bool goes_back = false;       ///< it will return to a network
  bool goes_back_next = false;  ///< from the next GPU
};

/// Writes the GPUs that are not `used` to `next`, which has room for all GPUs, the best first. Returns how many.
std::size_t best_next_gpus(const NcclSystem& system, GraphPattern pattern, const GpuChoice& choice,
                           const std::vector<char>& used, std::span<std::uint32_t> next);

}  // namespace weft
