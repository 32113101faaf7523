// SPDX-License-Identifier: GPL-2.0-only
// How the recorder writes tables: rows to their owners, then column by column, all processes at once.
#include <algorithm>
#include <numeric>

#include "results/agreement.hpp"
#include "results/collective_results.hpp"
#include "results/exchange.hpp"
#include "results/hdf5_recorder.hpp"
#include "results/result_tables.hpp"
#include "support/contract.hpp"

namespace weft {

namespace {

/// Bytes of one collective write per process: MPI-IO counts are ints, and the buffer should stay small.
constexpr std::size_t write_limit = std::size_t{64} << 20;

hdf5::Handle simple_space(std::uint64_t rows) {
  const hsize_t extent = rows;
  return {H5Screate_simple(1, &extent, nullptr), H5Sclose, "cannot make a dataspace"};
}

void select_rows(hid_t space, std::uint64_t first, std::uint64_t count) {
  if (count == 0) {
    hdf5::check(H5Sselect_none(space), "cannot select no rows");
    return;
  }
  const hsize_t start = first;
  const hsize_t extent = count;
  hdf5::check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &extent, nullptr), "cannot select rows");
}

hdf5::Handle collective_transfer() {
  hdf5::Handle transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose, "cannot make transfer properties");
  hdf5::check(H5Pset_dxpl_mpio(transfer.get(), H5FD_MPIO_COLLECTIVE), "cannot choose collective writing");
  return transfer;
}

/// The cells of `count` rows from `first` on (in order), one after the other.
void gather_cells(const PackedRows& rows, const std::vector<std::uint64_t>& order, std::size_t first, std::size_t count,
                  std::size_t offset, std::size_t width, std::vector<std::byte>& cells) {
  cells.resize(count * width);
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(cells.data() + i * width, rows.row(order[first + i]) + offset, width);
}

}  // namespace

template <class Row>
void Hdf5Recorder::write_table(const Table<Row>& table, std::vector<Row> rows) {
  OpenTable open;
  append_table(open, table, std::move(rows), true);
}

template <class Row>
void Hdf5Recorder::append_table(OpenTable& open, const Table<Row>& table, std::vector<Row> rows, bool last) {
  if (!open.group) {
    std::vector<std::uint64_t> widths = longest_texts(table, rows);
    MPI_Allreduce(MPI_IN_PLACE, widths.data(), static_cast<int>(widths.size()), MPI_UINT64_T, MPI_MAX, comm_);
    open.info = describe(table, widths);
    // The texts of later portions are not known.
    WEFT_EXPECT(last || *std::max_element(widths.begin(), widths.end()) == 0, "table '{}' has texts", table.name);
  }
  PackedRows packed;
  together([&] { packed = pack(table, open.info, rows); });
  std::vector<Row>().swap(rows);  // the packed rows and their exchange need the memory
  append_rows(open, std::move(packed), last);
}

void Hdf5Recorder::append_rows(OpenTable& open, PackedRows rows, bool last) {
  WEFT_EXPECT(!finished_, "table '{}' after the end of '{}'", open.info.name, path_);
  rows = exchange(comm_, rows);
  std::vector<std::uint64_t> order;
  together([&] { order = order_by_key(rows, open.info.name); });
  const std::uint64_t mine = rows.size();
  std::uint64_t all = 0;
  std::uint64_t first = 0;  // stays 0 on process 0, where MPI_Exscan leaves it alone
  MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, comm_);
  MPI_Exscan(&mine, &first, 1, MPI_UINT64_T, MPI_SUM, comm_);
  if (!open.group)
    create_columns(open, all, last);
  else if (all > 0)
    together([&] {
      const hsize_t extent = open.rows + all;
      for (const hdf5::Handle& column : open.columns)
        hdf5::check(H5Dset_extent(column.get(), &extent), "cannot extend a data set");
    });
  std::size_t offset = PackedRows::key_width;
  for (std::size_t c = 0; c < open.columns.size() && all > 0; ++c) {
    write_column(open, c, offset, rows, order, open.rows + first);
    offset += open.info.columns[c].width;
  }
  open.rows += all;
  together([&] { hdf5::write_attribute(open.group.get(), "rows", open.rows); });
  flush();
  if (last) {
    open.columns.clear();
    open.group.reset();
  }
}

// A table that is written in one go lies in one piece; others grow by chunks.
void Hdf5Recorder::create_columns(OpenTable& open, std::uint64_t rows, bool final) {
  constexpr hsize_t rows_per_chunk = 1 << 16;
  together([&] {
    open.group = hdf5::create_group(file_.get(), open.info.name);
    hdf5::write_attribute(open.group.get(), "description", open.info.description);
    const hdf5::Handle properties = hdf5::dataset_properties();
    if (!final)
      hdf5::check(H5Pset_chunk(properties.get(), 1, &rows_per_chunk), "cannot choose the layout of a data set");
    const hsize_t extent = rows;
    const hsize_t most = final ? rows : H5S_UNLIMITED;
    const hdf5::Handle space(H5Screate_simple(1, &extent, &most), H5Sclose, "cannot make a dataspace");
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

void Hdf5Recorder::write_column(const OpenTable& open, std::size_t column, std::size_t offset, const PackedRows& rows,
                                const std::vector<std::uint64_t>& order, std::uint64_t first_row) {
  const ColumnInfo& info = open.info.columns[column];
  const hid_t dataset = open.columns[column].get();
  hdf5::Handle in_file;
  hdf5::Handle in_memory;
  hdf5::Handle transfer;
  together([&] {
    in_file = hdf5::Handle(H5Dget_space(dataset), H5Sclose, "cannot look at a data set");
    in_memory = hdf5::memory_type(info);
    transfer = collective_transfer();
  });
  // Every process takes part in every round, with no rows if it has none left.
  const std::size_t rows_per_round = std::max<std::size_t>(write_limit / info.width, 1);
  std::uint64_t rounds = (order.size() + rows_per_round - 1) / rows_per_round;
  MPI_Allreduce(MPI_IN_PLACE, &rounds, 1, MPI_UINT64_T, MPI_MAX, comm_);
  std::vector<std::byte> cells;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    together([&] {
      const std::size_t begin = std::min(order.size(), round * rows_per_round);
      const std::size_t count = std::min(order.size() - begin, rows_per_round);
      gather_cells(rows, order, begin, count, offset, info.width, cells);
      select_rows(in_file.get(), first_row + begin, count);
      const hdf5::Handle memory_space = simple_space(std::max<std::uint64_t>(count, 1));
      select_rows(memory_space.get(), 0, count);
      cells.resize(std::max(cells.size(), info.width));  // HDF5 wants a buffer even for no rows
      hdf5::check(H5Dwrite(dataset, in_memory.get(), memory_space.get(), in_file.get(), transfer.get(), cells.data()),
                  "cannot write rows (is the disk full?)");
    });
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

void Hdf5Recorder::append_messages(std::vector<MessageRecord> rows, bool last) {
  append_table(messages_, message_table(), std::move(rows), last);
}

template <class Row>
void Hdf5Recorder::append_series(OpenTable& open, const Table<Row>& table, std::vector<Row> rows, std::int64_t interval,
                                 bool last) {
  WEFT_EXPECT(interval > 0, "sampling interval {} ps", interval);
  const bool first = !open.group;
  append_table(open, table, std::move(rows), last);
  if (!first) return;
  together([&] {
    const hdf5::Handle group(H5Gopen2(file_.get(), table.name.c_str(), H5P_DEFAULT), H5Gclose, "no series");
    hdf5::write_quantity(group.get(), "interval", interval, "ps");
  });
}

void Hdf5Recorder::append_link_series(std::vector<LinkSample> rows, std::int64_t interval, std::int64_t end,
                                      bool last) {
  append_series(series_, link_series_table(interval, end), std::move(rows), interval, last);
}

void Hdf5Recorder::append_rate_series(std::vector<QueuePairRate> rows, std::int64_t interval, std::int64_t end,
                                      bool last) {
  append_series(rates_, rate_series_table(interval, end), std::move(rows), interval, last);
}

void Hdf5Recorder::write_collectives(const std::vector<CollectivePart>& parts, const CollectiveDirectory& all) {
  write_table(collective_table(), reduce_owned_collectives(comm_, parts, all));
}

void Hdf5Recorder::write_links(std::vector<LinkRecord> rows) {
  WEFT_EXPECT(simulated_time_ >= 0, "write_outcome() must come before write_links() ({} rows)", rows.size());
  write_table(link_table(simulated_time_), std::move(rows));
}

void Hdf5Recorder::write_link_classes(std::vector<LinkClassRecord> rows) {
  write_table(link_class_table(), std::move(rows));
}

void Hdf5Recorder::write_queue_depths(std::vector<QueueDepthRecord> rows) {
  write_table(queue_depth_table(), std::move(rows));
}

void Hdf5Recorder::write_queue_pairs(std::vector<QueuePairRecord> rows) {
  write_table(queue_pair_table(), std::move(rows));
}

void Hdf5Recorder::write_receivers(std::vector<ReceiverRecord> rows) { write_table(receiver_table(), std::move(rows)); }

void Hdf5Recorder::write_ranks(std::vector<RankRecord> rows) { write_table(rank_table(), std::move(rows)); }

void Hdf5Recorder::write_jobs(std::vector<JobRecord> rows) { write_table(job_table(), std::move(rows)); }

void Hdf5Recorder::write_transfers(std::vector<TransferRecord> rows) { write_table(transfer_table(), std::move(rows)); }

void Hdf5Recorder::write_transfer_series(std::vector<TransferSample> rows, std::int64_t interval) {
  write_table(transfer_series_table(), std::move(rows));
  together([&] {
    const hdf5::Handle group(H5Gopen2(file_.get(), "transfers_series", H5P_DEFAULT), H5Gclose, "no series");
    hdf5::write_quantity(group.get(), "interval", interval, "ps");
  });
}

void Hdf5Recorder::write_operations(std::vector<OperationRecord> rows) {
  write_table(operation_table(), std::move(rows));
}

void Hdf5Recorder::write_processes(std::vector<ProcessRecord> rows,
                                   const std::vector<std::tuple<std::string, double, std::string>>& facts) {
  write_table(process_table(), std::move(rows));
  std::vector<double> values;
  for (const auto& [name, value, unit] : facts) values.push_back(value);
  MPI_Bcast(values.data(), static_cast<int>(values.size()), MPI_DOUBLE, 0, comm_);
  together([&] {
    const hdf5::Handle group(H5Gopen2(file_.get(), process_table().name.c_str(), H5P_DEFAULT), H5Gclose, "no table");
    for (std::size_t i = 0; i < facts.size(); ++i)
      hdf5::write_quantity(group.get(), std::get<0>(facts[i]), values[i], std::get<2>(facts[i]));
  });
}

}  // namespace weft
