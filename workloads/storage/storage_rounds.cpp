// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes of storage targets, as operations.
#include "workloads/storage/storage_rounds.hpp"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

/// Adds operations with ascending ids.
class Round {
 public:
  explicit Round(std::uint64_t first_id) : next_(first_id) {}

  std::uint64_t transfer(Operation::Kind kind, std::uint32_t peer, Bytes bytes, std::uint32_t tag, const char* label,
                         std::vector<std::uint64_t> after, Time not_before = Time()) {
    Operation operation;
    operation.kind = kind;
    operation.peer = Rank(peer);
    operation.bytes = bytes;
    operation.tag = tag;
    operation.label = label;
    operation.after = std::move(after);
    operation.not_before = not_before;
    return add(std::move(operation));
  }
  /// The device works; or nothing, if it takes no time. Returns the operation to wait for.
  std::uint64_t serve(const StoragePlan& plan, Bytes piece, std::uint64_t after) {
    if (plan.service(piece) == Time()) return after;
    Operation operation;
    operation.stream = Stream::storage;
    operation.duration = plan.service(piece);
    operation.label = "device";
    operation.after = {after};
    return add(std::move(operation));
  }
  std::vector<Operation> take() { return std::move(operations_); }

 private:
  std::uint64_t add(Operation operation) {
    operation.id = next_;
    operations_.push_back(std::move(operation));
    return next_++;
  }
  std::uint64_t next_;
  std::vector<Operation> operations_;
};

constexpr auto send = Operation::Kind::send;
constexpr auto recv = Operation::Kind::recv;

}  // namespace

std::uint64_t StoragePlan::pieces(std::uint32_t client) const {
  const std::int64_t bytes = shard_bytes(client).count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(1, (bytes + piece.count() - 1) / piece.count()));
}

Bytes StoragePlan::piece_bytes(std::uint64_t number, std::uint32_t client) const {
  return std::min(piece, shard_bytes(client) - piece * static_cast<std::int64_t>(number));
}

Time StoragePlan::service(Bytes bytes) const {
  return device_latency + (device_rate.bps() > 0 ? serialization_time(bytes, device_rate) : Time());
}

std::vector<Operation> client_round(const StoragePlan& plan, std::uint32_t client, std::uint64_t first_id,
                                    const std::vector<std::uint64_t>& after, Time not_before, std::uint32_t tag) {
  Round round(first_id);
  const std::uint32_t target = plan.target_of(client);
  if (plan.reads) round.transfer(send, target, StoragePlan::word, tag + 1, "request", after, not_before);
  const std::uint64_t pieces = plan.pieces(client);
  for (std::uint64_t p = 0; p < pieces; ++p)
    round.transfer(plan.reads ? recv : send, target, plan.piece_bytes(p, client), tag, plan.reads ? "read" : "write",
                   after, not_before);
  if (!plan.reads) round.transfer(recv, target, StoragePlan::word, tag + 1, "stored", after, not_before);
  return round.take();
}

std::vector<Operation> target_round(const StoragePlan& plan, std::uint32_t target, std::uint64_t first_id,
                                    std::uint32_t tag) {
  Round round(first_id);
  const std::uint32_t clients = plan.clients_of(target);
  std::vector<std::uint64_t> requests;
  for (std::uint32_t i = 0; plan.reads && i < clients; ++i)
    requests.push_back(round.transfer(recv, plan.client_of(target, i), StoragePlan::word, tag + 1, "request", {}));
  std::uint64_t max = 0;
  for (std::uint32_t i = 0; i < clients; ++i) max = std::max(max, plan.pieces(plan.client_of(target, i)));
  for (std::uint64_t p = 0; p < max; ++p) {
    for (std::uint32_t i = 0; i < clients; ++i) {
      const std::uint32_t client = plan.client_of(target, i);
      const std::uint64_t pieces = plan.pieces(client);
      if (p >= pieces) continue;
      const Bytes bytes = plan.piece_bytes(p, client);
      if (plan.reads) {
        round.transfer(send, client, bytes, tag, "read", {round.serve(plan, bytes, requests[i])});
        continue;
      }
      const std::uint64_t stored = round.serve(plan, bytes, round.transfer(recv, client, bytes, tag, "write", {}));
      if (p + 1 == pieces) round.transfer(send, client, StoragePlan::word, tag + 1, "stored", {stored});
    }
  }
  return round.take();
}

}  // namespace weft
