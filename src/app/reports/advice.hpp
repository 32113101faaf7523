// SPDX-License-Identifier: GPL-2.0-only
// Warnings about a run, which its user should know before trusting the results.
#pragma once

#include <string>
#include <vector>

#include "app/running/experiment.hpp"
#include "fabric/probes/fabric_reports.hpp"
#include "results/tables/records.hpp"

namespace weft {

/// One sentence each: what happened, why, and what to set. `totals` are those of all processes.
std::vector<std::string> advice(const Experiment& experiment, const CongestionTotals& totals);
/// Adds a warning if links of a torus stood still for longer than any of them was busy. `stopped`, `busy`: of the link
/// of the machine that was stopped by flow control, and of the one that was busy, for longest.
void advise_on_rings(const Experiment& experiment, Time stopped, Time busy, std::vector<std::string>& warnings);
/// Adds the transfers that did not deliver all of their bytes by the end of the run.
void advise_on_transfers(const std::vector<TransferRecord>& transfers, std::vector<std::string>& warnings);
/// Adds a warning if the processes of a run have written rows so often that this took most of the time.
void advise_on_portions(const Experiment& experiment, std::uint64_t portions, std::vector<std::string>& warnings);

}  // namespace weft
