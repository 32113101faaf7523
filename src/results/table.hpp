// SPDX-License-Identifier: GPL-2.0-only
// A result table: its columns with units and descriptions, and how a record becomes a row of bytes.
#pragma once

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

enum class CellType : std::uint8_t { u8, u32, u64, i64, f64, text };

/// One column as it stands in the file. `unit`: "ps", "B", "bit/s", "GB/s", "id" (a name), "1" (a count or ratio),
/// "text".
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
};

/// Rows as bytes: a key of two 64-bit words (most significant first), then the cells one after the other.
struct PackedRows {
  static constexpr std::size_t key_width = 16;
  std::size_t row_width = key_width;
  std::vector<std::byte> bytes;

  std::size_t size() const { return bytes.size() / row_width; }
  const std::byte* row(std::size_t index) const { return bytes.data() + index * row_width; }
};

using RowKey = std::pair<std::uint64_t, std::uint64_t>;

/// One column of a table of `Row` records.
template <class Row>
struct Column {
  ColumnInfo info;
  std::function<void(const Row&, std::byte*, std::size_t)> put;  ///< writes the cell of the given width
  std::function<std::size_t(const Row&)> text_length;            ///< of a text column, else empty
};

/// A table of `Row` records. `key` gives the order of rows; its first word also decides which MPI rank writes the row.
template <class Row>
struct Table {
  std::string name;
  std::string description;
  std::function<RowKey(const Row&)> key;
  std::vector<Column<Row>> columns;
};

template <class Value>
constexpr CellType cell_type() {
  if constexpr (std::is_same_v<Value, std::uint8_t>) return CellType::u8;
  if constexpr (std::is_same_v<Value, std::uint32_t>) return CellType::u32;
  if constexpr (std::is_same_v<Value, std::uint64_t>) return CellType::u64;
  if constexpr (std::is_same_v<Value, std::int64_t>) return CellType::i64;
  if constexpr (std::is_same_v<Value, double>) return CellType::f64;
}

/// A column whose cells are `get(row)`; `get` is a member pointer or a function, and its result decides the type.
template <class Row, class Get>
Column<Row> column(std::string name, std::string unit, std::string description, Get get) {
  using Value = std::remove_cvref_t<std::invoke_result_t<Get, const Row&>>;
  Column<Row> result;
  if constexpr (std::is_same_v<Value, std::string>) {
    result.info = {std::move(name), std::move(unit), std::move(description), CellType::text, 1};
    result.text_length = [get](const Row& row) { return std::string_view(std::invoke(get, row)).size(); };
    result.put = [get](const Row& row, std::byte* cell, std::size_t width) {
      const std::string& text = std::invoke(get, row);  // keeps a temporary alive
      std::memset(cell, 0, width);
      std::memcpy(cell, text.data(), std::min(text.size(), width));
    };
  } else {
    result.info = {std::move(name), std::move(unit), std::move(description), cell_type<Value>(), sizeof(Value)};
    result.put = [get](const Row& row, std::byte* cell, std::size_t) {
      const Value value = std::invoke(get, row);
      std::memcpy(cell, &value, sizeof(Value));
    };
  }
  return result;
}

/// The longest text of each column among `rows` (at least 1: HDF5 knows no empty text type), 0 for other columns.
template <class Row>
std::vector<std::uint64_t> longest_texts(const Table<Row>& table, const std::vector<Row>& rows) {
  std::vector<std::uint64_t> longest(table.columns.size(), 0);
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const auto& length = table.columns[c].text_length;
    if (!length) continue;
    longest[c] = 1;
    for (const Row& row : rows) longest[c] = std::max<std::uint64_t>(longest[c], length(row));
  }
  return longest;
}

/// The table's description with the widths of its text columns.
template <class Row>
TableInfo describe(const Table<Row>& table, const std::vector<std::uint64_t>& text_widths) {
  TableInfo info{table.name, table.description, {}};
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    info.columns.push_back(table.columns[c].info);
    if (info.columns[c].type == CellType::text) info.columns[c].width = text_widths[c];
  }
  return info;
}

template <class Row>
PackedRows pack(const Table<Row>& table, const TableInfo& info, const std::vector<Row>& rows) {
  PackedRows packed;
  for (const ColumnInfo& column : info.columns) packed.row_width += column.width;
  packed.bytes.resize(rows.size() * packed.row_width);
  std::byte* at = packed.bytes.data();
  for (const Row& row : rows) {
    const RowKey key = table.key(row);
    std::memcpy(at, &key.first, 8);
    std::memcpy(at + 8, &key.second, 8);
    at += PackedRows::key_width;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      table.columns[c].put(row, at, info.columns[c].width);
      at += info.columns[c].width;
    }
  }
  return packed;
}

}  // namespace weft
