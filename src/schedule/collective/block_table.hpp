// SPDX-License-Identifier: GPL-2.0-only
// Sizes of the blocks of a collective, where they differ.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace weft {

/// Bytes of each block where they are not equal: the collectives that MPI marks with a v. Of many pairs the numbers
/// stand in a temporary file, and in memory only what ranks of this process come to next: a piece of the row and of
/// the column of each.
class BlockTable {
 public:
  /// `bytes`: one number per rank (all_gather, reduce_scatter, gather, scatter), or row by row ranks x ranks, from each
  /// rank to each (all_to_all). They stay in memory.
  BlockTable(std::uint32_t ranks, std::vector<std::int64_t> bytes);
  /// A table of pairs: `row_of(from, row)` gives the bytes from a rank to each one, and is asked for rank after rank.
  /// Their sum is less than 2^63. Throws EnvironmentError if the folder for temporary files takes no more.
  template <typename RowOf>
  static std::shared_ptr<const BlockTable> of_rows(std::uint32_t ranks, const RowOf& row_of) {
    BlockTable table(ranks);
    std::vector<std::int64_t> row(ranks);
    for (std::uint32_t from = 0; from < ranks; ++from) {
      row_of(from, row);
      table.add_row(row);
    }
    table.finish();
    return std::make_shared<const BlockTable>(std::move(table));
  }

  BlockTable(BlockTable&& other) noexcept;
  BlockTable& operator=(BlockTable&& other) noexcept;
  ~BlockTable();

  bool of_pairs() const { return of_pairs_; }
  std::int64_t bytes(std::uint32_t from, std::uint32_t to) const;
  /// Where the block stands among those of its sender, and among those of its receiver.
  std::int64_t input_offset(std::uint32_t from, std::uint32_t to) const;
  std::int64_t output_offset(std::uint32_t from, std::uint32_t to) const;
  std::int64_t total() const { return total_; }

  /// Tables of rows of so many ranks and fewer stay in memory.
  static constexpr std::uint32_t ranks_in_memory = 128;

 private:
  class Stored;
  explicit BlockTable(std::uint32_t ranks);
  void add_row(const std::vector<std::int64_t>& row);
  void finish();
  void find_offsets();
  std::size_t at(std::uint32_t from, std::uint32_t to) const;

  std::uint32_t ranks_;
  bool of_pairs_;
  std::vector<std::int64_t> bytes_;
  std::vector<std::int64_t> input_offsets_;
  std::vector<std::int64_t> output_offsets_;
  std::int64_t total_ = 0;
  std::unique_ptr<Stored> stored_;
};

}  // namespace weft
