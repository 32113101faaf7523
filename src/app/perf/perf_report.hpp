// SPDX-License-Identifier: GPL-2.0-only
// What `weft perf` prints and writes.
#pragma once

#include <string>
#include <vector>

#include "app/command_line/collective_options.hpp"
#include "app/perf/perf_analysis.hpp"
#include "app/perf/perf_sweep.hpp"

namespace weft {

struct PerfReport {
  const PerfOptions* options = nullptr;
  std::string fidelity;
  PerfSweep sweep;
  std::vector<Comparison> comparisons;
};

/// The lines above the rows: nccl-tests' columns (src/util.cu) for one algorithm, else time and bus bandwidth of each.
std::string perf_head(const PerfReport& report);
/// The rows of one size, a line; of several algorithms the fastest has a star.
std::string perf_line(const PerfReport& report, const std::vector<PerfRow>& rows);
/// The lines below: means, lines of latency and bandwidth, where algorithms change places, comparisons.
std::string perf_foot(const PerfReport& report);
std::string perf_json(const PerfReport& report);
/// Throws EnvironmentError if the file cannot be written.
void write_perf_csv(const PerfReport& report);

}  // namespace weft
