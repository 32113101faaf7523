// SPDX-License-Identifier: GPL-2.0-only
// What NCCL divides its buffers by, and how it rounds.
#pragma once

#include <cstdint>

#include "schedule/collective/collective.hpp"

namespace weft {

constexpr std::int64_t nccl_steps = 8;       ///< of a channel's buffer: NCCL_STEPS, NCCL src/include/device.h
constexpr std::int64_t nccl_alignment = 16;  ///< bytes, of parts, last chunks and slices: NCCL src/enqueue.cc

/// Channels that NCCL's rings and trees have on the machine of a call; 1 where it is not known.
inline std::uint32_t nccl_channels(const CollectiveCall& call) { return call.graph ? call.graph->channels() : 1; }

/// The same of NVLink SHARP: src/init.cc, ncclNvlsTuning and src/transport/nvls.cc (nvlsChannels): 16 on Hopper; later
/// 24 in one server, and by the NIC over several.
inline std::uint32_t nvls_channels(const CollectiveCall& call) {
  if (!call.graph) return 1;
  const ChannelGraph& graph = *call.graph;
  if (graph.speeds().generation <= ChannelSpeeds::Generation::hopper) return 16;
  if (graph.servers() == 1) return 24;
  if (graph.speeds().nic >= 96) return graph.per_server() <= 8 ? 24 : 32;
  return graph.servers() > 2 && graph.speeds().nic >= 48 ? 24 : 32;
}

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
constexpr std::int64_t align_up(std::int64_t a) { return divide_up(a, nccl_alignment) * nccl_alignment; }

}  // namespace weft
