// SPDX-License-Identifier: GPL-2.0-only
// Sorting more records than memory should hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/system/temporary_file.hpp"

namespace weft {

/// Takes records in any order, and gives them in ascending order, as often as they are asked for. Merge sort with runs
/// in a temporary file (D. Knuth, "The Art of Computer Programming", vol. 3, 5.4): memory is that of `run` records, and
/// a block of each of `fan_in` runs for each that reads.
template <class Record>
class SortedRecords {
  static_assert(std::is_trivially_copyable_v<Record>);

  /// Sorted records in the file, as numbers of records.
  struct Run {
    std::uint64_t begin = 0, end = 0;
  };

 public:
  /// Goes through all records in order. Behind sort(); lives no longer than what it reads, which does not move.
  class Cursor {
   public:
    explicit Cursor(const SortedRecords& records) : records_(records) { open(records.file_, records.runs_); }

    /// The next one in order, or false. Throws EnvironmentError if the temporary file cannot be read.
    bool next(Record& record) {
      if (!records_.runs_.empty()) return merged(record);
      if (at_ == records_.run_.size()) return false;
      record = records_.run_[at_++];
      return true;
    }

   private:
    friend class SortedRecords;
    /// What has been read of a run.
    struct Reading {
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
    static bool later(const Reading& a, const Reading& b) { return b.block[b.taken] < a.block[a.taken]; }

    Cursor(const SortedRecords& records, const std::vector<Run>& runs) : records_(records) {
      open(records.file_, runs);
    }

    void open(const TemporaryFile& file, const std::vector<Run>& runs) {
      for (const Run& run : runs) {
        Reading reading{run.begin, run.end, {}, 0};
        if (reading.fill(file)) heap_.push_back(std::move(reading));
      }
      std::make_heap(heap_.begin(), heap_.end(), later);
    }

    bool merged(Record& record) {
      if (heap_.empty()) return false;
      std::pop_heap(heap_.begin(), heap_.end(), later);
      Reading& reading = heap_.back();
      record = reading.block[reading.taken++];
      if (reading.taken < reading.block.size() || reading.fill(records_.file_))
        std::push_heap(heap_.begin(), heap_.end(), later);
      else
        heap_.pop_back();
      return true;
    }

    const SortedRecords& records_;
    std::size_t at_ = 0;
    std::vector<Reading> heap_;  // by their next records
  };

  explicit SortedRecords(std::size_t run = std::size_t{1} << 15, std::size_t fan_in = 64)
      : run_length_(run), fan_in_(fan_in) {}

  /// Not behind sort(). Throws EnvironmentError if the temporary file cannot be written.
  void add(const Record& record) {
    run_.push_back(record);
    if (run_.size() >= run_length_) write_run();
  }

  /// To be called when all have been added. A second call does nothing.
  void sort() {
    if (runs_.empty()) return std::sort(run_.begin(), run_.end());
    if (!run_.empty()) write_run();
    std::vector<Record>().swap(run_);
    while (runs_.size() > fan_in_) merge_groups();
  }

  std::uint64_t size() const { return file_.size() / sizeof(Record) + run_.size(); }

  /// The next one in order, or false. Behind sort(), after which these do not move.
  bool next(Record& record) {
    if (!reading_) reading_ = std::make_unique<Cursor>(*this);
    return reading_->next(record);
  }

 private:
  void write_run() {
    std::sort(run_.begin(), run_.end());
    const std::uint64_t begin = file_.size() / sizeof(Record);
    file_.append(run_.data(), run_.size() * sizeof(Record));
    runs_.push_back({begin, begin + run_.size()});
    run_.clear();
  }

  void merge_groups() {
    TemporaryFile longer;
    std::vector<Run> runs;
    for (auto first = runs_.begin(); first != runs_.end();) {
      const auto last = first + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(fan_in_), runs_.end() - first);
      const std::uint64_t begin = longer.size() / sizeof(Record);
      Cursor cursor(*this, std::vector<Run>(first, last));
      for (Record record; cursor.merged(record);) longer.append(&record, sizeof(Record));
      runs.push_back({begin, longer.size() / sizeof(Record)});
      first = last;
    }
    file_ = std::move(longer);
    runs_ = std::move(runs);
  }

  std::size_t run_length_, fan_in_;
  std::vector<Record> run_;
  TemporaryFile file_;
  std::vector<Run> runs_;
  std::unique_ptr<Cursor> reading_;
};

}  // namespace weft
