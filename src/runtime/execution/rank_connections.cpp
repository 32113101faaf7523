// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/execution/rank_connections.hpp"

#include <algorithm>

#include "support/basics/contract.hpp"

namespace weft {

RankConnections::SendQueues& RankConnections::send_queues(std::uint32_t peer, std::uint32_t number) {
  const auto [at, fresh] = send_queues_.try_emplace(static_cast<std::uint64_t>(peer) << 32 | number);
  if (fresh) at->second.first = open(peer);
  return at->second;
}

SendConnection& RankConnections::send_connection(const CollectiveCall& call, std::uint32_t channel,
                                                 std::uint32_t rank) {
  const auto [at, fresh] = send_connections_.try_emplace({call.communicator->id(), channel, rank});
  if (fresh) {
    at->second.queue_pair = open(rank);
    at->second.peer = rank;
    at->second.communicator = call.communicator->id();
    for (std::uint32_t i = 0; i < network_.parameters().queue_pairs_per_connection; ++i)
      own_[at->second.queue_pair + i] = {&at->second, channel, Time(), {}};
  }
  return at->second;
}

// Those of one connection. Gives the first; the others follow it.
std::uint32_t RankConnections::open(std::uint32_t peer) {
  const NodeId host = placement_.host(peer);
  const std::uint32_t first = network_.open_queue_pair(host_, host);
  for (std::uint32_t i = 1; i < network_.parameters().queue_pairs_per_connection; ++i) {
    const std::uint32_t next = network_.open_queue_pair(host_, host);
    WEFT_EXPECT(next == first + i, "queue pair {} of host {} follows {}", next, host_.value(), first);
  }
  return first;
}

RankConnections::Posted RankConnections::post(Time now, std::uint32_t first, std::uint32_t& turn, Message message,
                                              std::uint64_t token) {
  const NetworkParameters& network = network_.parameters();
  const std::uint32_t pairs = network.queue_pairs_per_connection;
  const std::uint32_t number = turn++;
  if (!network.split_data || pairs == 1) return {1, network_.post(host_, first + number % pairs, now, message, token)};
  constexpr std::int64_t unit = NetworkParameters::split_unit;
  const std::int64_t whole = message.bytes.count();
  const std::int64_t share = std::max<std::int64_t>(1, (whole + pairs * unit - 1) / (pairs * unit)) * unit;
  message.parts = static_cast<std::uint32_t>(std::max<std::int64_t>(1, (whole + share - 1) / share));
  Posted posted{message.parts, 0};
  for (std::uint32_t part = 0; part < message.parts; ++part) {
    message.bytes = Bytes(std::min(share, whole - part * share));
    posted.last = network_.post(host_, first + part, now, message, token);
  }
  return posted;
}

BecauseOfSending RankConnections::since_last_answer(Time now, std::uint32_t queue_pair) {
  OwnQueuePair& own = own_.at(queue_pair);
  const BecauseOfSending why{own.times, network_.send_times(host_, queue_pair, now), (now - own.answered).ps(),
                             TimePart::credits, 0};
  own.times = why.to;
  own.answered = now;
  return why;
}

const ReceiveConnection::Slice* RankConnections::oldest_slice(std::uint32_t communicator) const {
  const ReceiveConnection::Slice* oldest = nullptr;
  for (auto at = receive_connections_.lower_bound({communicator, 0, 0});
       at != receive_connections_.end() && at->first.communicator == communicator; ++at) {
    if (at->second.empty()) continue;
    const ReceiveConnection::Slice& first = at->second.front();
    if (oldest == nullptr || first.collective < oldest->collective) oldest = &first;
  }
  return oldest;
}

bool RankConnections::empty() const {
  for (const auto& [key, connection] : receive_connections_)
    if (!connection.empty()) return false;
  return true;
}

}  // namespace weft
