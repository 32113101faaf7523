// SPDX-License-Identifier: GPL-2.0-only
// A schedule in the trace format of Chrome and Perfetto.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/analysis/ideal_schedule.hpp"

namespace weft {

/// Writes {"traceEvents": [...]}: complete events (ph X) with ts and dur in microseconds, to the picosecond; pid is the
/// rank and tid its stream, both named by metadata events. Operations without a stream, which may overlap, are spread
/// over as many threads as are needed. Format: "Trace Event Format", Google, 2016. Throws EnvironmentError.
void write_timeline(const std::string& path, const Workload& workload, const IdealSchedule& schedule,
                    const std::vector<std::uint32_t>& ranks);

}  // namespace weft
