// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes of storage targets: operations of the ranks that want them, and of the targets.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/program/program.hpp"
#include "units/bandwidth.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// Clients are ranks 0 to clients-1, each with a shard at one target; targets are the ranks that follow. In a round
/// every client writes its shard, or reads it, piece by piece. A target serves the pieces of its clients in turn, one
/// at a time, each for as long as its device takes: that of a piece begins when the piece is there (write), or the
/// request (read), and the piece before is done.
struct StoragePlan {
  std::uint32_t clients = 1;
  std::uint32_t targets = 1;
  Bytes shard;            ///< of each client, unless shard_of says more
  Bytes piece;            ///< largest message
  Bandwidth device_rate;  ///< of a target; 0: no time
  Time device_latency;    ///< of each piece
  bool reads = false;
  /// The shard of one client, at least 1 B; nothing if all are alike.
  std::function<Bytes(std::uint32_t client)> shard_of;

  std::uint32_t ranks() const { return clients + targets; }
  /// Round robin.
  std::uint32_t target_of(std::uint32_t client) const { return clients + client % targets; }
  std::uint32_t clients_of(std::uint32_t target) const {
    return (clients + targets - 1 - (target - clients)) / targets;
  }
  /// Client number i of a target.
  std::uint32_t client_of(std::uint32_t target, std::uint32_t i) const { return target - clients + i * targets; }
  Bytes shard_bytes(std::uint32_t client) const { return shard_of ? shard_of(client) : shard; }
  std::uint64_t pieces(std::uint32_t client = 0) const;
  Bytes piece_bytes(std::uint64_t number, std::uint32_t client = 0) const;
  Time service(Bytes piece) const;
  /// Requests, and words that all is stored.
  static constexpr Bytes word{64};

  /// If all shards are alike.
  std::uint64_t messages_of_round() const { return clients * (pieces() + 1); }
};

/// Operations of one round of one rank, in program order, with ids from `first_id` on. A client's first ones wait for
/// `after` and `not_before`, and its last one ends when its shard is stored or here. `tag`: two numbers from this one
/// on belong to the rounds of a plan.
std::vector<Operation> client_round(const StoragePlan& plan, std::uint32_t client, std::uint64_t first_id,
                                    const std::vector<std::uint64_t>& after, Time not_before, std::uint32_t tag = 0);
std::vector<Operation> target_round(const StoragePlan& plan, std::uint32_t target, std::uint64_t first_id,
                                    std::uint32_t tag = 0);

}  // namespace weft
