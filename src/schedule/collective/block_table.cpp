// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/collective/block_table.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>

#include "support/basics/contract.hpp"
#include "support/system/temporary_file.hpp"

namespace weft {
/// Both files have lines by rank and group, which is the number of the line in the rank's row or column. Rows are
/// stored one after the other; columns a group at a time, as the rows are read.
class BlockTable::Stored {
  /// Blocks of one sender to consecutive receivers, or of one receiver from consecutive senders, after the offset of
  /// the first of them.
  struct BlockLine {
    static constexpr std::uint32_t blocks = 31;
    std::int64_t offset = 0;
    std::array<std::int64_t, blocks> bytes{};

    std::int64_t offset_of(std::uint32_t block) const {
      return std::accumulate(bytes.begin(), bytes.begin() + block, offset);
    }
  };
  /// The line of the rank that was requested last.
  struct RecentLine {
    std::uint32_t group = 0;
    BlockLine line;
  };

 public:
  explicit Stored(std::uint32_t ranks)
      : ranks_(ranks),
        groups_((ranks + BlockLine::blocks - 1) / BlockLine::blocks),
        coming_(ranks),
        recent_of_row_(ranks),
        recent_of_column_(ranks) {}

  void add_row(const std::vector<std::int64_t>& row) {
    std::int64_t sent = 0;
    rows_have_bytes_.resize(rows_have_bytes_.size() + groups_);
    for (std::uint32_t first = 0; first < ranks_; first += BlockLine::blocks) {
      BlockLine line;
      line.offset = sent;
      for (std::uint32_t to = first; to < std::min(first + BlockLine::blocks, ranks_); ++to) {
        line.bytes[to - first] = row[to];
        coming_[to].bytes[rows_ % BlockLine::blocks] = row[to];
        sent += row[to];
      }
      rows_have_bytes_[std::size_t{rows_} * groups_ + first / BlockLine::blocks] = sent > line.offset;
      of_rows_.append(&line, sizeof line);
    }
    if (++rows_ % BlockLine::blocks == 0) write_columns();
  }
  void finish() {
    if (rows_ % BlockLine::blocks != 0) write_columns();
    coming_ = {};
  }

  std::int64_t input_offset(std::uint32_t from, std::uint32_t to) const {
    return row(from, to / BlockLine::blocks).offset_of(to % BlockLine::blocks);
  }
  std::int64_t output_offset(std::uint32_t from, std::uint32_t to) const {
    return column(to, from / BlockLine::blocks).offset_of(from % BlockLine::blocks);
  }
  /// Reads no line itself: senders and receivers have read theirs for the offsets that they need.
  std::int64_t bytes(std::uint32_t from, std::uint32_t to) const {
    if (!rows_have_bytes_[std::size_t{from} * groups_ + to / BlockLine::blocks]) return 0;
    const RecentLine* of_row = recent_of_row_[from].get();
    if (of_row != nullptr && of_row->group == to / BlockLine::blocks) return of_row->line.bytes[to % BlockLine::blocks];
    const RecentLine* of_column = recent_of_column_[to].get();
    if (of_column != nullptr && of_column->group == from / BlockLine::blocks)
      return of_column->line.bytes[from % BlockLine::blocks];
    const std::uint64_t place = place_in_rows(from, to / BlockLine::blocks) + offsetof(BlockLine, bytes) +
                                sizeof(std::int64_t) * (to % BlockLine::blocks);
    std::int64_t one = 0;
    read(of_rows_, place, &one, sizeof one);
    return one;
  }

 private:
  using Recent = std::vector<std::unique_ptr<RecentLine>>;

  void write_columns() {
    of_columns_.append(coming_.data(), sizeof(BlockLine) * coming_.size());
    for (BlockLine& line : coming_) line = {line.offset_of(BlockLine::blocks), {}};
  }
  std::uint64_t place_in_rows(std::uint32_t from, std::uint32_t group) const {
    return (std::uint64_t{from} * groups_ + group) * sizeof(BlockLine);
  }
  const BlockLine& row(std::uint32_t from, std::uint32_t group) const {
    return line_of(recent_of_row_[from], group, of_rows_, place_in_rows(from, group));
  }
  const BlockLine& column(std::uint32_t to, std::uint32_t group) const {
    return line_of(recent_of_column_[to], group, of_columns_, (std::uint64_t{group} * ranks_ + to) * sizeof(BlockLine));
  }
  static const BlockLine& line_of(std::unique_ptr<RecentLine>& recent, std::uint32_t group, const TemporaryFile& file,
                                  std::uint64_t place) {
    if (recent && recent->group == group) return recent->line;
    if (!recent) recent = std::make_unique<RecentLine>();
    recent->group = group;
    read(file, place, &recent->line, sizeof recent->line);
    return recent->line;
  }
  static void read(const TemporaryFile& file, std::uint64_t place, void* to, std::size_t bytes) {
    const std::size_t found = file.read(place, to, bytes);
    WEFT_EXPECT(found == bytes, "{} B of a table of blocks, at {}", found, place);
  }

  std::uint32_t ranks_;
  std::uint32_t groups_;
  std::uint32_t rows_ = 0;
  std::vector<BlockLine> coming_;      // of columns
  std::vector<bool> rows_have_bytes_;  // by rank and group: lines without any are not read, and most are of a few pairs
  TemporaryFile of_rows_;
  TemporaryFile of_columns_;
  mutable Recent recent_of_row_;
  mutable Recent recent_of_column_;
};

BlockTable::BlockTable(std::uint32_t ranks, std::vector<std::int64_t> bytes)
    : ranks_(ranks), of_pairs_(ranks > 1 && bytes.size() == std::size_t{ranks} * ranks), bytes_(std::move(bytes)) {
  WEFT_EXPECT(bytes_.size() == ranks || of_pairs_, "{} block sizes of {} ranks", bytes_.size(), ranks);
  find_offsets();
}
BlockTable::BlockTable(std::uint32_t ranks) : ranks_(ranks), of_pairs_(ranks > 1) {
  if (ranks > ranks_in_memory) stored_ = std::make_unique<Stored>(ranks);
}
BlockTable::BlockTable(BlockTable&& other) noexcept = default;
BlockTable& BlockTable::operator=(BlockTable&& other) noexcept = default;
BlockTable::~BlockTable() = default;

void BlockTable::add_row(const std::vector<std::int64_t>& row) {
  if (!stored_) {
    bytes_.insert(bytes_.end(), row.begin(), row.end());
    return;
  }
  for (const std::int64_t bytes : row) {
    WEFT_EXPECT(bytes >= 0, "block of {} bytes", bytes);
    total_ += bytes;
  }
  stored_->add_row(row);
}
void BlockTable::finish() {
  if (stored_)
    stored_->finish();
  else
    find_offsets();
}

void BlockTable::find_offsets() {
  input_offsets_.resize(bytes_.size());
  output_offsets_.resize(bytes_.size());
  const std::uint32_t rows = of_pairs_ ? ranks_ : 1;
  std::vector<std::int64_t> received(ranks_);
  for (std::uint32_t from = 0; from < rows; ++from) {
    std::int64_t sent = 0;
    for (std::uint32_t to = 0; to < ranks_; ++to) {
      const std::size_t place = at(from, to);
      WEFT_EXPECT(bytes_[place] >= 0, "block of {} bytes", bytes_[place]);
      input_offsets_[place] = sent;
      output_offsets_[place] = of_pairs_ ? received[to] : sent;
      sent += bytes_[place];
      received[to] += bytes_[place];
    }
    total_ += sent;
  }
}

std::size_t BlockTable::at(std::uint32_t from, std::uint32_t to) const {
  return of_pairs_ ? std::size_t{from} * ranks_ + to : to;
}
std::int64_t BlockTable::bytes(std::uint32_t from, std::uint32_t to) const {
  return stored_ ? stored_->bytes(from, to) : bytes_[at(from, to)];
}
std::int64_t BlockTable::input_offset(std::uint32_t from, std::uint32_t to) const {
  return stored_ ? stored_->input_offset(from, to) : input_offsets_[at(from, to)];
}
std::int64_t BlockTable::output_offset(std::uint32_t from, std::uint32_t to) const {
  return stored_ ? stored_->output_offset(from, to) : output_offsets_[at(from, to)];
}

}  // namespace weft
