// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/importers/program_names.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weft {

OperationNames::OperationNames(const std::vector<Spec>& items, std::uint32_t ranks, std::vector<TraceName>& names)
    : ranks_(ranks), names_(names) {
  for (const Spec& item : items)
    if (item.is_map())
      if (const auto id = item.find("id")) lines_.try_emplace(id->text(), id->where().line);
}

void OperationNames::read_after(const Spec& item, TraceOperation& entry) const {
  const auto after = item.find("after");
  if (!after) return;
  const std::vector<Spec> names = after->is_sequence() ? after->items() : std::vector<Spec>{*after};
  for (const Spec& name : names) {
    const auto at = positions_.find(name.text());
    if (at == positions_.end()) throw unknown_id(name);
    const std::optional<std::uint32_t> lacking = rank_without(names_[at->second], entry.ranks);
    if (lacking)
      throw name.error(fmt::format("rank {} has no earlier operation '{}'; 'after' names operations of the same rank",
                                   *lacking, name.text()));
    if (std::find(entry.after.begin(), entry.after.end(), at->second) == entry.after.end())
      entry.after.push_back(at->second);
  }
}

InputError OperationNames::unknown_id(const Spec& name) const {
  const std::string text = name.text();
  if (const auto later = lines_.find(text); later != lines_.end())
    return name.error(
        fmt::format("'{}' is not yet defined here (line {}); operations are in program order", text, later->second));
  std::vector<std::string> known;
  for (const auto& [id, line] : lines_) known.push_back(id);
  return name.error(fmt::format("unknown operation '{}'{}", text, did_you_mean(text, known)));
}

std::optional<std::uint32_t> OperationNames::rank_without(const TraceName& name, const RankSet& ranks) const {
  if (name.of_all >= 0) return std::nullopt;
  for (const std::uint32_t rank : ranks.ranks)
    if (name.item(rank) < 0) return rank;
  for (std::uint32_t rank = 0; ranks.all && rank < ranks_; ++rank)
    if (name.item(rank) < 0) return rank;
  return std::nullopt;
}

void OperationNames::define(const Spec& id, const RankSet& ranks, std::uint32_t item) {
  const auto [at, fresh] = positions_.try_emplace(id.text(), static_cast<std::uint32_t>(names_.size()));
  if (fresh) names_.push_back(TraceName{id.text(), -1, {}});
  TraceName& name = names_[at->second];
  bool twice = name.of_all >= 0 || (ranks.all && !name.of_ranks.empty());
  for (const std::uint32_t rank : ranks.ranks) twice = twice || !name.of_ranks.emplace(rank, item).second;
  if (twice)
    throw id.error(fmt::format("a rank has two operations '{}' (first on line {})", id.text(), lines_.at(id.text())));
  if (ranks.all) name.of_all = item;
}

}  // namespace weft
