// SPDX-License-Identifier: GPL-2.0-only
// A 64-bit fingerprint of the results, which depends neither on the order of rows nor on the processes that hold them.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>

#include "results/tables/result_tables.hpp"
#include "support/basics/random.hpp"

namespace weft {

/// Mix of one row: `salt` distinguishes the record types, the chain distinguishes the fields. Equal rows do not cancel,
/// because rows are added and not xor-ed.
class RowMix {
 public:
  constexpr explicit RowMix(std::uint64_t salt) : mixed_(mix64(salt + golden)) {}
  constexpr void add(std::uint64_t field) { mixed_ = mix64(mixed_ ^ mix64(field + golden)); }
  constexpr std::uint64_t value() const { return mixed_; }

 private:
  static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;
  std::uint64_t mixed_;
};

/// The table is part of the fingerprint.
template <class Row>
concept Counted = ResultTable<Row>::salt != 0;

/// The summand of one row: a mix of the columns that its declaration counts.
template <Counted Row>
std::uint64_t fingerprint(const Row& row) {
  if constexpr (requires { ResultTable<Row>::counts(row); })
    if (!ResultTable<Row>::counts(row)) return 0;
  RowMix mix(ResultTable<Row>::salt);
  for_each_column<Row>([&](const auto& column) {
    if constexpr (std::remove_cvref_t<decltype(column)>::counted)
      mix.add(static_cast<std::uint64_t>(std::invoke(column.count, row)));
  });
  return mix.value();
}

/// Sum of all rows modulo 2^64. The fingerprint of a run is the sum over its record types and MPI ranks.
template <class Row>
std::uint64_t fingerprint_sum(const std::span<const Row> rows) {
  std::uint64_t sum = 0;
  for (const Row& row : rows) sum += fingerprint(row);
  return sum;
}

}  // namespace weft
