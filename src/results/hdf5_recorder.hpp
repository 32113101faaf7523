// SPDX-License-Identifier: GPL-2.0-only
// The result file: all MPI ranks write their rows together, and the content does not depend on how many there are.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <hdf5.h>
#include <mpi.h>

#include "results/agreement.hpp"
#include "results/file_lock.hpp"
#include "results/hdf5_support.hpp"
#include "results/manifest.hpp"
#include "results/records.hpp"
#include "results/table.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"

namespace weft {

/// Writes one HDF5 file through MPI-IO (schema: docs/hdf5_schema.md). Every member function is collective over the
/// communicator, the destructor excepted. Each process passes the rows it has, in any order; rows travel to the process
/// that owns their block of keys, so that none ever holds the whole table, and stand in the file in the table's order.
/// Until finish() the file is named `path`.partial. Failures throw EnvironmentError, the same on all processes;
/// FatalEnvironmentError once the file is open.
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

  // A table that is not written is absent from the file; one without rows has columns of length 0.

  // In portions, so that a run need not keep all rows: each holds what happened since the last one, so that no row of a
  // portion comes before one of an earlier portion in the table's order of time. `last`: there will be no more.
  void append_messages(std::vector<MessageRecord> rows, bool last);
  /// `interval` is the sampling interval in ps. `end`: an interval that lasts longer is cut there; with the last
  /// portion the simulated time of the run.
  void append_link_series(std::vector<LinkSample> rows, std::int64_t interval, std::int64_t end, bool last);

  /// The same of queue pairs.
  void append_rate_series(std::vector<QueuePairRate> rows, std::int64_t interval, std::int64_t end, bool last);

  // Each at most once.
  /// `all` is the same on every process; `parts` are those of the process's own ranks.
  void write_collectives(const std::vector<CollectivePart>& parts, const CollectiveDirectory& all);
  void write_links(std::vector<LinkRecord> rows);
  void write_link_classes(std::vector<LinkClassRecord> rows);
  void write_queue_depths(std::vector<QueueDepthRecord> rows);
  void write_queue_pairs(std::vector<QueuePairRecord> rows);
  void write_receivers(std::vector<ReceiverRecord> rows);
  void write_ranks(std::vector<RankRecord> rows);
  void write_jobs(std::vector<JobRecord> rows);
  void write_transfers(std::vector<TransferRecord> rows);
  /// `interval` is the sampling interval in ps.
  void write_transfer_series(std::vector<TransferSample> rows, std::int64_t interval);
  void write_operations(std::vector<OperationRecord> rows);
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
    std::uint64_t rows = 0;
  };
  template <class Row>
  void write_table(const Table<Row>& table, std::vector<Row> rows);
  template <class Row>
  void append_table(OpenTable& open, const Table<Row>& table, std::vector<Row> rows, bool last);
  void append_rows(OpenTable& open, PackedRows rows, bool last);
  void create_columns(OpenTable& open, std::uint64_t rows, bool final);
  void write_column(const OpenTable& open, std::size_t column, std::size_t offset, const PackedRows& rows,
                    const std::vector<std::uint64_t>& order, std::uint64_t first_row);
  template <class Row>
  void append_series(OpenTable& open, const Table<Row>& table, std::vector<Row> rows, std::int64_t interval, bool last);
  void write_text(hid_t group, const std::string& name, const std::string& text, const std::string& description);
  void create_file();
  void close_file();
  void give_final_name();
  void discard_file();
  void abandon_file();
  void flush();
  /// collectively() with the file's name in front of what failed.
  template <class Step>
  void together(Step&& step) {
    const FileIsBeingWritten writing;
    try {
      collectively(comm_, step);
    } catch (const EnvironmentError& failure) {
      const std::string message = "cannot write '" + path_ + "': " + failure.what();
      if (!file_) throw EnvironmentError(message);
      // HDF5 can neither write what it holds nor close the file, and crashes when it is asked to once more.
      abandon_file();
      throw FatalEnvironmentError(message);
    }
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int process_ = 0;
  int processes_ = 1;
  std::string path_;
  std::string partial_path_;
  FileLock lock_;  ///< of process 0, on the unfinished file
  hdf5::Handle file_;
  OpenTable messages_;
  OpenTable series_;
  OpenTable rates_;
  std::int64_t simulated_time_ = -1;
  bool finished_ = false;
};

}  // namespace weft
