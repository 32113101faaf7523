// SPDX-License-Identifier: GPL-2.0-only
// NCCL's search for channels inside one server: the order in which each channel visits the GPUs, and the networks by
// which it enters and leaves.
//
// NCCL src/graph/search.cc (ncclTopoCompute and what it calls), v2.30. Speeds are model values in GB/s.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "nccl/system.hpp"

namespace weft {

/// src/include/graph.h, NCCL_TOPO_PATTERN_*, with NCCL's numbers.
enum class GraphPattern : std::uint8_t {
  balanced_tree = 1,  ///< parent and second child at the first GPU, first child at the second one
  split_tree = 2,     ///< parent at the first GPU, children at the second one
  tree = 3,           ///< all at the first GPU
  ring = 4,
  nvls = 5,  ///< heads of NVLink SHARP: only the first GPU of a channel counts
};

struct NcclSearchChannel {
  std::vector<std::uint32_t> gpus;  ///< numbers in the system, in order; nvls: the head alone
  std::uint32_t net_in = 0;         ///< number in the system, if there are several servers
  std::uint32_t net_out = 0;
};

/// ncclTopoGraph.
struct NcclSearchGraph {
  GraphPattern pattern = GraphPattern::ring;
  std::uint32_t min_channels = 1;
  std::uint32_t max_channels = 32;
  double intra = 0;  ///< GB/s of a channel inside the server
  double inter = 0;  ///< to the network
  PathType intra_type = PathType::local;
  PathType inter_type = PathType::one_switch;
  std::uint32_t cross_nic = 0;  ///< 0: in and out by the same NIC; 1: as it comes; 2: channels in mirrored pairs
  bool same_channels = true;    ///< each channel is like the one before
  std::int32_t hops = 0;
  std::vector<NcclSearchChannel> channels;
};

struct NcclSearchOptions {
  std::uint32_t cross_nic = 2;  ///< NCCL_CROSS_NIC: 0 never, 1 always, 2 where it is faster
};

/// The best graph of a pattern. Where there is none, NCCL takes one channel through all GPUs as they are numbered, at
/// 0.1 GB/s; of nvls nothing is left.
NcclSearchGraph search_nccl_graph(const NcclSystem& system, GraphPattern pattern, std::uint32_t min_channels,
                                  std::uint32_t max_channels, const NcclSearchOptions& options = {});

constexpr std::uint32_t max_nccl_channels = 64;  ///< MAXCHANNELS, src/include/device.h

}  // namespace weft
