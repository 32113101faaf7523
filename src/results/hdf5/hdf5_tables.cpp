// SPDX-License-Identifier: GPL-2.0-only
// How the recorder writes tables: rows to their owners, then column by column, all processes at once.
#include <algorithm>
#include <span>

#include "results/hdf5/exchange.hpp"
#include "results/hdf5/hdf5_recorder.hpp"
#include "results/processes/agreement.hpp"
#include "results/tables/collective_results.hpp"
#include "results/tables/result_tables.hpp"
#include "support/basics/contract.hpp"

namespace weft {

namespace {

/// Bytes of rows that are written at once: MPI-IO counts are ints, and the cells should stay in the cache.
constexpr std::size_t write_limit = std::size_t{16} << 20;

hdf5::Handle simple_space(std::uint64_t rows) {
  const hsize_t extent = rows;
  return {H5Screate_simple(1, &extent, nullptr), H5Sclose, "cannot make a dataspace"};
}

void select_rows(hid_t space, std::uint64_t first, std::uint64_t count) {
  const hsize_t start = first;
  const hsize_t extent = count;
  hdf5::check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &extent, nullptr), "cannot select rows");
}

/// One column of `order.size()` rows of `width` bytes, which the compiler knows unless it is 0.
template <std::size_t known_width>
void gather_column(const PackedRows& rows, std::span<const std::uint64_t> order, std::size_t offset, std::size_t width,
                   std::byte* cells) {
  if constexpr (known_width > 0) width = known_width;
  for (const std::uint64_t row : order) {
    std::memcpy(cells, rows.row(row) + offset, width);
    cells += width;
  }
}

/// The cells of the rows, in order, column after column. Some rows at a time, which stay in the first cache while all
/// of their columns are gathered.
void gather_cells(const TableInfo& info, const PackedRows& rows, std::span<const std::uint64_t> order,
                  std::vector<std::byte>& cells) {
  constexpr std::size_t rows_at_once = 64;
  cells.resize(order.size() * (rows.row_width - PackedRows::key_width));
  for (std::size_t begin = 0; begin < order.size(); begin += rows_at_once) {
    const auto some = order.subspan(begin, std::min(order.size() - begin, rows_at_once));
    std::size_t offset = PackedRows::key_width;
    for (const ColumnInfo& column : info.columns) {
      std::byte* const to = cells.data() + (offset - PackedRows::key_width) * order.size() + begin * column.width;
      if (column.width == 8)
        gather_column<8>(rows, some, offset, column.width, to);
      else if (column.width == 4)
        gather_column<4>(rows, some, offset, column.width, to);
      else
        gather_column<0>(rows, some, offset, column.width, to);
      offset += column.width;
    }
  }
}

}  // namespace

// The widths of the columns that hold texts. The texts of later portions are not known.
std::vector<std::uint64_t> Hdf5Recorder::agreed_widths(std::vector<std::uint64_t> widths, bool last) const {
  MPI_Allreduce(MPI_IN_PLACE, widths.data(), static_cast<int>(widths.size()), MPI_UINT64_T, MPI_MAX, comm_);
  WEFT_EXPECT(last || *std::max_element(widths.begin(), widths.end()) == 0, "a table with texts comes in portions");
  return widths;
}

void Hdf5Recorder::append_rows(OpenTable& open, bool last, std::int64_t interval) {
  WEFT_EXPECT(!finished_, "table '{}' after the end of '{}'", open.info.name, path_);
  PackedRows& rows = open.packed;
  exchange(comm_, rows);
  std::vector<std::uint64_t> order;
  together([&] { order = order_by_key(rows, open.info.name); });
  const std::uint64_t mine = rows.size();
  std::uint64_t all = 0;
  std::uint64_t first = 0;  // stays 0 on process 0, where MPI_Exscan leaves it alone
  MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, comm_);
  MPI_Exscan(&mine, &first, 1, MPI_UINT64_T, MPI_SUM, comm_);
  if (!open.group)
    create_columns(open, all, last, interval);
  else if (open.rows + all > open.extent)
    together([&] {
      const hsize_t extent = open.extent = open.rows + all;
      for (const hdf5::Handle& column : open.columns)
        hdf5::check(H5Dset_extent(column.get(), &extent), "cannot extend a data set");
    });
  // Each process for itself: its rows are contiguous.
  together([&] { write_columns(open, order, open.rows + first); });
  open.rows += all;
  together([&] { hdf5::write_attribute(open.group.get(), "rows", open.rows); });
  flush();
  if (last) {
    open.columns.clear();
    open.group.reset();
    open.packed = {};
    open.cells = {};
  }
}

// A table that is written at once is contiguous; others grow by chunks.
void Hdf5Recorder::create_columns(OpenTable& open, std::uint64_t rows, bool final, std::int64_t interval) {
  constexpr hsize_t rows_per_chunk = 1 << 16;
  open.extent = rows;
  together([&] {
    open.group = hdf5::create_group(file_.get(), open.info.name);
    hdf5::write_attribute(open.group.get(), "description", open.info.description);
    if (interval > 0) hdf5::write_quantity(open.group.get(), "interval", interval, "ps");
    const hdf5::Handle properties = hdf5::dataset_properties();
    if (!final)
      hdf5::check(H5Pset_chunk(properties.get(), 1, &rows_per_chunk), "cannot choose the layout of a data set");
    const hsize_t extent = rows;
    const hsize_t max = final ? rows : H5S_UNLIMITED;
    const hdf5::Handle space(H5Screate_simple(1, &extent, &max), H5Sclose, "cannot make a dataspace");
    for (const ColumnInfo& column : open.info.columns) {
      const hdf5::Handle type = hdf5::file_type(column);
      hdf5::Handle& dataset =
          open.columns.emplace_back(H5Dcreate2(open.group.get(), column.name.c_str(), type.get(), space.get(),
                                               H5P_DEFAULT, properties.get(), H5P_DEFAULT),
                                    H5Dclose, "cannot make a data set");
      hdf5::write_attribute(dataset.get(), "unit", column.unit);
      hdf5::write_attribute(dataset.get(), "description", column.description);
    }
  });
}

void Hdf5Recorder::write_columns(OpenTable& open, const std::vector<std::uint64_t>& order, std::uint64_t first_row) {
  const std::size_t at_once = std::max<std::size_t>(write_limit / open.packed.row_width, 1);
  for (std::size_t begin = 0; begin < order.size(); begin += at_once) {
    const auto some = std::span(order).subspan(begin, std::min(order.size() - begin, at_once));
    gather_cells(open.info, open.packed, some, open.cells);
    const hdf5::Handle memory_space = simple_space(some.size());
    const std::byte* cells = open.cells.data();
    for (std::size_t c = 0; c < open.columns.size(); ++c) {
      const hid_t dataset = open.columns[c].get();
      const hdf5::Handle in_file(H5Dget_space(dataset), H5Sclose, "cannot look at a data set");
      const hdf5::Handle in_memory = hdf5::memory_type(open.info.columns[c]);
      select_rows(in_file.get(), first_row + begin, some.size());
      hdf5::check(H5Dwrite(dataset, in_memory.get(), memory_space.get(), in_file.get(), H5P_DEFAULT, cells),
                  "cannot write rows");
      cells += some.size() * open.info.columns[c].width;
    }
  }
}

void Hdf5Recorder::write_text(hid_t group, const std::string& name, const std::string& text,
                              const std::string& description) {
  hdf5::Handle dataset;
  const hdf5::Handle type = hdf5::text_type(std::max<std::size_t>(text.size(), 1));
  together([&] {
    const hdf5::Handle properties = hdf5::dataset_properties();
    const hdf5::Handle space(H5Screate(H5S_SCALAR), H5Sclose, "cannot make a dataspace");
    dataset = hdf5::Handle(
        H5Dcreate2(group, name.c_str(), type.get(), space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT), H5Dclose,
        "cannot make a data set");
    hdf5::write_attribute(dataset.get(), "unit", std::string("text"));
    hdf5::write_attribute(dataset.get(), "description", description);
  });
  together([&] {
    if (process_ != 0) return;
    const std::string padded = text.empty() ? std::string(1, '\0') : text;
    hdf5::check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, padded.data()), "cannot write text");
  });
}

void Hdf5Recorder::write_collectives(CollectiveLog& log, const CollectiveDirectory& all, bool with_times) {
  CollectivePieces pieces(comm_, log, all, with_times);
  announce<CollectiveResult>(all.count, longest_texts_of(comm_, all), with_times);
  do {
    std::vector<CollectiveResult> some = pieces.next();
    append(std::move(some), pieces.done(), 0, with_times);
  } while (!pieces.done());
}

void Hdf5Recorder::write_processes(std::vector<ProcessRecord> rows,
                                   const std::vector<std::tuple<std::string, double, std::string>>& facts) {
  write(std::move(rows));
  std::vector<double> values;
  for (const auto& [name, value, unit] : facts) values.push_back(value);
  MPI_Bcast(values.data(), static_cast<int>(values.size()), MPI_DOUBLE, 0, comm_);
  together([&] {
    const std::string table(ResultTable<ProcessRecord>::name);
    const hdf5::Handle group(H5Gopen2(file_.get(), table.c_str(), H5P_DEFAULT), H5Gclose, "no table");
    for (std::size_t i = 0; i < facts.size(); ++i)
      hdf5::write_quantity(group.get(), std::get<0>(facts[i]), values[i], std::get<2>(facts[i]));
  });
}

}  // namespace weft
