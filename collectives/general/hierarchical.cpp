// SPDX-License-Identifier: GPL-2.0-only
// Two levels: inside servers first, then between servers along rails (members of the same place in each server).
//
// all_reduce: ring reduce-scatter inside each server, ring all-reduce along each rail, ring all-gather inside. With
// chunks the three stages work on different chunks at the same time (M. Cho, U. Finkler, D. Kung, H. Hunter,
// "BlueConnect", MLSys 2019, doi:10.1147/JRD.2019.2947013): three lanes that wait for each other's marks.
// reduce_scatter and all_gather are one and the other half. all_to_all: blocks go inside the server to the member that
// is on the destination's rail, and from there, aggregated, to the destination (NCCL's PXN: src/transport/net.cc,
// NCCL_P2P_PXN_LEVEL). Time without chunks, g members of N servers: 2 (g-1)/g S / B_inside + 2 (N-1)/N (S/g) / B_rail.
#include <algorithm>
#include <vector>

#include "collectives/steps/kinds.hpp"
#include "collectives/steps/torus_phases.hpp"

namespace weft {
namespace {

enum class Stage { inside_reduce, rail, inside_gather };

/// One stage of an all-reduce, chunk by chunk; a chunk is what each member has after the first stage.
StepGenerator all_reduce_stage(Grid grid, std::uint32_t index, MessageSizes sizes, Piece part, std::int64_t loop,
                               Stage stage, std::uint32_t wait_lane) {
  const PhaseOrder order = PhaseOrder::from(grid, 0, false);
  std::uint64_t number = 0;
  for (std::int64_t at = 0; at < part.bytes; at += loop) {
    const Piece range{part.offset + at, std::min(loop, part.bytes - at)};
    ++number;
    if (wait_lane != no_lane) {
      const Step wait = waits_for(wait_lane, number);
      co_yield wait;
    }
    if (stage != Stage::inside_gather) {
      const std::uint32_t phase = stage == Stage::rail ? 1 : 0;
      StepGenerator steps = vector_reduce_scatter(grid, order, index, sizes, range, phase, phase + 1);
      for (Step step; steps.next(step);) co_yield step;
    }
    if (stage != Stage::inside_reduce) {
      const std::uint32_t phase = stage == Stage::rail ? 1 : 0;
      StepGenerator steps = vector_all_gather(grid, order, index, sizes, range, phase, phase + 1);
      for (Step step; steps.next(step);) co_yield step;
    }
    const Step mark = marks();
    co_yield mark;
  }
}

/// The places of blocks of an all_to_all in scratch, and their bytes.
struct Relay {
  CollectiveCall call;
  std::uint32_t server = 1;  ///< members
  std::uint32_t servers = 1;
  std::uint32_t index = 0;
  ChannelShare share;

  std::uint32_t member(std::uint32_t of_server, std::uint32_t local) const { return of_server * server + local; }
  std::uint32_t self_server() const { return index / server; }
  std::uint32_t self_local() const { return index % server; }
  Piece input(std::uint32_t from, std::uint32_t to) const {
    return share.of(pair_input(call, from, to), pair_bytes(call, from, to));
  }
  Piece output(std::uint32_t from, std::uint32_t to) const {
    return share.of(pair_output(call, from, to), pair_bytes(call, from, to));
  }
  /// Bytes from `from` to the rail `local`, for all servers in turn, starting after the own one.
  std::int64_t to_rail(std::uint32_t from, std::uint32_t local) const {
    std::int64_t bytes = 0;
    for (std::uint32_t s = 0; s < servers; ++s) bytes += input(from, member(s, local)).bytes;
    return bytes;
  }
  /// Bytes from all members of `of_server` to `to`.
  std::int64_t from_server(std::uint32_t of_server, std::uint32_t to) const {
    std::int64_t bytes = 0;
    for (std::uint32_t l = 0; l < server; ++l) bytes += input(member(of_server, l), to).bytes;
    return bytes;
  }
};

/// Scratch: first bytes that this member relays, from each member of its server in turn and for each server in turn,
/// then two areas for packed messages. All places are found in one pass over the blocks.
class RelayPlaces {
 public:
  explicit RelayPlaces(const Relay& relay) : relay_(relay), next_(relay.server), server_(relay.self_server()) {
    for (std::uint32_t l = 0; l <= relay.server; ++l) {
      first_.push_back(packing_);
      if (l < relay.server) packing_ += relay.to_rail(relay.member(server_, l), relay.self_local());
    }
    std::int64_t max = 0;
    for (std::uint32_t l = 0; l < relay.server; ++l) max = std::max(max, relay.to_rail(relay.index, l));
    for (std::uint32_t s = 0; s < relay.servers; ++s)
      max = std::max(max, relay.from_server(server_, relay.member(s, relay.self_local())));
    unpacking_ = packing_ + max;
    for (std::uint32_t l = 0; l < relay.server; ++l) {
      next_[l] = first_[l];
      for (std::uint32_t s = 0; s < server_; ++s) next_[l] += bytes(l, s);
    }
  }
  std::int64_t first_of(std::uint32_t from_local) const { return first_[from_local]; }
  std::int64_t packing() const { return packing_; }
  std::int64_t unpacking() const { return unpacking_; }
  /// Of the block from a member of this server to the server whose turn it is.
  Piece block_of(std::uint32_t from_local) const { return {next_[from_local], bytes(from_local, server_)}; }
  /// Turns begin with the own server.
  void next_server() {
    const bool wraps = server_ + 1 == relay_.servers;
    for (std::uint32_t l = 0; l < relay_.server; ++l) next_[l] = wraps ? first_[l] : next_[l] + bytes(l, server_);
    server_ = wraps ? 0 : server_ + 1;
  }

 private:
  std::int64_t bytes(std::uint32_t from_local, std::uint32_t to_server) const {
    return relay_.input(relay_.member(relay_.self_server(), from_local), relay_.member(to_server, relay_.self_local()))
        .bytes;
  }

  const Relay& relay_;
  std::vector<std::int64_t> first_;  ///< by member of the server
  std::vector<std::int64_t> next_;   ///< by member, for the server whose turn it is
  std::uint32_t server_;
  std::int64_t packing_ = 0;
  std::int64_t unpacking_ = 0;
};

StepGenerator all_to_all(Relay relay, MessageSizes sizes) {
  RelayPlaces places(relay);
  Step copy;
  // Inside the server: one message to each member, with the data for its rail.
  for (std::uint32_t round = 0; round < relay.server; ++round) {
    const std::uint32_t to = (relay.self_local() + round) % relay.server;
    const std::uint32_t from = (relay.self_local() + relay.server - round) % relay.server;
    std::int64_t at = round == 0 ? places.first_of(to) : places.packing();
    for (std::uint32_t s = 0; s < relay.servers; ++s) {
      const Piece piece = relay.input(relay.index, relay.member(s, to));
      copy = local_copy(Buffer::input, piece.offset, Buffer::scratch, at, piece.bytes);
      if (piece.bytes > 0) co_yield copy;
      at += piece.bytes;
    }
    if (round == 0) continue;
    Exchange exchange(sizes);
    exchange.send(relay.member(relay.self_server(), to), Buffer::scratch,
                  one_piece({places.packing(), relay.to_rail(relay.index, to)}));
    const std::uint32_t peer = relay.member(relay.self_server(), from);
    exchange.receive(peer, Buffer::scratch,
                     one_piece({places.first_of(from), relay.to_rail(peer, relay.self_local())}));
    for (Step step; exchange.next(step);) co_yield step;
  }
  // Along the rail: the blocks of all members of this server for the same place in another one.
  for (std::uint32_t round = 0; round < relay.servers; ++round, places.next_server()) {
    const std::uint32_t to = (relay.self_server() + round) % relay.servers;
    const std::uint32_t from = (relay.self_server() + relay.servers - round) % relay.servers;
    const std::uint32_t receiver = relay.member(to, relay.self_local());
    std::int64_t at = places.packing();
    for (std::uint32_t l = 0; l < relay.server; ++l) {
      const Piece block = places.block_of(l);
      copy = local_copy(Buffer::scratch, block.offset, Buffer::scratch, at, block.bytes);
      if (block.bytes > 0) co_yield copy;
      at += block.bytes;
    }
    at = places.packing();
    if (round > 0) {
      at = places.unpacking();
      Exchange exchange(sizes);
      exchange.send(receiver, Buffer::scratch,
                    one_piece({places.packing(), relay.from_server(relay.self_server(), receiver)}));
      exchange.receive(relay.member(from, relay.self_local()), Buffer::scratch,
                       one_piece({at, relay.from_server(from, relay.index)}));
      for (Step step; exchange.next(step);) co_yield step;
    }
    for (std::uint32_t l = 0; l < relay.server; ++l) {
      const Piece piece = relay.output(relay.member(from, l), relay.index);
      copy = local_copy(Buffer::scratch, at, Buffer::output, piece.offset, piece.bytes);
      if (piece.bytes > 0) co_yield copy;
      at += piece.bytes;
    }
  }
}

class Hierarchical final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return is_all_reduce_or_phase(kind) || kind == CollectiveKind::all_to_all;
  }
  bool takes_block_tables(CollectiveKind kind) const override { return kind != CollectiveKind::all_reduce; }
  std::uint32_t credits(const CollectiveCall& call) const override { return MessageSizes::whole(call).credits; }
  // Both stages inside a server use the same neighbours: each has connections of its own.
  std::uint32_t channels(const CollectiveCall& call) const override {
    return call.tuning.channels * (call.kind == CollectiveKind::all_reduce ? 2 : 1);
  }
  std::uint32_t lanes(const CollectiveCall& call) const override {
    return call.tuning.channels * (call.kind == CollectiveKind::all_reduce ? 4 : 1);
  }
  std::uint32_t memory_of(const CollectiveCall& call, std::uint32_t lane) const override {
    return lane % call.tuning.channels;
  }
  std::string refuses(const CollectiveCall& call) const override {
    const std::string parts = refuse_parts_of_servers(call, server_size(call));
    return parts.empty() ? CollectiveAlgorithm::refuses(call) : parts;
  }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    const std::uint32_t n = call.communicator->size();
    if (n == 1) return lone_stream(call, lane);
    const std::uint32_t count = call.tuning.channels;
    const std::uint32_t server = server_size(call);
    const Grid grid({server, n / server});
    const ChannelShare share{count, lane % count};
    const MessageSizes sizes = MessageSizes::whole(call);
    const PhaseOrder order = PhaseOrder::from(grid, 0, false);
    switch (call.kind) {
      case CollectiveKind::all_gather:
        return stream_of(block_all_gather(call, grid, order, index, sizes, share));
      case CollectiveKind::reduce_scatter:
        return stream_of(block_reduce_scatter(call, grid, order, index, sizes, share));
      case CollectiveKind::all_to_all:
        return stream_of(all_to_all({call, server, n / server, index, share}, sizes));
      default:
        break;
    }
    const Piece part = share.of(0, call.size.count());
    const std::int64_t loop = aligned(sizes.chunk) * server;
    const auto stage = [&](Stage what, std::uint32_t wait_lane) {
      return stream_of(all_reduce_stage(grid, index, sizes, part, loop, what, wait_lane));
    };
    // Lanes by stage: reduction inside, all-gather inside, the rail, and one that has nothing to do.
    const std::uint32_t rail_lane = 2 * count + lane % count;
    if (lane < count) return stage(Stage::inside_reduce, no_lane);
    if (lane < 2 * count) return stage(Stage::inside_gather, rail_lane);
    if (lane < 3 * count) return stage(Stage::rail, lane % count);
    return stream_of(no_steps());
  }
};

const Registration<CollectiveAlgorithm, Hierarchical> hierarchical_registration(
    "hierarchical", "inside servers, along rails between them, inside again");

}  // namespace
}  // namespace weft
