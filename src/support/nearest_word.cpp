// SPDX-License-Identifier: GPL-2.0-only
// "Did you mean": the nearest of the known words.
#include <algorithm>

#include <fmt/format.h>

#include "support/spec.hpp"

namespace weft {
namespace {

/// Edits (insert, delete, replace, swap neighbours) from one word to the other, no stretch edited twice. F. J. Damerau,
/// "A technique for computer detection and correction of spelling errors", CACM 7(3), 1964, doi:10.1145/363958.363994.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  const std::size_t columns = b.size() + 1;
  std::vector<std::size_t> table((a.size() + 1) * columns);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return table[i * columns + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(a.size(), b.size());
}

}  // namespace

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  constexpr std::size_t longest = 200;  // the table is quadratic, and no name is as long
  if (word.empty() || word.size() > longest) return "";
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  const std::string* nearest = nullptr;
  for (const std::string& candidate : known) {
    if (candidate.size() > longest) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= best) continue;
    best = distance;
    nearest = &candidate;
  }
  return nearest == nullptr ? "" : fmt::format(" (did you mean '{}'?)", *nearest);
}

}  // namespace weft
