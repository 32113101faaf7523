// SPDX-License-Identifier: GPL-2.0-only
// The result file: all MPI ranks write their rows together, and the content does not depend on how many there are.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <hdf5.h>
#include <mpi.h>

#include "results/hdf5/file_writes.hpp"
#include "results/hdf5/hdf5_support.hpp"
#include "results/processes/agreement.hpp"
#include "results/processes/file_lock.hpp"
#include "results/tables/collective_log.hpp"
#include "results/tables/manifest.hpp"
#include "results/tables/records.hpp"
#include "results/tables/table.hpp"
#include "support/basics/contract.hpp"
#include "support/basics/error.hpp"
#include "support/system/interrupt.hpp"

namespace weft {

/// Writes one HDF5 file through MPI-IO (schema: docs/reference/hdf5_schema.md). Every member function is collective
/// over the communicator, the destructor excepted. Each process passes the rows it has, in any order; rows travel to
/// the process that owns their block of keys, so that none ever holds the whole table, and stand in the file in the
/// table's order. Until finish() the file is named `path`.partial. Failures throw EnvironmentError, the same on all
/// processes, and leave no file behind; a failure of HDF5 itself while the file is open throws FatalEnvironmentError.
class Hdf5Recorder {
 public:
  /// Opens the file and marks it incomplete. Throws EnvironmentError on all processes, and leaves no file behind, if
  /// `path` cannot be written.
  Hdf5Recorder(MPI_Comm comm, std::string path);
  /// Without finish(): closes the file if all processes are here within two seconds, and removes it.
  ~Hdf5Recorder();
  Hdf5Recorder(const Hdf5Recorder&) = delete;
  Hdf5Recorder& operator=(const Hdf5Recorder&) = delete;

  /// Once, early: a process that dies later leaves this readable in the partial file.
  void write_manifest(const Manifest& manifest);
  /// Simulated time in ps at the end of the run, and the run's fingerprint (summed over all processes). Before
  /// write_links(), which needs the former.
  void write_outcome(std::int64_t simulated_time, std::uint64_t fingerprint);

  // Tables are those of results/tables/result_tables.hpp, or any other with a declaration. One that is not written is
  // absent from the file; one without rows has columns of length 0. `interval` is that of a series in ps. `complete`:
  // with the optional columns of the table.

  /// The whole table, at most once. Cells that depend on the simulated time need write_outcome() before.
  template <class Row>
  void write(std::vector<Row> rows, std::int64_t interval = 0, bool complete = true) {
    append(std::move(rows), true, interval, complete);
  }
  /// In portions, so that a run need not keep all rows: each holds rows that come after those of earlier portions in
  /// the table's order. `last`: there will be no more. Before the last portion the simulated time is not known: no
  /// sampling interval in it may last longer than the run.
  template <class Row>
  void append(const std::vector<Row>& rows, bool last, std::int64_t interval = 0, bool complete = true) {
    append_rows(pack_into_table(rows, last, interval, complete), last, interval);
  }
  /// The same for rows that nobody needs any more: their memory is free before they are exchanged.
  template <class Row>
  void append(std::vector<Row>&& rows, bool last, std::int64_t interval = 0, bool complete = true) {
    OpenTable& open = pack_into_table(rows, last, interval, complete);
    std::vector<Row>().swap(rows);
    append_rows(open, last, interval);
  }
  /// Before the first portion of a table whose number of rows, and the longest of all their texts, are known: it lies
  /// in one piece, as if it were written at once.
  template <class Row>
  void announce(std::uint64_t rows, std::vector<std::uint64_t> longest, bool complete = true) {
    OpenTable& open = open_[std::string(ResultTable<Row>::name)];
    open.info = describe<Row>(agreed_widths(std::move(longest), true), complete);
    create_columns(open, rows, true, 0);
  }
  /// /collectives, of the process's own ranks; `all` is the same on every process. `with_times`: with columns for them,
  /// which the log has.
  void write_collectives(CollectiveLog& log, const CollectiveDirectory& all, bool with_times = false);
  /// One row per MPI process, and facts about all of them (name, value, unit), into /manifest/parallel.
  void write_processes(std::vector<ProcessRecord> rows,
                       const std::vector<std::tuple<std::string, double, std::string>>& facts);

  /// Closes the file and gives it its final name, replacing an older file. `complete` false marks the results of an
  /// interrupted run.
  void finish(bool complete);

  const std::string& path() const { return path_; }

 private:
  /// A table in the making.
  struct OpenTable {
    TableInfo info;
    hdf5::Handle group;
    std::vector<hdf5::Handle> columns;
    std::uint64_t rows = 0;    // written
    std::uint64_t extent = 0;  // for which there is room
    PackedRows packed;         // of the portion: fresh memory for each would cost as much as writing it
    std::vector<std::byte> cells;
  };
  template <class Row>
  TableContext context_of(bool last, std::int64_t interval) const {
    WEFT_EXPECT(simulated_time_ >= 0 || !last || !needs_context<Row>(), "write_outcome() must come before table '{}'",
                ResultTable<Row>::name);
    return {simulated_time_ >= 0 ? simulated_time_ : std::numeric_limits<std::int64_t>::max(), interval};
  }
  template <class Row>
  OpenTable& pack_into_table(const std::vector<Row>& rows, bool last, std::int64_t interval, bool complete) {
    const TableContext context = context_of<Row>(last, interval);
    OpenTable& open = open_[std::string(ResultTable<Row>::name)];
    if (!open.group) open.info = describe<Row>(agreed_widths(longest_texts(rows), last), complete);
    together([&] { pack(open.info, context, rows, open.packed); });
    return open;
  }
  std::vector<std::uint64_t> agreed_widths(std::vector<std::uint64_t> widths, bool last) const;
  void append_rows(OpenTable& open, bool last, std::int64_t interval);
  void create_columns(OpenTable& open, std::uint64_t rows, bool final, std::int64_t interval);
  static void write_columns(OpenTable& open, const std::vector<std::uint64_t>& order, std::uint64_t first_row);
  void write_text(hid_t group, const std::string& name, const std::string& text, const std::string& description);
  void create_file();
  void close_file();
  void give_final_name();
  void discard_file();
  void abandon_file();
  void flush();
  /// collectively() with the file's name in front of what failed. A write that failed within the step fails it, too.
  template <class Step>
  void together(Step&& step) {
    const FileIsBeingWritten writing;
    bool came_through = false;
    try {
      collectively(comm_, [&] {
        step();
        came_through = true;
        if (!failed_write().empty()) throw EnvironmentError(failed_write());
      });
    } catch (const EnvironmentError& failure) {
      give_up("cannot write '" + path_ + "': " + failure.what(), came_through);
    }
  }
  [[noreturn]] void give_up(const std::string& message, bool came_through);

  MPI_Comm comm_ = MPI_COMM_NULL;
  int process_ = 0;
  int processes_ = 1;
  std::string path_;
  std::string partial_path_;
  FileLock lock_;  ///< of process 0, on the unfinished file
  hdf5::Handle file_;
  std::map<std::string, OpenTable> open_;  // by name
  std::int64_t simulated_time_ = -1;
  bool created_ = false;
  bool finished_ = false;
};

}  // namespace weft
