// SPDX-License-Identifier: GPL-2.0-only
// Sorting more records than memory should hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/temporary_file.hpp"

namespace weft {

/// Takes records in any order, and gives them in ascending order. Merge sort with runs in a temporary file (D. Knuth,
/// "The Art of Computer Programming", vol. 3, 5.4): memory is that of `run` records, and a block of each of `fan_in`
/// runs.
template <class Record>
class SortedRecords {
  static_assert(std::is_trivially_copyable_v<Record>);

 public:
  explicit SortedRecords(std::size_t run = std::size_t{1} << 15, std::size_t fan_in = 64)
      : run_length_(run), fan_in_(fan_in) {}

  void add(const Record& record) {
    run_.push_back(record);
    if (run_.size() >= run_length_) write_run();
  }

  /// All have been added.
  void sort() {
    if (runs_.empty()) return std::sort(run_.begin(), run_.end());
    if (!run_.empty()) write_run();
    std::vector<Record>().swap(run_);
    while (runs_.size() > fan_in_) merge_groups();
    open(runs_.begin(), runs_.end());
  }

  /// The next one in order, or false. Behind sort().
  bool next(Record& record) {
    if (runs_.empty()) {
      if (at_ == run_.size()) return false;
      record = run_[at_++];
      return true;
    }
    return merged(file_, record);
  }

 private:
  /// Sorted records in the file, as numbers of records, and those that have been read of them.
  struct Run {
    std::uint64_t at = 0, end = 0;
    std::vector<Record> block;
    std::size_t taken = 0;
    bool fill(const TemporaryFile& file) {
      constexpr std::size_t records_of_a_block = 256;
      block.resize(static_cast<std::size_t>(std::min<std::uint64_t>(records_of_a_block, end - at)));
      taken = 0;
      if (block.empty()) return false;
      file.read(at * sizeof(Record), block.data(), block.size() * sizeof(Record));
      at += block.size();
      return true;
    }
  };
  using Runs = std::vector<Run>;

  static bool later(const Run* a, const Run* b) { return b->block[b->taken] < a->block[a->taken]; }

  void write_run() {
    std::sort(run_.begin(), run_.end());
    const std::uint64_t begin = file_.size() / sizeof(Record);
    file_.append(run_.data(), run_.size() * sizeof(Record));
    runs_.push_back({begin, begin + run_.size(), {}, 0});
    run_.clear();
  }

  void open(typename Runs::iterator first, typename Runs::iterator last) {
    heap_.clear();
    for (; first != last; ++first)
      if (first->fill(file_)) heap_.push_back(&*first);
    std::make_heap(heap_.begin(), heap_.end(), later);
  }

  bool merged(const TemporaryFile& file, Record& record) {
    if (heap_.empty()) return false;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Run& run = *heap_.back();
    record = run.block[run.taken++];
    if (run.taken < run.block.size() || run.fill(file))
      std::push_heap(heap_.begin(), heap_.end(), later);
    else
      heap_.pop_back();
    return true;
  }

  void merge_groups() {
    TemporaryFile longer;
    Runs runs;
    for (auto first = runs_.begin(); first != runs_.end();) {
      const auto last = first + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(fan_in_), runs_.end() - first);
      const std::uint64_t begin = longer.size() / sizeof(Record);
      open(first, last);
      for (Record record; merged(file_, record);) longer.append(&record, sizeof(Record));
      runs.push_back({begin, longer.size() / sizeof(Record), {}, 0});
      first = last;
    }
    file_ = std::move(longer);
    runs_ = std::move(runs);
  }

  std::size_t run_length_, fan_in_;
  std::vector<Record> run_;
  std::size_t at_ = 0;
  TemporaryFile file_;
  Runs runs_;
  std::vector<Run*> heap_;  // by their next records
};

}  // namespace weft
