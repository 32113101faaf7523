// SPDX-License-Identifier: GPL-2.0-only
// Ranks of GOAL schedules in a temporary file, and in the order of their dependencies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "support/system/sorted_records.hpp"
#include "support/system/temporary_file.hpp"
#include "workloads/importers/goal_file.hpp"

namespace weft {

/// Ranks that have been converted, one after the other: operations with the positions of those that they wait for.
class ConvertedGoals {
 public:
  /// Of one rank.
  struct Part {
    std::uint64_t begin = 0, end = 0;
    bool in_order = true;  ///< operations stand behind those that they wait for
  };
  Part begin() const { return {file_->size(), file_->size(), true}; }
  /// The part's next operation, which is the `number`-th. Nothing else is appended before its last one.
  void append(Part& part, std::uint32_t number, const GoalOperation& operation,
              const std::vector<std::uint32_t>& before);
  /// In the order of the part.
  std::unique_ptr<GoalStream> stream(const Part& part) const;

 private:
  std::shared_ptr<TemporaryFile> file_ = std::make_shared<TemporaryFile>();
};

using GoalComplaint = std::function<InputError(const GoalOperation&, const std::string&)>;

/// Takes the operations of a rank in the order of the file, and gives them in the order of their dependencies; of those
/// that could come next, the first in the file. Memory: the operations that wait for one that has not come yet, and a
/// bit for each.
class GoalSorting {
 public:
  /// `before`: positions in the file that it waits for, with goal_at_start, ascending and without doubles.
  void add(const GoalOperation& operation, const std::vector<std::uint32_t>& before);
  /// Appends all of them. Throws what `error` makes if some wait for each other.
  ConvertedGoals::Part write(ConvertedGoals& goals, const GoalComplaint& error);

 private:
  struct Held {
    GoalOperation operation;
    std::vector<std::uint32_t> before;
    std::size_t missing = 0;
  };
  struct Place {
    std::uint32_t in_file, in_order;
    auto operator<=>(const Place&) const = default;
  };
  struct Use {
    std::uint32_t before, in_order, at_start;
    auto operator<=>(const Use&) const = default;
  };
  struct Wait {
    std::uint32_t in_order, before;  ///< with goal_at_start
    auto operator<=>(const Wait&) const = default;
  };
  void give(std::uint32_t place, const GoalOperation& operation, const std::vector<std::uint32_t>& before);
  void find_waits();

  std::uint32_t taken_ = 0, given_ = 0;
  std::vector<bool> is_given_;                                             // [place in the file]
  std::map<std::uint32_t, Held> held_;                                     // by place in the file
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> waiting_;  // place -> held; looked up only
  TemporaryFile operations_;                                               // in order
  SortedRecords<Place> places_;
  SortedRecords<Use> uses_;
  SortedRecords<Wait> waits_;
};

}  // namespace weft
