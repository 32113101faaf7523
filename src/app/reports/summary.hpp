// SPDX-License-Identifier: GPL-2.0-only
// What a run prints at its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/reports/time_shares.hpp"
#include "app/running/experiment.hpp"
#include "app/running/simulation.hpp"
#include "results/tables/collective_results.hpp"
#include "schedule/program/workload_report.hpp"

namespace weft {

/// A link for which packets have waited.
struct HotLinkLine {
  std::string from;
  std::string to;
  double utilization = 0;  ///< busy time / simulated time
  double mean_queue = 0;   ///< bytes, over the simulated time
  std::int64_t peak_queue = 0;
  std::int64_t p99_queue = -1;  ///< of its fullest class; -1 unless output.queue_depths is set
};

/// Of the only job of a run, a training job, per second of simulated time.
struct Throughput {
  double sequences = 0;
  double tokens = 0;
  double model_flops = 0;  ///< of each rank: WorkloadReport::model_flops
  double model_flops_causal = 0;
};
Throughput throughput_of(const WorkloadReport& step, const JobRecord& job);

struct Summary {
  std::string experiment;
  std::string engine;
  Fidelity fidelity = Fidelity::packet;
  std::uint64_t seed = 1;
  int mpi_ranks = 1;
  RunFacts facts;
  std::uint64_t operations = 0;  ///< executed, of all ranks
  bool complete = false;
  bool verified = false;  ///< every row equals that of the reference
  std::uint64_t fingerprint = 0;
  std::string output;
  Partition partition;  ///< without owners
  Time inner_epoch;
  std::uint64_t memory_bytes = 0;      ///< of the fabric on all processes
  std::vector<HotLinkLine> hot_links;  ///< the hottest first
  std::vector<JobRecord> jobs;
  std::vector<RankShares> job_shares;  ///< of each of them
  std::optional<Throughput> throughput;
  std::vector<TransferRecord> transfers;
  std::vector<CollectiveResult> collectives;
  std::vector<CallTimes> call_times;              ///< of these
  std::map<CallGroupKey, CallGroup> call_groups;  ///< of all
  std::uint64_t collective_count = 0;             ///< may exceed collectives.size()
  std::vector<std::string> warnings;              ///< see advice()
};

/// "1.234 ms", "12.5 kB".
std::string readable(Time time);
std::string in_unit(double value, const char* unit);

/// One JSON object (`weft run --summary json`).
std::string summary_json(const Summary& summary);
/// A table for people.
std::string summary_table(const Summary& summary);

}  // namespace weft
