// SPDX-License-Identifier: GPL-2.0-only
// The queue pairs of a rank: of its sends, and of its collectives' connections.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "fabric/client/host_network.hpp"
#include "runtime/books/explanation.hpp"
#include "runtime/execution/connection.hpp"
#include "schedule/collective/collective.hpp"
#include "schedule/program/placement.hpp"
#include "units/time.hpp"

namespace weft {

class RankConnections {
 public:
  /// `host`: of the rank.
  RankConnections(NodeId host, const Placement& placement, HostNetwork& network)
      : host_(host), placement_(placement), network_(network) {}

  /// Queue pairs for messages to a peer, with neighbouring numbers.
  struct SendQueues {
    std::uint32_t first = 0;
    std::uint32_t sent = 0;  ///< messages
  };
  /// Those of sends: `number` is the program's.
  SendQueues& send_queues(std::uint32_t peer, std::uint32_t number);
  /// Of collectives; `rank`: at the other end.
  SendConnection& send_connection(const CollectiveCall& call, std::uint32_t channel, std::uint32_t rank);
  ReceiveConnection& receive_connection(std::uint32_t communicator, std::uint32_t channel, std::uint32_t source) {
    return receive_connections_[{communicator, channel, source}];
  }

  struct Posted {
    std::uint32_t parts = 0;  ///< messages of the network
    std::uint64_t last = 0;   ///< id of the last of them
  };
  /// Posts a message to queue pairs of which `first` is the first: to the next in turn, or in parts to all (NCCL's
  /// ncclIbMultiSend in src/transport/net_ib.cc). `turn` counts the messages of the connection.
  Posted post(Time now, std::uint32_t first, std::uint32_t& turn, Message message, std::uint64_t token);

  /// A queue pair of a collective's connection.
  struct OwnQueuePair {
    SendConnection* connection = nullptr;
    std::uint32_t channel = 0;
    // When a receiver last answered, or it began to send, and what it had spent its time on until then.
    Time answered;
    SendTimes times;
  };
  bool has(std::uint32_t queue_pair) const { return own_.contains(queue_pair); }
  const OwnQueuePair& own(std::uint32_t queue_pair) const { return own_.at(queue_pair); }
  /// A receiver answers now, or it begins to send.
  BecauseOfSending since_last_answer(Time now, std::uint32_t queue_pair);

  /// The slices that have arrived for the oldest call of a communicator; nullptr if there are none.
  const ReceiveConnection::Slice* oldest_slice(std::uint32_t communicator) const;
  /// True if all slices that have arrived were taken.
  bool empty() const;

 private:
  std::uint32_t open(std::uint32_t peer);

  NodeId host_;
  const Placement& placement_;
  HostNetwork& network_;
  std::unordered_map<std::uint64_t, SendQueues> send_queues_;  // (peer, number)
  std::map<ConnectionKey, SendConnection> send_connections_;
  std::map<ConnectionKey, ReceiveConnection> receive_connections_;
  std::unordered_map<std::uint32_t, OwnQueuePair> own_;
};

}  // namespace weft
