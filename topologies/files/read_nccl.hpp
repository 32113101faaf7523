// SPDX-License-Identifier: GPL-2.0-only
// The inside of a server as NCCL finds it.
#pragma once

#include "graph/shapes/server_shape.hpp"

namespace weft {

/// Reads the file that NCCL or RCCL writes to NCCL_TOPO_DUMP_FILE (src/graph/xml.cc): GPUs, PCIe switches, CPUs, NICs
/// and NVLinks, or Infinity Fabric. It tells no delays, which `map` says: nvlink_delay (if there are NVLinks),
/// pcie_delay; and smp_rate, smp_delay between CPUs if there are several. A GPU uses the NIC with the fewest links
/// between; of several, each gets its share. Throws InputError with the line.
ServerDesign read_nccl_server(const Spec& name, const Spec& map);

/// Reads the file that NCCL writes to NCCL_GRAPH_DUMP_FILE and reads from NCCL_GRAPH_FILE (src/graph/search.cc,
/// ncclTopoGetXmlFromGraphs): of each graph its speeds and channels, for a server of this design. Throws InputError
/// with the line.
std::vector<ServerDesign::GivenGraph> read_nccl_graphs(const Spec& name, const ServerDesign& design);

}  // namespace weft
