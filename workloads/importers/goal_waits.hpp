// SPDX-License-Identifier: GPL-2.0-only
// The dependencies of one rank of a GOAL text, which names them by labels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/system/sorted_records.hpp"
#include "workloads/importers/goal_file.hpp"

namespace weft {

/// Takes labels and relations in the order of the file, and gives what each operation waits for in the order of the
/// operations. Nothing but sorted runs on disk holds more than a part of them.
class GoalWaits {
 public:
  /// The next operation of the file has this label; none if it is empty.
  void operation(const std::string& label);
  /// `requires`, or with `at_start` `irequires`, of two labels that are defined above.
  void relation(const std::string& label, const std::string& before, bool at_start);

  /// A label that no operation above has: the relation's number from 0, and whether the label is the one after the
  /// verb.
  struct Unknown {
    std::uint64_t relation = 0;
    bool before = false;
    auto operator<=>(const Unknown&) const = default;
  };
  /// Two operations with the same label, numbered from 0.
  struct Twice {
    std::uint32_t second = 0;
    std::uint32_t first = 0;
    auto operator<=>(const Twice&) const = default;
  };
  /// Only after resolve(): the first operation that has the label of one above.
  const std::optional<Twice>& twice() const { return twice_; }
  /// Behind the last relation: finds the operations. The first label that is not known, if there is one.
  std::optional<Unknown> resolve();
  /// Only after resolve(): what operation `number` waits for, without duplicates; numbers must be requested in
  /// ascending order.
  void of(std::uint32_t number, std::vector<std::uint32_t>& before);

 private:
  /// A label of up to 15 letters, or two hashes of a longer one.
  using Key = std::array<std::uint64_t, 2>;
  struct Definition {
    Key key;
    std::uint64_t place;  ///< relations that stand above it
    std::uint32_t operation;
    auto operator<=>(const Definition&) const = default;
  };
  struct Use {
    Key key;
    std::uint64_t relation;
    std::uint32_t before;    ///< 1: behind the verb
    std::uint32_t at_start;  ///< goal_at_start or 0
    auto operator<=>(const Use&) const = default;
  };
  struct End {
    std::uint64_t relation;
    std::uint32_t before;
    std::uint32_t operation;  ///< with goal_at_start
    auto operator<=>(const End&) const = default;
  };
  struct Wait {
    std::uint32_t operation;
    std::uint32_t before;  ///< with goal_at_start
    auto operator<=>(const Wait&) const = default;
  };
  static Key key_of(const std::string& label);
  std::optional<Unknown> find_operations();
  /// The next label in sorted order; notes those that several operations have.
  bool next_definition(Definition& definition);
  void join_ends();

  std::uint32_t operations_ = 0;
  std::uint64_t relations_ = 0;
  SortedRecords<Definition> definitions_;
  SortedRecords<Use> uses_;
  SortedRecords<End> ends_;
  SortedRecords<Wait> waits_;
  std::optional<Wait> next_;
  std::optional<Definition> definition_;
  std::optional<Twice> twice_;
};

}  // namespace weft
