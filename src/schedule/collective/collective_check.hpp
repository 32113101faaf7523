// SPDX-License-Identifier: GPL-2.0-only
// Replays a collective with contributions instead of data, and says what is wrong with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/collective/collective.hpp"
#include "units/bytes.hpp"

namespace weft {

/// What a replay found.
struct CollectiveReplay {
  std::vector<std::string> violations;  ///< empty: the algorithm is right; no more than the first 20 are kept
  std::uint64_t steps = 0;              ///< of all ranks and channels
  std::uint64_t messages = 0;           ///< slices sent by all ranks
  std::vector<Bytes> sent;              ///< payload bytes sent, by communicator index
  Bytes sent_by_aggregators;
  std::vector<Bytes> sent_between_servers;  ///< of these, to ranks of other servers (tuning.ranks_per_server)

  /// By ranks and aggregators.
  Bytes total_sent() const;
};

/// Runs the streams of all ranks and lanes of `call` until nothing moves any more. A step takes its slices one after
/// another; a slice that is received and sent on needs both the incoming slice and a free slot of the outgoing
/// connection, and frees its slot of the incoming connection only then (NCCL src/device/prims_simple.h, waitPeer and
/// postPeer). This is a Kahn network with bounded buffers: whether it ends, and with what, does not depend on the order
/// of execution. Only lanes that share memory could make it depend on that: these are run in two orders.
///
/// Checked: every stream ends (none has more than `step_limit` steps); steps name other ranks of the communicator and
/// lie within their buffers; a channel reads only input that is there, and output and scratch that it has stored; every
/// slice that is received was sent with the same bytes and slicing; nothing is left in flight; no output byte is
/// written twice; every result byte has the contribution of the right byte of every rank that it needs exactly once.
/// One rank alone may leave the output of all_reduce, broadcast and reduce untouched. Algorithms that share memory may
/// store a byte again.
CollectiveReplay replay(const CollectiveAlgorithm& algorithm, const CollectiveCall& call,
                        std::uint64_t step_limit = 10'000'000);

/// The fewest payload bytes that all ranks together must send when the network does not reduce or multicast: per byte
/// one message to join two partial results or to inform one more rank. all_reduce 2(n-1)S, send_recv nS, gather,
/// scatter and all_to_all all blocks but those that stay, the others (n-1)S.
Bytes min_bytes_sent(const CollectiveCall& call);

}  // namespace weft
