// SPDX-License-Identifier: GPL-2.0-only
// The reasons for which the operations of a rank wait.
#include <algorithm>

#include <fmt/format.h>

#include "runtime/execution/rank_executor.hpp"

namespace weft {

std::string RankExecutor::describe(const LiveOperation& live) const {
  return (is_aggregator() ? fmt::format("aggregator at host {}: ", host_.value())
                          : fmt::format("rank {}: ", rank_.value())) +
         live.describe();
}

// Operations that have not ended, in the order of the program.
std::vector<const LiveOperation*> RankExecutor::in_order() const {
  std::vector<const LiveOperation*> all;
  all.reserve(live_.size());
  live_.for_each([&](const LiveOperation& live) { all.push_back(&live); });
  std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->turn.id < b->turn.id; });
  return all;
}

void RankExecutor::add_waits(std::vector<RankWait>& waits) const {
  for (const LiveOperation* operation : in_order()) {
    const LiveOperation& live = *operation;
    if (!live.started) continue;
    if (live.operation().kind == Operation::Kind::recv && !live.operation().any_source)
      waits.push_back({{rank_.value()}, {live.operation().peer.value()}, Waiter::none, describe(live)});
    if (!live.details->collective) continue;
    const auto named = [&](std::uint32_t rank, std::uint32_t channel) {
      return rank < placement_.ranks() ? Waiter{rank} : Waiter{rank, live.operation().call->id, channel};
    };
    for (const CollectiveRun::Awaited& awaited : live.details->collective->awaited_ranks())
      waits.push_back({named(rank_.value(), awaited.in_channel), named(awaited.rank, awaited.channel),
                       live.operation().call->id, describe(live)});
  }
}

std::vector<std::string> RankExecutor::waiting(std::size_t max) const {
  std::vector<std::string> lines;
  for (const LiveOperation* live : in_order()) {
    if (lines.size() >= max) return lines;
    lines.push_back(describe(*live));
  }
  if (lines.empty() && !finished())
    lines.push_back(fmt::format("rank {}: messages have come that no operation receives", rank_.value()));
  return lines;
}

}  // namespace weft
