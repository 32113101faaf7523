// SPDX-License-Identifier: GPL-2.0-only
// What a run shows that its user had better know before the results are believed.
#pragma once

#include <string>
#include <vector>

#include "app/running/experiment.hpp"
#include "fabric/probes/fabric_reports.hpp"
#include "results/tables/records.hpp"

namespace weft {

/// One sentence each: what happened, why, and what to set. `totals` are those of all processes.
std::vector<std::string> advice(const Experiment& experiment, const CongestionTotals& totals);
/// Adds the transfers of a run that has come to its end without all of their bytes.
void advise_on_transfers(const std::vector<TransferRecord>& transfers, std::vector<std::string>& warnings);
/// Adds that the processes of a run have written rows so often that this is what took the time.
void advise_on_portions(const Experiment& experiment, std::uint64_t portions, std::vector<std::string>& warnings);

}  // namespace weft
