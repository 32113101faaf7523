// SPDX-License-Identifier: GPL-2.0-only
// Redistribution of rows by blocks of their keys.
#include "results/hdf5/exchange.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "results/processes/agreement.hpp"

namespace weft {

namespace {

std::vector<int> starts_of(const std::vector<int>& counts) {
  std::vector<int> starts(counts.size(), 0);
  std::partial_sum(counts.begin(), counts.end() - 1, starts.begin() + 1);
  return starts;
}

void expect_countable(MPI_Comm comm, std::uint64_t rows) {
  constexpr auto max = static_cast<std::uint64_t>(std::numeric_limits<int>::max());
  collectively(comm, [&] {
    if (rows > max)
      throw EnvironmentError(
          fmt::format("{} result rows on one MPI rank, at most {} fit: use more MPI ranks", rows, max));
  });
}

/// Owner of a key's first word: equal parts of the range from the least to the largest. `words` = their number.
struct Blocks {
  std::uint64_t min;
  unsigned __int128 words;
  unsigned __int128 processes;
  std::size_t owner(std::uint64_t word) const { return static_cast<std::size_t>((word - min) * processes / words); }
};

Blocks agree_on_blocks(MPI_Comm comm, const PackedRows& rows, int processes) {
  std::uint64_t min = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint64_t word = key_of(rows.row(i)).first;
    min = std::min(min, word);
    largest = std::max(largest, word);
  }
  MPI_Allreduce(MPI_IN_PLACE, &min, 1, MPI_UINT64_T, MPI_MIN, comm);
  MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_UINT64_T, MPI_MAX, comm);
  const auto words = static_cast<unsigned __int128>(largest) + 1 - min;  // of no use if there are no rows
  return {min, words, static_cast<unsigned __int128>(processes)};
}

}  // namespace

RowKey key_of(const std::byte* row) {
  RowKey key;
  std::memcpy(&key.first, row, 8);
  std::memcpy(&key.second, row + 8, 8);
  return key;
}

void exchange(MPI_Comm comm, PackedRows& rows) {
  int processes = 0;
  MPI_Comm_size(comm, &processes);
  if (processes == 1) return;
  const Blocks blocks = agree_on_blocks(comm, rows, processes);
  expect_countable(comm, rows.size());

  std::vector<int> send_counts(static_cast<std::size_t>(processes), 0);
  for (std::size_t i = 0; i < rows.size(); ++i) ++send_counts[blocks.owner(key_of(rows.row(i)).first)];
  std::vector<int> receive_counts(send_counts.size(), 0);
  MPI_Alltoall(send_counts.data(), 1, MPI_INT, receive_counts.data(), 1, MPI_INT, comm);
  expect_countable(comm, std::accumulate(receive_counts.begin(), receive_counts.end(), std::uint64_t{0}));

  const std::vector<int> send_starts = starts_of(send_counts);
  const std::vector<int> receive_starts = starts_of(receive_counts);
  std::vector<std::byte> outgoing(rows.bytes.size());
  std::vector<int> next = send_starts;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto slot = static_cast<std::size_t>(next[blocks.owner(key_of(rows.row(i)).first)]++);
    std::memcpy(outgoing.data() + slot * rows.row_width, rows.row(i), rows.row_width);
  }
  rows.bytes.resize(static_cast<std::size_t>(receive_starts.back() + receive_counts.back()) * rows.row_width);

  // Counts in rows, not bytes: int counts of bytes would end at 2 GiB.
  MPI_Datatype row_type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(rows.row_width), MPI_BYTE, &row_type);
  MPI_Type_commit(&row_type);
  MPI_Alltoallv(outgoing.data(), send_counts.data(), send_starts.data(), row_type, rows.bytes.data(),
                receive_counts.data(), receive_starts.data(), row_type, comm);
  MPI_Type_free(&row_type);
}

std::vector<std::uint64_t> order_by_key(const PackedRows& rows, const std::string& table) {
  std::vector<std::pair<RowKey, std::uint64_t>> keyed(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) keyed[i] = {key_of(rows.row(i)), i};
  std::sort(keyed.begin(), keyed.end());
  std::vector<std::uint64_t> order(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    order[i] = keyed[i].second;
    if (i > 0 && keyed[i].first == keyed[i - 1].first)
      throw InternalError(fmt::format("two rows of '{}' have the same id ({}, {}): please report this", table,
                                      keyed[i].first.first, keyed[i].first.second));
  }
  return order;
}

}  // namespace weft
