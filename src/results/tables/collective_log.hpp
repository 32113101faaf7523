// SPDX-License-Identifier: GPL-2.0-only
// What the ranks of a process did in collectives, however many there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "results/tables/records.hpp"
#include "support/system/sorted_records.hpp"

namespace weft {

/// Takes parts of collectives in any order, and gives them in ascending order of (collective, rank). Memory does not
/// grow with their number: all but the latest stand in a temporary file (TMPDIR). Throws EnvironmentError if that
/// cannot be written or read.
class CollectiveLog {
 public:
  /// What the rank that ended last, of those that have been told together, has spent its part on.
  struct Times {
    std::uint32_t collective = 0;
    CollectiveTimes times;
    bool operator<(const Times& other) const { return collective < other.collective; }
  };
  using PartCursor = SortedRecords<CollectivePart>::Cursor;
  using TimesCursor = SortedRecords<Times>::Cursor;

  /// `in_memory`: parts, and a fourth as many times, that stand in memory.
  explicit CollectiveLog(std::size_t in_memory = std::size_t{1} << 14)
      : times_in_memory_(in_memory / 4), parts_(in_memory), times_(in_memory / 4) {}

  void add(const CollectivePart& part);
  void add(std::uint32_t collective, const CollectiveTimes& times);

  /// All have been added. A second call does nothing.
  void sort();
  /// Of all ranks, in order. Behind sort().
  PartCursor parts() const { return PartCursor(parts_); }
  /// One or more for each collective with times, in order of the collectives. Behind sort().
  TimesCursor times() const { return TimesCursor(times_); }

  std::uint64_t size() const { return parts_.size(); }
  /// Sum of the fingerprints of all parts.
  std::uint64_t fingerprint() const { return fingerprint_; }
  /// A part of the collective with the greatest number; if size() is 0, nobody's.
  const CollectivePart& greatest() const { return greatest_; }

 private:
  std::size_t times_in_memory_;
  SortedRecords<CollectivePart> parts_;
  SortedRecords<Times> times_;
  std::unordered_map<std::uint32_t, CollectiveTimes> latest_;  // by collective
  std::uint64_t fingerprint_ = 0;
  CollectivePart greatest_;
};

}  // namespace weft
