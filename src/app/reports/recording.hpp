// SPDX-License-Identifier: GPL-2.0-only
// From what a simulation has counted to the tables of its file.
#pragma once

#include <cstdint>
#include <vector>

#include "app/reports/time_shares.hpp"
#include "app/running/experiment.hpp"
#include "app/running/simulation.hpp"

namespace weft {

class Hdf5Recorder;

/// Collectives of the workload, as results name them.
CollectiveDirectory collective_directory(const Workload& workload);

/// Collective: the fingerprint of a run, a sum over the rows of messages, collectives, links and ranks.
std::uint64_t run_fingerprint(const Experiment& experiment, Simulation& simulation, const RunFacts& facts);

/// Writes messages and link samples in portions while the run goes on, so that memory does not grow with its length,
/// and the other tables at its end.
class Recording {
 public:
  Recording(Hdf5Recorder& recorder, const Experiment& experiment, Simulation& simulation);
  /// This process holds so many rows that they should be written.
  bool portion_due() const;
  /// Collective, between two epochs: everything before `now` has happened, nothing after.
  void write_portion(Time now);
  std::uint64_t portions() const { return portions_; }
  /// Rows of series that a signal has left no time to write, over all processes.
  std::uint64_t left_out() const { return left_out_; }
  /// Collective: the rest. Gives the run's fingerprint.
  std::uint64_t write_rest(const RunFacts& facts);
  /// After write_rest().
  const std::vector<JobRecord>& job_rows() const { return job_rows_; }
  const std::vector<TransferRecord>& transfer_rows() const { return transfer_rows_; }
  const RunShares& shares() const { return shares_; }
  const std::vector<RankShares>& job_shares() const { return job_shares_; }

 private:
  std::size_t rows_held() const;
  void append_messages(bool last);
  /// Collective. `to_rows` makes rows of samples.
  template <class Sample, class ToRows>
  void append_series(std::vector<Sample> taken, Time interval, ToRows&& to_rows);
  void write_rest_of_series(const RunFacts& facts);
  void write_transfers();
  void write_parallel(const RunFacts& facts);

  Hdf5Recorder& recorder_;
  const Experiment& experiment_;
  Simulation& simulation_;
  std::vector<JobInfo> jobs_;
  std::size_t kept_rows_ = 0;  // after the last portion
  std::uint64_t portions_ = 0;
  std::uint64_t left_out_ = 0;
  std::vector<JobRecord> job_rows_;
  std::vector<TransferRecord> transfer_rows_;
  RunShares shares_;
  std::vector<RankShares> job_shares_;  // [jobs]
};

}  // namespace weft
