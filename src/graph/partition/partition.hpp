// SPDX-License-Identifier: GPL-2.0-only
// Which MPI rank simulates which node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/topology/topology_builder.hpp"

namespace weft {

/// Owners of nodes and the facts of the cut.
struct Partition {
  std::string method;
  std::uint32_t parts = 1;
  std::vector<std::uint16_t> owner;  ///< [nodes] -> MPI rank
  std::uint32_t cut_links = 0;       ///< links whose ends have different owners
  double balance = 1;                ///< heaviest part's weight / mean weight (weight of a node: its number of ports)
  Time lookahead = Time::max();      ///< least (delay + serialisation of `min_frame`) over cut links; max() if none
};

/// `method`: "groups" (alias "pods"; whole groups in contiguous balanced blocks, ungrouped nodes spread evenly; with
/// more parts than groups some ranks own nothing), "metis" (METIS k-way, fixed seed), "random" (by seed; for tests),
/// "auto" (groups or metis, whichever has the lower estimated cost: balance, cut and lookahead) Deterministic.
/// `min_frame`: wire bytes of the smallest packet.
Partition make_partition(const Topology& topology, std::uint32_t parts, const std::string& method, Bytes min_frame,
                         std::uint64_t seed);

}  // namespace weft
