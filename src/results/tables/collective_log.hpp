// SPDX-License-Identifier: GPL-2.0-only
// The log of what the ranks of a process did in collectives, for any number of collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "results/tables/records.hpp"
#include "support/system/sorted_records.hpp"

namespace weft {

/// Takes parts of collectives in any order, and gives them in ascending order of (collective, rank). Memory does not
/// grow with their number: all but the latest are in a temporary file (TMPDIR). Throws EnvironmentError if that cannot
/// be written or read.
class CollectiveLog {
 public:
  /// Parts of the time of the rank that ended last, among those that were added together.
  struct Times {
    std::uint32_t collective = 0;
    CollectiveTimes times;
    bool operator<(const Times& other) const { return collective < other.collective; }
  };
  using PartCursor = SortedRecords<CollectivePart>::Cursor;
  using TimesCursor = SortedRecords<Times>::Cursor;

  /// `in_memory`: the number of parts that are kept in memory; a fourth as many times are kept there.
  explicit CollectiveLog(std::size_t in_memory = std::size_t{1} << 14)
      : times_in_memory_(in_memory / 4), parts_(in_memory), times_(in_memory / 4) {}

  void add(const CollectivePart& part);
  void add(std::uint32_t collective, const CollectiveTimes& times);

  /// To be called when all have been added. A second call does nothing.
  void sort();
  /// Parts of all ranks, in order. Only after sort().
  PartCursor parts() const { return PartCursor(parts_); }
  /// One or more for each collective with times, in order of the collectives. Only after sort().
  TimesCursor times() const { return TimesCursor(times_); }

  std::uint64_t size() const { return parts_.size(); }
  /// Sum of the fingerprints of all parts.
  std::uint64_t fingerprint() const { return fingerprint_; }
  /// A part of the collective with the largest number; if size() is 0, of no collective.
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
