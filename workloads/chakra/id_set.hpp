// SPDX-License-Identifier: GPL-2.0-only
// A set of numbers that only grows, and is mostly without gaps.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>

namespace weft {

/// Numbers without gaps between them take a few bytes in all; next to gaps, a bit each. Of numbers far from each other
/// each takes about a hundred bytes.
class IdSet {
 public:
  /// False if it was there.
  bool insert(std::uint64_t id) {
    const std::uint64_t number = id / page_ids;
    if (in_full(number)) return false;
    Page& page = pages_[number];
    const std::uint64_t bit = std::uint64_t{1} << (id % 64);
    std::uint64_t& word = page.words[id % page_ids / 64];
    if ((word & bit) != 0) return false;
    word |= bit;
    if (++page.count == page_ids) {
      pages_.erase(number);
      add_full(number);
    }
    return true;
  }
  bool contains(std::uint64_t id) const {
    const std::uint64_t number = id / page_ids;
    const auto page = pages_.find(number);
    if (page == pages_.end()) return in_full(number);
    return (page->second.words[id % page_ids / 64] >> (id % 64) & 1) != 0;
  }

 private:
  static constexpr std::uint64_t page_ids = 512;
  struct Page {
    std::array<std::uint64_t, page_ids / 64> words{};
    std::uint32_t count = 0;
  };
  bool in_full(std::uint64_t number) const {
    const auto next = full_.upper_bound(number);
    return next != full_.begin() && std::prev(next)->second >= number;
  }
  void add_full(std::uint64_t number) {
    auto next = full_.upper_bound(number);
    const bool joins_next = next != full_.end() && next->first == number + 1;
    const std::uint64_t last = joins_next ? next->second : number;
    if (joins_next) next = full_.erase(next);
    if (next != full_.begin() && std::prev(next)->second + 1 == number)
      std::prev(next)->second = last;
    else
      full_.emplace(number, last);
  }

  std::unordered_map<std::uint64_t, Page> pages_;  // looked up, never walked
  std::map<std::uint64_t, std::uint64_t> full_;    // first -> last page of a run of full ones
};

}  // namespace weft
