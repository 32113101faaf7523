// SPDX-License-Identifier: GPL-2.0-only
// The graphs of one kind of server: what NCCL's search finds, what a file says, or what RCCL's tables have.
//
// NCCL src/init.cc (initTransportsRank), src/graph/search.cc (ncclTopoDumpGraphs), v2.30; RCCL
// src/graph/rome_models.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/shapes/server_shape.hpp"
#include "nccl/graph_search.hpp"

namespace weft {

/// The graphs of one kind of server.
struct ServerGraphs {
  NcclSearchGraph ring;
  NcclSearchGraph tree;
  NcclSearchGraph nvls;
};
ServerGraphs search_server(const NcclSystem& system, const NcclSearchOptions& options = {});

/// The same as a file says it (ServerDesign::given_graphs); what it leaves out is searched. Throws InputError if a
/// channel does not have the accelerators of the system.
ServerGraphs given_server(const NcclSystem& system, const std::vector<ServerDesign::GivenGraph>& given);

/// The same for rings of a table (ServerDesign::RingTable), and trees along the same chains, as RCCL has them. Nothing
/// if the design has no such table, or only some of its accelerators take part.
std::optional<ServerGraphs> tabled_server(const NcclSystem& system, const ServerDesign& design);

/// The file that NCCL writes to NCCL_GRAPH_DUMP_FILE: graphs 0 (rings), 1 (trees) and 3 (NVLink SHARP).
std::string nccl_graphs_xml(const NcclSystem& system, const ServerGraphs& graphs);

}  // namespace weft
