// SPDX-License-Identifier: GPL-2.0-only
// The operations of its own rank that each operation had to wait for: the edges of the graph in which slack is
// computed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "results/tables/records.hpp"
#include "schedule/program/program.hpp"

namespace weft {

/// The log of one rank. An operation waits for what its program says, for the one before it on its stream, and, if it
/// is a collective, for the one before it on its communicator (schedule/program/program.hpp).
class DependencyLog {
 public:
  /// `operation` of `rank` starts. `stream`: what it runs on, by number; none if nothing runs there in turn.
  void starts(std::uint32_t rank, const Operation& operation, std::optional<std::uint32_t> stream,
              std::vector<DependencyRecord>& rows) {
    const auto add = [&](std::uint64_t after, DependencyKind kind) {
      rows.push_back({rank, written_++, operation.id, after, static_cast<std::uint8_t>(kind)});
    };
    for (const std::uint64_t after : operation.after) add(after, DependencyKind::end);
    for (const std::uint64_t after : operation.after_start) add(after, DependencyKind::start);
    if (stream) follow(last_of_stream_, *stream, operation.id, DependencyKind::stream, add);
    if (operation.kind == Operation::Kind::collective)
      follow(last_of_communicator_, operation.call->communicator->id(), operation.id, DependencyKind::communicator,
             add);
  }

 private:
  using Last = std::map<std::uint32_t, std::uint64_t>;
  template <class Add>
  static void follow(Last& last, std::uint32_t of, std::uint64_t id, DependencyKind kind, const Add& add) {
    const auto [at, first] = last.try_emplace(of, id);
    if (!first) add(at->second, kind);
    at->second = id;
  }
  std::uint64_t written_ = 0;
  Last last_of_stream_;
  Last last_of_communicator_;
};

}  // namespace weft
