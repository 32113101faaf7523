// SPDX-License-Identifier: GPL-2.0-only
// The ids of a trace's operations, and `after`, which names them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workloads/importers/program_trace.hpp"

namespace weft {

/// What ids mean at an operation: an id may be defined once on each rank, and `after` names earlier operations of the
/// same rank.
class OperationNames {
 public:
  /// `names` are filled as ids are defined. Ids of items that come later are known, for complaints.
  OperationNames(const std::vector<Spec>& items, std::uint32_t ranks, std::vector<TraceName>& names);
  /// Lets an id mean the operation at position `item`, which is about to be added.
  void define(const Spec& id, const RankSet& ranks, std::uint32_t item);
  void read_after(const Spec& item, TraceOperation& entry) const;

 private:
  InputError unknown_id(const Spec& name) const;
  /// A rank of the set on which the name means nothing.
  std::optional<std::uint32_t> rank_without(const TraceName& name, const RankSet& ranks) const;

  std::uint32_t ranks_;
  std::vector<TraceName>& names_;
  std::map<std::string, std::uint32_t> positions_;  ///< id of an operation that has been read -> names_
  std::map<std::string, int> lines_;                ///< every id of the file -> its first line
};

}  // namespace weft
