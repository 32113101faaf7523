// SPDX-License-Identifier: GPL-2.0-only
// Whether a placement keeps together what collectives take for servers.
#pragma once

#include "schedule/program/placement.hpp"
#include "schedule/program/workload.hpp"

namespace weft {

/// Throws InputError at `where`, a placement, if a call with `ranks_per_server` has neighbours on different servers
/// that it takes for one server's. Nothing is known of machines without servers.
void require_servers(const Spec& where, const Workload& workload, const Placement& placement, const ServerGrid& grid);

}  // namespace weft
