// SPDX-License-Identifier: GPL-2.0-only
// A server as NCCL sees it, with the speeds that NCCL counts for its links.
//
// NCCL src/graph/topo.h, src/graph/topo.cc, v2.30.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/shapes/server_shape.hpp"
#include "nccl/system.hpp"
#include "units/bandwidth.hpp"

namespace weft {

/// NCCL's unit of speeds.
inline double gigabytes(Bandwidth rate) { return static_cast<double>(rate.bps()) / 8e9; }

/// The part of a server that some of its accelerators see. `accelerators`: ascending numbers in the server. `nic_rate`:
/// of one port of a NIC to the network. `several_servers`: others have members as well, and the network is used.
NcclSystem nccl_system(const ServerDesign& design, const std::vector<std::uint32_t>& accelerators, Bandwidth nic_rate,
                       bool several_servers);

}  // namespace weft
