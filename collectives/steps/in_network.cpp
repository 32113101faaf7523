// SPDX-License-Identifier: GPL-2.0-only
#include "collectives/steps/in_network.hpp"

#include <algorithm>
#include <utility>

#include "collectives/steps/nccl_sizes.hpp"

namespace weft {

HeadShares HeadShares::of_vector(const CollectiveCall& call, ChannelShare share, std::uint32_t heads,
                                 std::int64_t chunk) {
  HeadShares shares;
  shares.call_ = call;
  shares.share_ = share;
  shares.part_ = share.of(0, call.size.count());
  shares.heads_ = heads;
  shares.chunk_ = chunk;
  // All heads share the bytes of an incomplete loop; NCCL leaves the last ones without work then.
  if (shares.part_.bytes < chunk * heads)
    shares.chunk_ = std::max<std::int64_t>(1, aligned(ceil_divide(shares.part_.bytes, heads)));
  shares.loops_ = ceil_divide(shares.part_.bytes, shares.chunk_ * heads);
  return shares;
}

HeadShares HeadShares::of_blocks(const CollectiveCall& call, ChannelShare share, std::int64_t chunk) {
  HeadShares shares;
  shares.call_ = call;
  shares.share_ = share;
  shares.blocks_ = true;
  shares.heads_ = call.communicator->size();
  shares.chunk_ = chunk;
  for (std::uint32_t head = 0; head < shares.heads_; ++head)
    shares.loops_ = std::max(shares.loops_, ceil_divide(shares.range(head).bytes, chunk));
  return shares;
}

Piece HeadShares::range(std::uint32_t head) const {
  return share_.of(block_begin(call_, head), block_bytes(call_, head));
}

Piece HeadShares::at(std::int64_t loop, std::uint32_t head) const {
  const Piece all = blocks_ ? range(head) : part_;
  const std::int64_t begin = (blocks_ ? loop : loop * heads_ + head) * chunk_;
  return {all.offset + begin, std::clamp<std::int64_t>(all.bytes - begin, 0, chunk_)};
}

std::int64_t HeadShares::in_block(std::int64_t loop, std::uint32_t head) const {
  return at(loop, head).offset - block_begin(call_, head);
}

Step step_of(Primitive primitive, const MessageSizes& sizes, std::int64_t bytes) {
  Step step;
  step.primitive = primitive;
  step.bytes = Bytes(bytes);
  step.slice = Bytes(sizes.slice(bytes));
  return step;
}

StepGenerator sum_of(Peers peers, MessageSizes sizes, std::int64_t bytes, std::optional<Place> own, Place target,
                     std::optional<std::uint32_t> to) {
  while (peers.count > 0) {
    // Without own data the first message is stored unchanged.
    const std::uint32_t count = own ? std::min(3U, peers.count) : 1;
    const bool last = count == peers.count;
    const Primitive store = own ? Primitive::recv_reduce_copy : Primitive::recv;
    const Primitive pass = own ? Primitive::recv_reduce_send : Primitive::recv_copy_send;
    Step step = step_of(last && to ? pass : store, sizes, bytes);
    step.receive_peer = peers[0];
    for (std::uint32_t i = 1; i < count; ++i) step.add_receive(peers[i]);
    if (own) {
      step.source = own->buffer;
      step.input_offset = Bytes(own->offset);
    }
    step.target = target.buffer;
    step.output_offset = Bytes(target.offset);
    if (last && to) step.send_peer = *to;
    step.mark = last;
    peers = peers.without_first(count);
    own = target;
    co_yield step;
  }
}

namespace {

/// The first three at most.
void send_to(Step& step, const Peers& peers) {
  for (std::uint32_t i = 0; i < std::min(3U, peers.count); ++i) {
    if (i == 0)
      step.send_peer = peers[0];
    else
      step.add_send(peers[i]);
  }
}

}  // namespace

StepGenerator send_to_all(Peers peers, MessageSizes sizes, std::int64_t bytes, Place source, std::uint32_t wait_lane,
                          std::uint64_t wait_marks) {
  for (; peers.count > 0; peers = peers.without_first(3)) {
    Step step = step_of(Primitive::send, sizes, bytes);
    step.source = source.buffer;
    step.input_offset = Bytes(source.offset);
    step.wait_lane = wait_lane;
    step.wait_marks = wait_marks;
    send_to(step, peers);
    co_yield step;
  }
}

StepGenerator copy_to_all(std::uint32_t from, Peers peers, MessageSizes sizes, std::int64_t bytes, Place target) {
  Step step = step_of(peers.count == 0 ? Primitive::recv : Primitive::recv_copy_send, sizes, bytes);
  step.receive_peer = from;
  step.target = target.buffer;
  step.output_offset = Bytes(target.offset);
  send_to(step, peers);
  step.mark = true;
  co_yield step;
  StepGenerator rest = send_to_all(peers.without_first(3), sizes, bytes, target);
  for (Step more; rest.next(more);) co_yield more;
}

StepGenerator joined(bool is_joined, StepGenerator steps) {
  for (Step step; steps.next(step);) {
    step.joined = is_joined;
    co_yield step;
  }
}

StepGenerator of_chunks(HeadShares shares, Peers heads, std::function<StepGenerator(const HeadChunk&)> steps) {
  HeadChunk chunk;
  for (chunk.loop = 0; chunk.loop < shares.loops(); ++chunk.loop) {
    for (std::uint32_t i = 0; i < heads.count; ++i) {
      const Piece piece = shares.at(chunk.loop, heads[i]);
      if (piece.bytes == 0) continue;
      chunk = {chunk.loop, heads[i], piece.offset, piece.bytes, chunk.number + 1};
      StepGenerator of_one = steps(chunk);
      for (Step step; of_one.next(step);) co_yield step;
    }
  }
}

namespace {

/// Steps of the chunk of one head, of which one chunk has the time of all.
StepGenerator of_loop(bool has_time, StepGenerator steps) {
  for (Step step; steps.next(step);) {
    step.joined = !has_time;
    step.of_all_heads = true;
    co_yield step;
  }
}

}  // namespace

StepGenerator SwitchedServer::contribute() const {
  return of_chunks(shares, heads(), [*this](const HeadChunk& chunk) {
    return of_loop(chunk.head == 0,
                   send_to_all(Peers::only(aggregator), sizes, chunk.bytes, {Buffer::input, chunk.offset}));
  });
}

StepGenerator SwitchedServer::take_all() const {
  return of_chunks(shares, heads(), [*this](const HeadChunk& chunk) {
    const bool last = chunk.head + 1 == shares.heads() || shares.at(chunk.loop, chunk.head + 1).bytes == 0;
    return of_loop(last, copy_to_all(aggregator, {}, sizes, chunk.bytes, {Buffer::output, chunk.offset}));
  });
}

StepGenerator SwitchedServer::sums_in_switch() const {
  return of_chunks(shares, heads(), [*this](const HeadChunk& chunk) {
    return sum_of(gpus, sizes, chunk.bytes, std::nullopt, {}, gpus[chunk.head]);
  });
}

StepGenerator SwitchedServer::copies_in_switch() const {
  return of_chunks(shares, heads(), [*this](const HeadChunk& chunk) {
    return copy_to_all(gpus[chunk.head], gpus, sizes, chunk.bytes, {Buffer::scratch, shares.scratch_end()});
  });
}

MessageSizes nvls_sizes(const CollectiveCall& call, std::uint32_t heads) {
  MessageSizes sizes = MessageSizes::nccl_step(call);
  if (call.tuning.chunk.count() != 0) return sizes;
  const std::int64_t largest = call.graph ? call.graph->speeds().settings.nvls_chunk : 0;
  sizes.chunk = nvls_chunk(call.size.count(), call.tuning.channels, heads, largest != 0 ? largest : 131'072);
  return sizes;
}

MessageSizes nvls_tree_sizes(const CollectiveCall& call, std::uint32_t heads) {
  MessageSizes sizes = MessageSizes::nccl_step(call);
  if (call.tuning.chunk.count() != 0) return sizes;
  const std::uint32_t servers = call.graph ? call.graph->servers() : call.communicator->size() / heads;
  const std::int64_t set = call.graph ? call.graph->speeds().settings.nvls_tree_chunk : 0;
  const std::int64_t largest = set != 0 ? set : nvls_tuning(call, servers).tree_chunk;
  sizes.chunk = nvls_tree_chunk(call.size.count(), call.tuning.channels, heads, largest);
  return sizes;
}

MessageSizes collnet_sizes(const CollectiveCall& call, std::uint32_t heads) {
  MessageSizes sizes = MessageSizes::nccl_step(call);
  if (call.tuning.chunk.count() != 0) return sizes;
  const std::int64_t depth = heads > 1 ? 2 : 1;
  const std::int64_t at_once = std::int64_t{call.tuning.channels} * heads;
  const auto halve = [&](std::int64_t chunks, std::int64_t to) {
    while (call.size.count() / (at_once * sizes.chunk) < depth * chunks && sizes.chunk > to) sizes.chunk /= 2;
  };
  halve(64, 131'072);
  halve(8, 32'768);
  return sizes;
}

}  // namespace weft
