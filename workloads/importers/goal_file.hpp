// SPDX-License-Identifier: GPL-2.0-only
// GOAL schedules as text, the input of LogGOPSim and ATLAHS (docs/traces.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/program.hpp"
#include "workloads/reading/byte_source.hpp"

namespace weft {

/// An operation of one rank. Dependencies are positions in the rank's list.
struct GoalOperation {
  Operation::Kind kind = Operation::Kind::compute;
  std::uint8_t cpu = 0;
  std::uint8_t nic = 0;
  std::uint32_t peer = 0;
  std::uint32_t tag = 0;
  std::uint32_t line = 0;
  std::int64_t size = 0;  ///< bytes, or nanoseconds
};

/// The schedule of one rank in an order in which each operation stands behind those that it waits for.
struct GoalRank {
  std::vector<GoalOperation> operations;
  std::vector<std::uint32_t> first_dependency;  ///< [operation], and the end
  std::vector<std::uint32_t> dependencies;      ///< those of operation i from first_dependency[i] on
};

/// Where the schedules of a file begin.
struct GoalIndex {
  struct Place {
    std::uint64_t byte = 0;
    std::uint32_t line = 0;
  };
  std::vector<Place> ranks;  ///< of the word `rank`
};

/// Reads a file section by section. Every mistake is an InputError with file and line.
class GoalFile {
 public:
  explicit GoalFile(ByteSource source);
  std::uint32_t ranks() const { return ranks_; }
  /// The next rank's schedule, in the order of the file; false after the last.
  bool next(GoalRank& rank);
  /// Where next() begins.
  GoalIndex::Place place() const { return {source_.taken(), line_}; }
  /// Goes on there, with this rank.
  void go_to(const GoalIndex::Place& place, std::uint32_t rank);

 private:
  class Section;
  InputError error(const std::string& message) const {
    return InputError({source_.name(), static_cast<int>(line_)}, message);
  }
  int take();
  void skip_blanks(bool lines);
  bool skip_comment();
  std::string word();
  std::uint64_t number(const std::string& text, const std::string& what, std::uint64_t most) const;
  void expect(const std::string& text);
  bool statement(Section& section);

  ByteSource source_;
  std::uint32_t line_ = 1;
  std::uint32_t ranks_ = 0;
  std::uint32_t rank_ = 0;  // next one
};

}  // namespace weft
