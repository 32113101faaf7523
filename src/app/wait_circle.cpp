// SPDX-License-Identifier: GPL-2.0-only
#include "app/wait_circle.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

namespace weft {
namespace {

using Waits = std::map<std::uint32_t, std::vector<const RankWait*>>;

/// Shortest way from `start` back to itself, or nothing: breadth first.
std::vector<const RankWait*> circle_through(std::uint32_t start, const Waits& of_rank) {
  std::map<std::uint32_t, const RankWait*> reached;  // by which wait
  std::vector<std::uint32_t> queue = {start};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const auto waits = of_rank.find(queue[i]);
    if (waits == of_rank.end()) continue;
    for (const RankWait* wait : waits->second) {
      if (!reached.emplace(wait->awaited, wait).second) continue;
      if (wait->awaited != start) {
        queue.push_back(wait->awaited);
        continue;
      }
      std::vector<const RankWait*> circle;
      for (std::uint32_t at = start; circle.empty() || at != start; at = circle.back()->rank)
        circle.push_back(reached.at(at));
      std::reverse(circle.begin(), circle.end());
      return circle;
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> wait_circle(const std::vector<RankWait>& waits) {
  Waits of_rank;
  for (const RankWait& wait : waits) of_rank[wait.rank].push_back(&wait);
  for (const auto& [rank, unused] : of_rank) {
    const auto circle = circle_through(rank, of_rank);
    if (circle.empty()) continue;
    std::vector<std::string> lines;
    for (const RankWait* wait : circle)
      lines.push_back(fmt::format("rank {} waits for rank {}: {}", wait->rank, wait->awaited, wait->text));
    return lines;
  }
  return {};
}

std::string to_lines(const std::vector<RankWait>& waits) {
  std::string text;
  for (const RankWait& wait : waits) text += fmt::format("{} {} {}\n", wait.rank, wait.awaited, wait.text);
  return text;
}

std::vector<RankWait> from_lines(const std::string& lines) {
  std::vector<RankWait> waits;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    RankWait wait;
    std::istringstream words(line);
    words >> wait.rank >> wait.awaited;
    words.get();
    std::getline(words, wait.text);
    waits.push_back(wait);
  }
  return waits;
}

}  // namespace weft
