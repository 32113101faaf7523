// SPDX-License-Identifier: GPL-2.0-only
// "Did you mean": the nearest of the known words.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/documents/spec.hpp"

namespace weft {
namespace {

/// The cost of an edit; a character that joins the parts of a name costs half an edit, and capitals cost nothing.
constexpr std::size_t edit = 2;

std::size_t cost_of(char one) { return one == '-' || one == '_' || one == '.' || one == ' ' ? edit / 2 : edit; }

std::size_t cost_of(char one, char other) {
  const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  if (small(one) == small(other)) return 0;
  return cost_of(one) < edit && cost_of(other) < edit ? edit / 2 : edit;
}

/// Edits (insert, delete, replace, swap neighbours) from one word to the other, no stretch edited twice. F. J. Damerau,
/// "A technique for computer detection and correction of spelling errors", CACM 7(3), 1964, doi:10.1145/363958.363994.
std::size_t edit_cost(const std::string& a, const std::string& b) {
  const std::size_t columns = b.size() + 1;
  std::vector<std::size_t> table((a.size() + 1) * columns);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return table[i * columns + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i > 0 ? at(i - 1, 0) + cost_of(a[i - 1]) : 0;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j > 0 ? at(0, j - 1) + cost_of(b[j - 1]) : 0;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = at(i - 1, j - 1) + cost_of(a[i - 1], b[j - 1]);
      at(i, j) = std::min({at(i - 1, j) + cost_of(a[i - 1]), at(i, j - 1) + cost_of(b[j - 1]), replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + edit);
    }
  }
  return at(a.size(), b.size());
}

bool joins(const std::string& text, std::size_t at) { return at >= text.size() || cost_of(text[at]) < edit; }

constexpr std::size_t shortest_part = 4;

/// Whether the name is the first part of the word ("tensor" of "tensor_parallel").
bool begins(const std::string& name, const std::string& word) {
  return name.size() >= shortest_part && name != word && word.starts_with(name) && joins(word, name.size());
}

/// Known names that have the word as one of their parts ("tree" of "double_binary_tree"), or that are the first part of
/// the word.
std::vector<std::string> sharing_a_part(const std::string& word, const std::vector<std::string>& known) {
  constexpr std::size_t max = 3;
  std::vector<std::string> found;
  for (const std::string& name : known) {
    const std::size_t at = word.size() < shortest_part ? std::string::npos : name.find(word);
    const bool part = at != std::string::npos && (at == 0 || joins(name, at - 1)) && joins(name, at + word.size());
    if ((part || begins(name, word)) && found.size() < max && name != word) found.push_back(name);
  }
  return found;
}

}  // namespace

bool nearly_the_same(const std::string& word, const std::string& known, std::size_t edits) {
  return edit_cost(word, known) <= edits * edit;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  constexpr std::size_t longest = 200;  // the table is quadratic, and no name is as long
  if (word.empty() || word.size() > longest) return "";
  std::size_t best = edit * std::max<std::size_t>(1, word.size() / 3) + 1;
  const std::string* nearest = nullptr;
  for (const std::string& candidate : known) {
    if (candidate.size() > longest) continue;
    const std::size_t distance = edit_cost(word, candidate);
    if (distance >= best) continue;
    best = distance;
    nearest = &candidate;
  }
  // "micro_batch" instead of "micro_batches" for "micro_batch_size": three edits and more are no misspelling.
  if (nearest != nullptr && best > 2 * edit)
    for (const std::string& candidate : known)
      if (begins(candidate, word)) nearest = &candidate;
  if (nearest != nullptr) return fmt::format(" (did you mean '{}'?)", *nearest);
  const std::vector<std::string> parts = sharing_a_part(word, known);
  return parts.empty() ? "" : fmt::format(" (did you mean '{}'?)", fmt::join(parts, "' or '"));
}

}  // namespace weft
