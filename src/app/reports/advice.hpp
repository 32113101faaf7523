// SPDX-License-Identifier: GPL-2.0-only
// What a run shows that its user had better know before the results are believed.
#pragma once

#include <string>
#include <vector>

#include "app/running/experiment.hpp"
#include "fabric/fabric_reports.hpp"

namespace weft {

/// One sentence each: what happened, why, and what to set. `totals` are those of all processes.
std::vector<std::string> advice(const Experiment& experiment, const CongestionTotals& totals);

}  // namespace weft
