// SPDX-License-Identifier: GPL-2.0-only
#include "app/reports/wait_for_cycle.hpp"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

using Waits = std::map<Waiter, std::vector<const RankWait*>>;

/// The waits of the awaited one of `wait`: if it is in the same collective, only its waits there.
std::vector<const RankWait*> behind(const RankWait& wait, const Waits& waits) {
  const auto found = waits.find(wait.awaited);
  if (found == waits.end()) return {};
  std::vector<const RankWait*> same;
  for (const RankWait* other : found->second)
    if (wait.call != Waiter::none && other->call == wait.call) same.push_back(other);
  return same.empty() ? found->second : same;
}

/// The wait is for a rank that has not begun the collective, or for a message: within one collective no rank waits in a
/// cycle, as replays have shown.
bool is_between_operations(const RankWait& wait, const Waits& waits) {
  const auto found = waits.find(wait.awaited);
  return found == waits.end() || std::none_of(found->second.begin(), found->second.end(), [&](const RankWait* other) {
           return wait.call != Waiter::none && other->call == wait.call;
         });
}

/// Shortest way from `start` back to itself, or nothing: breadth first.
std::vector<const RankWait*> cycle_through(const RankWait* start, const Waits& waits) {
  std::map<const RankWait*, const RankWait*> reached;  // from which
  std::vector<const RankWait*> queue = {start};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const RankWait* next : behind(*queue[i], waits)) {
      if (!reached.emplace(next, queue[i]).second) continue;
      if (next != start) {
        queue.push_back(next);
        continue;
      }
      std::vector<const RankWait*> cycle = {start};
      for (const RankWait* at = reached.at(start); at != start; at = reached.at(at)) cycle.push_back(at);
      std::reverse(cycle.begin() + 1, cycle.end());
      return cycle;
    }
  }
  return {};
}

std::string name(const Waiter& waiter) {
  if (waiter.call == Waiter::none) return fmt::format("rank {}", waiter.rank);
  return fmt::format("the aggregator in collective number {}, channel {}", waiter.call, waiter.channel);
}

}  // namespace

std::vector<std::string> wait_for_cycle(const std::vector<RankWait>& waits) {
  constexpr int max_searches = 1000;
  Waits of_waiter;
  for (const RankWait& wait : waits) of_waiter[wait.waiter].push_back(&wait);
  std::vector<const RankWait*> shortest;
  int searches = 0;
  for (const auto& [waiter, own] : of_waiter) {
    for (const RankWait* wait : own) {
      if (!is_between_operations(*wait, of_waiter) || ++searches > max_searches) continue;
      auto cycle = cycle_through(wait, of_waiter);
      if (!cycle.empty() && (shortest.empty() || cycle.size() < shortest.size())) shortest = std::move(cycle);
    }
  }
  std::vector<std::string> lines;
  for (const RankWait* one : shortest)
    lines.push_back(fmt::format("{} waits for {}: {}", name(one->waiter), name(one->awaited), one->text));
  return lines;
}

std::string to_lines(const std::vector<RankWait>& waits) {
  std::string text;
  for (const RankWait& wait : waits) {
    for (const Waiter& one : {wait.waiter, wait.awaited})
      text += fmt::format("{} {} {} ", one.rank, one.call, one.channel);
    text += fmt::format("{} {}\n", wait.call, wait.text);
  }
  return text;
}

std::vector<RankWait> from_lines(const std::string& lines) {
  std::vector<RankWait> waits;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    RankWait wait;
    std::istringstream words(line);
    for (Waiter* one : {&wait.waiter, &wait.awaited}) words >> one->rank >> one->call >> one->channel;
    words >> wait.call;
    words.get();
    std::getline(words, wait.text);
    waits.push_back(wait);
  }
  return waits;
}

}  // namespace weft
