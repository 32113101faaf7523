// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/pairs/peer_messages.hpp"

#include <algorithm>
#include <bit>

namespace weft {
namespace {

constexpr std::int64_t kib = 1024;

std::uint32_t known_server(const CollectiveCall& call) { return std::max(1U, call.tuning.ranks_per_server); }
bool one_server(const CollectiveCall& call) {
  return call.graph ? call.graph->servers() == 1 : known_server(call) >= call.communicator->size();
}
bool early(const CollectiveCall& call) { return call.tuning.nccl_version <= NcclVersion::v2_28; }

/// Parts of at least an eighth of a step and at most 32 steps in one server, of half a step to a step over several; at
/// first so few that all peers' fit the channels.
std::uint32_t parts_by_step(const CollectiveCall& call, std::int64_t bytes, std::int64_t step) {
  const std::int64_t min = std::max<std::int64_t>(1, one_server(call) ? step / 8 : step / 2);
  const std::int64_t max = one_server(call) ? step * 32 : step;
  const std::uint32_t most = peer_channels(call), channels = std::bit_ceil(call.graph->channels());
  std::uint32_t parts = most;
  while (parts > 1 && parts * call.communicator->size() > channels) parts /= 2;
  parts = static_cast<std::uint32_t>(std::min<std::int64_t>(parts, std::max<std::int64_t>(1, (bytes + min - 1) / min)));
  while (2 * parts <= most && bytes > parts * max) parts *= 2;
  return parts;
}

}  // namespace

std::int64_t peer_chunk(const CollectiveCall& call) {
  if (one_server(call)) return 512 * kib;
  if (call.tuning.p2p_chunk.count() != 0) return call.tuning.p2p_chunk.count();
  const std::int64_t set = call.graph ? call.graph->speeds().settings.p2p_chunk : 0;
  return set != 0 ? set : 128 * kib;
}

std::uint32_t peer_channels(const CollectiveCall& call) {
  if (!call.graph) return 1;
  return early(call) ? call.graph->speeds().early_peer_channels : call.graph->speeds().peer_channels;
}

// Up to 2.28 by a step of the protocol's own buffers, since then by Simple's for both.
std::uint32_t peer_parts(const CollectiveCall& call, std::int64_t bytes) {
  if (!call.graph) return 1;
  const bool ll = call.tuning.protocol == Protocol::ll && early(call);
  return parts_by_step(call, bytes, ll ? 64 * kib : peer_chunk(call));
}

bool is_small_to_peer(const CollectiveCall& call, std::int64_t bytes, std::uint32_t channels) {
  constexpr std::int64_t threshold = 16 * kib;
  const std::uint32_t of_a_peer = !call.graph   ? 1
                                  : early(call) ? peer_channels(call)
                                                : parts_by_step(call, bytes, peer_chunk(call));
  return bytes <= threshold * std::min(of_a_peer, std::bit_ceil(channels));
}

// src/include/device.h, NCCL_MAX_DEV_WORK_P2P_PER_BATCH; src/include/channel.h, ncclP2pChannelBaseForRound: over
// several servers up to 8 rounds with one server begin on the same channel, nearly all of them with another one.
PeerWorks peer_works(const CollectiveCall& call, std::int64_t bytes) {
  if (!call.graph) return {};
  constexpr std::uint32_t max = 8;
  const std::uint32_t size = call.communicator->size(), channels = std::bit_ceil(call.graph->channels());
  const std::uint32_t parts = std::min(channels, peer_parts(call, bytes));
  const auto of_a_channel = [&](std::uint32_t bases) { return (bases * parts + channels - 1) / channels; };
  if (one_server(call)) return {std::min(max, of_a_channel(size)), std::clamp(of_a_channel(size - 1), 1U, max)};
  const std::uint32_t together = std::min(max, known_server(call));
  const std::uint32_t works = std::min(max, together * of_a_channel((size + together - 1) / together));
  return {works, works};
}

}  // namespace weft
