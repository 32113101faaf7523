// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/collective/countable.hpp"

#include <algorithm>

namespace weft {
namespace {

constexpr std::uint64_t max_steps = std::uint64_t{1} << 22;

bool has_few_steps(const CollectiveAlgorithm& algorithm, const CollectiveCall& call) {
  std::uint64_t count = 0;
  for (std::uint32_t lane = 0; lane < algorithm.lanes(call); ++lane) {
    const auto steps = algorithm.steps(call, 0, lane);
    for (Step step; steps->next(step);)
      if (++count > max_steps) return false;
  }
  return true;
}

}  // namespace

CountableCall countable(const CollectiveCall& call) {
  CountableCall result{call};
  if (call.blocks) return result;  // each of its own size, given by a table
  // No algorithm chooses steps of fewer bytes.
  const Bytes min = call.tuning.chunk > Bytes(0) ? call.tuning.chunk : Bytes::kib(1);
  if (static_cast<std::uint64_t>(call.size / min) < max_steps / 64) return result;
  const auto algorithm = find_collective(call.algorithm);
  constexpr std::int64_t step = 16;
  while (result.call.size.count() > step && !has_few_steps(*algorithm, result.call))
    result.call.size = result.call.size / step;
  result.times = static_cast<double>(call.size.count()) / static_cast<double>(result.call.size.count());
  return result;
}

}  // namespace weft
