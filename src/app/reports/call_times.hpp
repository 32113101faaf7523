// SPDX-License-Identifier: GPL-2.0-only
// When the ranks of each collective arrived and ended, from the records of all processes.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "engine/process_group.hpp"
#include "results/tables/collective_log.hpp"
#include "runtime/books/transfer_book.hpp"
#include "schedule/collective/collective.hpp"

namespace weft {

/// As nccl-tests counts them. A call's size is the sum of its blocks where they differ, in an all-to-all of all ranks'
/// inputs, and nccl-tests counts the input of one: the mean.
std::int64_t counted_bytes(const CollectiveCall& call);

struct CallTimes {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();  ///< the first rank came
  std::int64_t last = -1;                                         ///< the last rank came
  std::int64_t end = -1;                                          ///< the last rank left
  std::uint64_t entered = 0;                                      ///< ranks that have come
  std::uint64_t finished = 0;                                     ///< ranks that have left
};

/// Collective: `look` gets the times of all calls, in blocks of consecutive ids: the first id, and the times of this
/// call and those that follow. `log`: of this process, sorted; `ranks`: for collectives that have not ended. Memory
/// does not grow with the number of calls. Throws EnvironmentError, the same on all processes, if a log cannot be read.
void for_all_calls(const ProcessGroup& group, std::uint64_t calls, const CollectiveLog& log,
                   const std::vector<RankTransfers>& ranks,
                   const std::function<void(std::uint64_t first, std::span<const CallTimes> times)>& look);

}  // namespace weft
