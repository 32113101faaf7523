// SPDX-License-Identifier: GPL-2.0-only
// One partition for all processes.
#pragma once

#include <string>

#include "engine/process_group.hpp"
#include "graph/partition/partition.hpp"

namespace weft {

/// Collective: make_partition() into as many parts as the group has processes. The first process makes it for all:
/// otherwise processes that share cores would do the same work one after another.
Partition shared_partition(const ProcessGroup& group, const Topology& topology, const std::string& method,
                           Bytes min_frame, std::uint64_t seed);

}  // namespace weft
