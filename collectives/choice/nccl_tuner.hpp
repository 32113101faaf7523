// SPDX-License-Identifier: GPL-2.0-only
// NCCL's own estimate of how long an algorithm and protocol take.
#pragma once

#include <cstdint>

#include "schedule/collective/collective.hpp"

namespace weft {

enum class NcclAlgorithm { tree, ring, pat, nvls, nvls_tree };

/// What NCCL knows of the machine (src/graph/tuning.cc): servers with NVLink inside and a network between them.
struct NcclMachine {
  enum class Gpu { volta, ampere, hopper, blackwell } gpu = Gpu::hopper;
  NcclVersion version = NcclVersion::v2_30;
  enum class Cpu { intel, amd, arm } cpu = Cpu::intel;
  std::uint32_t servers = 1;
  std::uint32_t ranks_per_server = 8;
  std::uint32_t channels = 16;  ///< that the search for rings and trees has found
  double intra_gbps = 20;       ///< GB/s per channel inside a server
  double inter_gbps = 20;       ///< between servers
  double net_latency_us = 0;
  /// Where they are not those of the rings: of trees, and of NVLink SHARP, whose channels are its heads. 0: as the
  /// rings.
  double tree_intra_gbps = 0;
  double tree_inter_gbps = 0;
  double nvls_intra_gbps = 0;
  double nvls_inter_gbps = 0;
  std::uint32_t nvls_heads = 0;
  bool nvlink = true;           ///< inside servers, else PCIe
  bool tree_is_simple = false;  ///< all links of a tree are at one GPU of a server (pattern 3)
  bool same_rings = true;       ///< all channels' rings are alike
  bool nics_behind_cpu = false;
  bool gpudirect = true;
  std::uint32_t ranks() const { return servers * ranks_per_server; }
  /// LL128 needs NVLink between the GPUs of a server (ncclTopoTuneModel: typeIntra <= PATH_NVB). To the
  /// network it goes no further than over the NIC of another GPU (typeInter <= PATH_PXN).
  /// That through a CPU was further until 2.27 told apart what is behind NVLink-C2C (src/graph/topo.h, PATH_P2C).
  /// Without GPUDirect the path is diverted through the CPU (src/graph/paths.cc, ncclTopoComputePaths): PATH_PHB.
  bool has_ll128() const {
    const bool near = gpudirect && (!nics_behind_cpu || version >= NcclVersion::v2_27);
    return (nvlink || ranks_per_server == 1) && (servers == 1 || near);
  }
};

/// latency_us + bytes / (1000 bandwidth): ncclTopoGetAlgoTime. bandwidth 0: not possible.
struct NcclEstimate {
  double latency_us = 0;
  double bandwidth = 0;  ///< GB/s of S
  double time_us(std::int64_t bytes) const { return latency_us + static_cast<double>(bytes) / (1000 * bandwidth); }
};

/// For all_reduce, all_gather, reduce_scatter, broadcast, reduce; `bytes` is needed for what depends on it.
NcclEstimate nccl_estimate(const NcclMachine& machine, CollectiveKind kind, NcclAlgorithm algorithm, Protocol protocol,
                           std::int64_t bytes);

struct TunerTable;
/// The same with a table's numbers, of rings and trees.
NcclEstimate nccl_estimate(const TunerTable& table, const NcclMachine& machine, CollectiveKind kind,
                           NcclAlgorithm algorithm, Protocol protocol, std::int64_t bytes);

}  // namespace weft
