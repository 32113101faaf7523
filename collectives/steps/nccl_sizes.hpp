// SPDX-License-Identifier: GPL-2.0-only
// What NCCL divides its buffers by, and how it rounds.
#pragma once

#include <bit>
#include <cstdint>

#include "schedule/collective/collective.hpp"

namespace weft {

constexpr std::int64_t nccl_steps = 8;       ///< of a channel's buffer: NCCL_STEPS, NCCL src/include/device.h
constexpr std::int64_t nccl_alignment = 16;  ///< bytes, of parts, last chunks and slices: NCCL src/enqueue.cc

/// A tree's chunk of LL128, NCCL src/enqueue.cc (v2.27.3, calcCollChunking): `chunk` halved until there are enough of
/// them for the levels of the tree and the chains in servers, the more the fewer accelerators a server has; then whole
/// grains.
inline std::int64_t ll128_tree_chunk(std::int64_t bytes, std::uint32_t channels, std::uint32_t servers, float in_server,
                                     std::int64_t chunk, std::int64_t grain) {
  const auto steps = static_cast<float>(std::bit_width(servers) + 0.1 * in_server);
  const auto halve = [&](float chunks, std::int64_t to) {
    while (static_cast<float>(bytes / (channels * chunk)) < steps * chunks / in_server && chunk > to) chunk /= 2;
  };
  halve(64, 131'072);
  halve(16, 32'768);
  return chunk / grain * grain;
}

/// A tree's chunk of Simple up to 2.20, src/enqueue.cc (v2.8.4, computeColl): `chunk` halved until there are enough of
/// them for the depth of the tree, which is that of src/graph/connect.cc: the chain in a server and the levels above.
inline std::int64_t early_tree_chunk(std::int64_t bytes, std::uint32_t channels, std::uint32_t servers,
                                     std::uint32_t in_server, std::int64_t chunk) {
  const std::int64_t depth = std::int64_t{in_server} - 1 + std::bit_width(servers) - 1;
  for (const auto& [times, to] : {std::pair<std::int64_t, std::int64_t>{8, 131'072}, {4, 65'536}, {1, 32'768}})
    while (bytes / (channels * chunk) < depth * times && chunk > to) chunk /= 2;
  return chunk;
}

/// Channels that NCCL's rings and trees have on the machine of a call; 1 where it is not known.
inline std::uint32_t nccl_channels(const CollectiveCall& call) { return call.graph ? call.graph->channels() : 1; }

/// NVLink SHARP: channels, and the bytes of NVLSTree's largest chunk.
struct NvlsTuning {
  std::uint32_t channels = 1;
  std::int64_t tree_chunk = 131'072;
};

/// A chunk of NVLSTree: `largest`, or less where there are few of them (src/enqueue.cc, calcCollChunking).
inline std::int64_t nvls_tree_chunk(std::int64_t bytes, std::uint32_t channels, std::uint32_t heads,
                                    std::int64_t largest) {
  const std::int64_t at_once = std::int64_t{channels} * heads;
  std::int64_t chunk = largest;
  for (const auto& [times, to] :
       {std::pair<std::int64_t, std::int64_t>{32, 262'144}, {16, 131'072}, {4, 65'536}, {1, 32'768}})
    if (bytes < times * at_once * chunk) chunk = std::min(chunk, to);
  return chunk;
}

/// A chunk of NVLink SHARP in one server, the same way.
inline std::int64_t nvls_chunk(std::int64_t bytes, std::uint32_t channels, std::uint32_t heads, std::int64_t largest) {
  const std::int64_t at_once = std::int64_t{channels} * heads;
  std::int64_t chunk = largest;
  for (const auto& [times, to] : {std::pair<std::int64_t, std::int64_t>{64, 65'536}, {8, 32'768}, {2, 16'384}})
    if (bytes < times * at_once * chunk) chunk = std::min(chunk, to);
  return chunk;
}

/// A chunk of PAT: a step of the buffer, halved where there are few of them (src/enqueue.cc, calcCollChunking).
inline std::int64_t pat_chunk(CollectiveKind kind, std::int64_t bytes, std::uint32_t channels, std::int64_t step) {
  const std::int64_t chunks = kind == CollectiveKind::all_gather ? 32 : 16;
  while (step > 65'536 && step * channels * chunks > bytes) step /= 2;
  return step;
}

/// A chunk of sends and receives with another server (src/enqueue.cc, addP2pToPlan): `step`, or less of small messages.
constexpr std::int64_t p2p_net_chunk(std::int64_t bytes, std::int64_t step) {
  return bytes < step ? step / 4 : bytes < 8 * step ? step / 2 : step;
}

/// src/transport/nvls.cc, ncclNvlsTuning and ncclNvlsTreeSm100Tuning (2.30): 16 channels on Hopper, later 24 in one
/// server and 32 over several, from 2.30 on by the NIC; chunks of 64 KiB from four servers on, on Blackwell by the NIC.
inline NvlsTuning nvls_tuning(const CollectiveCall& call, std::uint32_t servers) {
  constexpr std::int64_t kib = 1024;
  NvlsTuning tuning{1, (servers >= 4 ? 64 : 128) * kib};
  if (!call.graph) return tuning;
  const ChannelSpeeds& speeds = call.graph->speeds();
  tuning.channels = speeds.generation <= ChannelSpeeds::Generation::hopper ? 16 : servers > 1 ? 32 : 24;
  if (tuning.channels < 32 || call.tuning.nccl_version < NcclVersion::v2_28 || speeds.nic < 48) return tuning;
  const std::uint32_t in_server = call.graph->size() / servers;
  if (servers == 2) {
    const bool near = in_server <= 8 && !speeds.nics_behind_cpu && speeds.nic < 96;
    tuning.tree_chunk = (in_server <= 4 ? 256 : in_server >= 16 || near ? 64 : 128) * kib;
  } else if (speeds.nic < 96) {
    tuning = {24, (speeds.nics_behind_cpu ? 128 : 64) * kib};
  } else if (in_server <= 8) {
    tuning = {24, 256 * kib};
  } else {
    tuning.tree_chunk = (in_server < 32 ? 128 : 64) * kib;
  }
  return tuning;
}
inline std::uint32_t nvls_channels(const CollectiveCall& call) {
  return nvls_tuning(call, call.graph ? call.graph->servers() : 1).channels;
}

/// GPUs of a server that have a share of an all-reduce by NVLink SHARP: NCCL_MAX_NVLS_ARITY, src/include/device.h.
constexpr std::uint32_t max_nvls_heads = 32;
constexpr std::uint32_t nvls_heads(std::uint32_t in_server) {
  return in_server < max_nvls_heads ? in_server : max_nvls_heads;
}

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
constexpr std::int64_t align_up(std::int64_t a) { return divide_up(a, nccl_alignment) * nccl_alignment; }

}  // namespace weft
