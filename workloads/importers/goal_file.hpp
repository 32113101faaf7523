// SPDX-License-Identifier: GPL-2.0-only
// GOAL schedules, the input of LogGOPSim and ATLAHS: text or binary (docs/reference/traces.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "schedule/program/program.hpp"
#include "workloads/reading/byte_source.hpp"

namespace weft {

constexpr std::uint32_t goal_any = 0xffffffffU;  ///< source or tag of a recv: any (-1)

/// An operation of one rank.
struct GoalOperation {
  Operation::Kind kind = Operation::Kind::compute;
  std::uint8_t cpu = 0;
  std::uint8_t nic = 0;
  std::uint32_t peer = 0;
  std::uint32_t tag = 0;
  std::uint32_t place = 0;  ///< line of a text, number of the node in a binary file
  std::int64_t size = 0;    ///< bytes, or nanoseconds
  bool takes_any() const { return kind == Operation::Kind::recv && (peer == goal_any || tag == goal_any); }
};

/// What an operation waits for: the position of another one among those that its stream has given, and with this bit
/// only for its start (irequires).
constexpr std::uint32_t goal_at_start = 1U << 31;
constexpr std::uint32_t max_goal_operations = goal_at_start - 1;

/// The operations of one rank, each after those that it waits for.
class GoalStream {
 public:
  virtual ~GoalStream() = default;
  /// False at the end. Throws InputError.
  virtual bool next(GoalOperation& operation, std::vector<std::uint32_t>& dependencies) = 0;
};

/// One file with the schedules of all ranks.
class GoalFile {
 public:
  virtual ~GoalFile() = default;
  virtual std::uint32_t ranks() const = 0;
  /// The schedule of a rank. Ranks that are requested in ascending order are found without a search. Throws InputError
  /// for every mistake, with its line or node.
  virtual std::unique_ptr<GoalStream> stream(std::uint32_t rank) = 0;
  /// A complaint about an operation of the rank.
  virtual InputError error(std::uint32_t rank, const GoalOperation& operation, const std::string& message) const = 0;
  /// "the recv on line 7", "the recv of node 7".
  virtual std::string text_of_place(const GoalOperation& operation) const = 0;
};

/// The content of a file, from its beginning, as often as needed.
using GoalContent = std::function<ByteSource()>;

/// Text or binary, recognised by its first bytes; either may be in gzip.
std::unique_ptr<GoalFile> open_goal(const GoalContent& content);
std::unique_ptr<GoalFile> open_goal_text(const GoalContent& content);
std::unique_ptr<GoalFile> open_goal_binary(const GoalContent& content);

}  // namespace weft
