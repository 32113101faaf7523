// SPDX-License-Identifier: GPL-2.0-only
// The chain of operations that determines when a run ends.
#pragma once

#include "app/analysis/ideal_schedule.hpp"

namespace weft {

/// Walks back from the operation that ended last: what an operation waited for is the dependency, or the one before it
/// on its stream or communicator, that ended when it started; of a collective the member that started last, of a recv
/// the send of its message.
CriticalPath critical_path(const IdealSchedule& schedule);

}  // namespace weft
