// SPDX-License-Identifier: GPL-2.0-only
// What a declared table is made of (results/tables/result_tables.hpp), and how its records become rows of bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

/// The declaration of the table whose rows are made from `Row` records: the one place that says what it is. See
/// results/tables/result_tables.hpp for the members of a declaration.
template <class Row>
struct ResultTable;

/// What cells may depend on beside their row.
struct TableContext {
  std::int64_t simulated_time = 0;  ///< of the run, ps
  std::int64_t interval = 0;        ///< of a series, ps
};

/// Two 64-bit words, most significant first: they give the order of rows.
using RowKey = std::pair<std::uint64_t, std::uint64_t>;

/// A column that is no part of the fingerprint.
struct NotCounted {};

/// One column as it is declared. `get` gives the cell, of a row or of a row and its context: a member or a function,
/// whose result decides the type. `count` gives what the fingerprint takes.
template <class Get, class Count>
struct DeclaredColumn {
  std::string_view name;
  std::string_view unit;  ///< "ps", "B", "bit/s", "GB/s", "s", "id" (a name), "1" (a count or ratio), "text"
  std::string_view description;
  Get get;
  Count count;
  bool optional = false;  ///< only in tables that are written with their optional columns
  static constexpr bool counted = !std::is_same_v<Count, NotCounted>;
};

template <class Get>
constexpr DeclaredColumn<Get, NotCounted> column(std::string_view name, std::string_view unit,
                                                 std::string_view description, Get get) {
  return {name, unit, description, get, {}};
}

/// A column that a table may be written without.
template <class Get>
constexpr DeclaredColumn<Get, NotCounted> optional_column(std::string_view name, std::string_view unit,
                                                          std::string_view description, Get get) {
  return {name, unit, description, get, {}, true};
}

/// A column that is part of the fingerprint.
template <class Get>
constexpr DeclaredColumn<Get, Get> counted(std::string_view name, std::string_view unit, std::string_view description,
                                           Get get) {
  return {name, unit, description, get, get};
}

/// The same, where the file has it in another form.
template <class Get, class Count>
constexpr DeclaredColumn<Get, Count> counted_as(std::string_view name, std::string_view unit,
                                                std::string_view description, Get get, Count count) {
  return {name, unit, description, get, count};
}

namespace detail {

template <std::size_t number, class Column>
struct NumberedColumn {
  Column column;
};

template <class Numbers, class... Column>
struct NumberedColumns;

template <std::size_t... number, class... Column>
struct NumberedColumns<std::index_sequence<number...>, Column...> : NumberedColumn<number, Column>... {
  constexpr explicit NumberedColumns(const Column&... column) : NumberedColumn<number, Column>{column}... {}

  template <class Visit>
  constexpr void for_each(const Visit& visit) const {
    (visit(static_cast<const NumberedColumn<number, Column>&>(*this).column), ...);
  }
};

}  // namespace detail

/// The columns of a declaration, in their order; another `Columns` among them stands for the columns in it. A
/// std::tuple of so many types takes a second to compile, in each file that includes it.
template <class... Column>
struct Columns : detail::NumberedColumns<std::index_sequence_for<Column...>, Column...> {
  using detail::NumberedColumns<std::index_sequence_for<Column...>, Column...>::NumberedColumns;
};
template <class... Column>
Columns(const Column&...) -> Columns<Column...>;

template <class Row>
inline constexpr auto columns_of = ResultTable<Row>::columns();

/// Calls `visit` with each column of the declaration, in order.
template <class Row, class Visit>
constexpr void for_each_column(Visit&& visit) {
  const auto visit_all = [&visit]<class Part>(const auto& self, const Part& part) {
    if constexpr (requires { part.for_each(visit); })
      part.for_each([&self](const auto& inner) { self(self, inner); });
    else
      visit(part);
  };
  visit_all(visit_all, columns_of<Row>);
}

template <class Row, class Get>
decltype(auto) cell_of(const Get& get, const Row& row, const TableContext& context) {
  if constexpr (std::is_invocable_v<const Get&, const Row&, const TableContext&>)
    return std::invoke(get, row, context);
  else
    return std::invoke(get, row);
}

/// Cells depend on the context.
template <class Row>
constexpr bool needs_context() {
  bool needs = false;
  for_each_column<Row>([&needs]<class Get, class Count>(const DeclaredColumn<Get, Count>&) {
    needs = needs || std::is_invocable_v<const Get&, const Row&, const TableContext&>;
  });
  return needs;
}

enum class CellType : std::uint8_t { u8, u32, u64, i64, f64, text };

/// As h5py names it: "uint32", "float64", "text".
std::string_view to_text(CellType type);

/// One column as it stands in the file.
struct ColumnInfo {
  std::string name;
  std::string unit;
  std::string description;
  CellType type = CellType::u64;
  std::size_t width = 0;  ///< bytes of a cell
};

/// A table as it stands in the file.
struct TableInfo {
  std::string name;  ///< of its group, without "/"
  std::string description;
  std::vector<ColumnInfo> columns;
  bool complete = true;  ///< with its optional columns
};

/// Rows as bytes: a key, then the cells one after the other.
struct PackedRows {
  static constexpr std::size_t key_width = 16;
  std::size_t row_width = key_width;
  std::vector<std::byte> bytes;

  std::size_t size() const { return bytes.size() / row_width; }
  const std::byte* row(std::size_t index) const { return bytes.data() + index * row_width; }
};

template <class Value>
constexpr CellType cell_type() {
  if constexpr (std::is_same_v<Value, bool> || std::is_same_v<Value, std::uint8_t>) return CellType::u8;
  if constexpr (std::is_same_v<Value, std::uint32_t>) return CellType::u32;
  if constexpr (std::is_same_v<Value, std::uint64_t>) return CellType::u64;
  if constexpr (std::is_same_v<Value, std::int64_t>) return CellType::i64;
  if constexpr (std::is_same_v<Value, double>) return CellType::f64;
  if constexpr (std::is_same_v<Value, std::string>) return CellType::text;
}

template <class Row, class Get>
using CellValue =
    std::remove_cvref_t<decltype(cell_of(std::declval<Get>(), std::declval<Row>(), std::declval<TableContext>()))>;

/// The longest text of each column among `rows` (at least 1: HDF5 knows no empty text type), 0 for other columns.
template <class Row>
std::vector<std::uint64_t> longest_texts(const std::vector<Row>& rows) {
  std::vector<std::uint64_t> longest;
  for_each_column<Row>([&]<class Get, class Count>(const DeclaredColumn<Get, Count>& column) {
    std::uint64_t width = 0;
    if constexpr (std::is_same_v<CellValue<Row, Get>, std::string>) {
      width = 1;
      for (const Row& row : rows) width = std::max<std::uint64_t>(width, cell_of(column.get, row, {}).size());
    }
    longest.push_back(width);
  });
  return longest;
}

/// The table's description with the widths of its text columns; none are known beforehand. `complete`: with its
/// optional columns.
template <class Row>
TableInfo describe(const std::vector<std::uint64_t>& text_widths = {}, bool complete = true) {
  TableInfo info{std::string(ResultTable<Row>::name), std::string(ResultTable<Row>::description), {}, complete};
  std::size_t number = 0;
  for_each_column<Row>([&]<class Get, class Count>(const DeclaredColumn<Get, Count>& column) {
    using Value = CellValue<Row, Get>;
    const std::size_t here = number++;
    if (column.optional && !complete) return;
    std::size_t width = sizeof(Value);
    if constexpr (std::is_same_v<Value, std::string>) width = text_widths.empty() ? 0 : text_widths[here];
    info.columns.push_back({std::string(column.name), std::string(column.unit), std::string(column.description),
                            cell_type<Value>(), width});
  });
  return info;
}

/// `packed` may hold other rows, whose memory is used again.
template <class Row>
void pack(const TableInfo& info, const TableContext& context, const std::vector<Row>& rows, PackedRows& packed) {
  packed.row_width = PackedRows::key_width;
  for (const ColumnInfo& column : info.columns) packed.row_width += column.width;
  packed.bytes.resize(rows.size() * packed.row_width);
  std::byte* at = packed.bytes.data();
  for (const Row& row : rows) {
    const RowKey key = ResultTable<Row>::key(row);
    std::memcpy(at, &key.first, 8);
    std::memcpy(at + 8, &key.second, 8);
    at += PackedRows::key_width;
    std::size_t number = 0;
    for_each_column<Row>([&](const auto& column) {
      if (column.optional && !info.complete) return;
      const auto& value = cell_of(column.get, row, context);  // keeps a temporary alive
      const std::size_t width = info.columns[number++].width;
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::string>) {
        const std::size_t size = std::min(value.size(), width);
        std::memcpy(at, value.data(), size);
        std::memset(at + size, 0, width - size);
      } else {
        std::memcpy(at, &value, sizeof(value));  // the compiler knows how many bytes, as with `width` it would not
      }
      at += width;
    });
  }
}

}  // namespace weft
