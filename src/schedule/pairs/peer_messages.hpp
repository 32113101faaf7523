// SPDX-License-Identifier: GPL-2.0-only
// How NCCL divides messages between two members of a communicator among channels, and how many of them a channel's
// thread block works on at a time. Source: NCCL src/enqueue.cc (addP2pToPlan, scheduleP2pTasksToPlan; v2.22.3 at
// 178b6b75, v2.28.3 at f1308997, v2.30), src/init.cc (computeBuffSizes).
#pragma once

#include <cstdint>

#include "schedule/collective/collective.hpp"

namespace weft {

/// NCCL's p2pChunkSize, in bytes: a chunk of a large message with Simple. 512 KiB in one server
/// (NCCL_P2P_NVL_CHUNKSIZE), over several the call's or the machine's NCCL_P2P_NET_CHUNKSIZE, or 128 KiB.
std::int64_t peer_chunk(const CollectiveCall& call);

/// Channels that a message to a peer may be spread over, p2pnChannelsPerPeer; 1 where the machine is not known.
std::uint32_t peer_channels(const CollectiveCall& call);

/// Parts into which a message of so many bytes is divided, each on a channel of its own, with the call's protocol.
std::uint32_t peer_parts(const CollectiveCall& call, std::int64_t bytes);

/// Whether a message of so many bytes takes LL where both ends have buffers for it: NCCL_P2P_LL_THRESHOLD, 16 KiB, for
/// each channel that it may have up to 2.28, since then for each that it has. `channels`: of the call, at most.
bool is_small_to_peer(const CollectiveCall& call, std::int64_t bytes, std::uint32_t channels);

/// Of a thread block at a time, where every member sends so many bytes to every member: works, each a send and a
/// receive or a copy of a member's own data, and those of them that are messages.
struct PeerWorks {
  std::uint32_t all = 1;
  std::uint32_t messages = 1;
};
PeerWorks peer_works(const CollectiveCall& call, std::int64_t bytes);

}  // namespace weft
