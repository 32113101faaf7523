// SPDX-License-Identifier: GPL-2.0-only
// Which nodes have something to do in which window.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace weft {

/// Nodes by the number of the window in which they act next: a ring of the near windows and a heap for the far ones. A
/// node that is moved to an earlier window leaves a stale entry behind, which is skipped.
class NodeCalendar {
 public:
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  void resize(std::size_t nodes) { window_of_.assign(nodes, none); }

  /// Make sure that `node` is visited in `window` or before.
  void schedule(std::uint32_t node, std::uint64_t window) {
    if (window < window_of_[node]) enter(node, window);
  }

  /// First window in which some node acts, or none.
  std::uint64_t first() {
    while (entries_ > 0) {
      if (!far_.empty() && far_.top().first < base_ + near_windows) far_to_near();
      for (std::uint64_t i = 0; i < near_windows; ++i) {
        const std::uint64_t window = base_ + i;
        if (live(window)) {
          base_ = window;
          return window;
        }
      }
      base_ = earliest_entry();
    }
    return none;
  }

  /// Move out the nodes of `window`, which must be first(); they are no longer scheduled.
  void take(std::uint64_t window, std::vector<std::uint32_t>& nodes) {
    nodes.clear();
    auto& bucket = near_[window % near_windows];
    std::size_t kept = 0;
    for (const auto& entry : bucket) {
      if (entry.first != window) {
        bucket[kept++] = entry;
        continue;
      }
      --entries_;
      if (window_of_[entry.second] != window) continue;
      window_of_[entry.second] = none;
      nodes.push_back(entry.second);
    }
    bucket.resize(kept);
  }

 private:
  using Entry = std::pair<std::uint64_t, std::uint32_t>;
  static constexpr std::uint64_t near_windows = 256;

  // Out of line: once per node and window, and whoever sends a packet need not save registers for it.
  [[gnu::noinline]] void enter(std::uint32_t node, std::uint64_t window) {
    window_of_[node] = window;
    if (window < base_) base_ = window;
    if (window - base_ < near_windows)
      near_[window % near_windows].push_back({window, node});
    else
      far_.push({window, node});
    ++entries_;
  }
  void far_to_near() {
    while (!far_.empty() && far_.top().first < base_ + near_windows) {
      near_[far_.top().first % near_windows].push_back(far_.top());
      far_.pop();
    }
  }
  // Some node acts in `window`. If none does, stale entries of that window go.
  bool live(std::uint64_t window) {
    auto& bucket = near_[window % near_windows];
    if (bucket.empty()) return false;
    for (const Entry& entry : bucket)
      if (entry.first == window && window_of_[entry.second] == window) return true;
    entries_ -= std::erase_if(bucket, [window](const Entry& entry) { return entry.first == window; });
    return false;
  }
  // The ring may hold windows beyond its span: the base moves back when an earlier window is scheduled.
  std::uint64_t earliest_entry() const {
    std::uint64_t least = far_.empty() ? none : far_.top().first;
    for (const auto& bucket : near_)
      for (const Entry& entry : bucket) least = entry.first < least ? entry.first : least;
    return least;
  }

  std::vector<std::uint64_t> window_of_;
  std::vector<Entry> near_[near_windows];
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> far_;
  std::uint64_t base_ = 0;
  std::uint64_t entries_ = 0;
};

}  // namespace weft
