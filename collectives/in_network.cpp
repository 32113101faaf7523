// SPDX-License-Identifier: GPL-2.0-only
#include "collectives/in_network.hpp"

#include <algorithm>
#include <utility>

namespace weft {

HeadShares HeadShares::of_vector(const CollectiveCall& call, ChannelShare share, std::uint32_t heads,
                                 std::int64_t chunk) {
  HeadShares shares;
  shares.call_ = call;
  shares.share_ = share;
  shares.part_ = share.of(0, call.size.count());
  shares.heads_ = heads;
  shares.chunk_ = chunk;
  // What is less than a loop is shared by all heads; NCCL leaves the last ones without work then.
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

StepGenerator sum_of(std::vector<std::uint32_t> peers, MessageSizes sizes, std::int64_t bytes, std::optional<Place> own,
                     Place target, std::optional<std::uint32_t> to) {
  std::size_t done = 0;
  while (done < peers.size()) {
    // Without data of one's own the first message is stored as it is.
    const std::size_t count = own ? std::min<std::size_t>(3, peers.size() - done) : 1;
    const bool last = done + count == peers.size();
    const Primitive store = own ? Primitive::recv_reduce_copy : Primitive::recv;
    const Primitive pass = own ? Primitive::recv_reduce_send : Primitive::recv_copy_send;
    Step step = step_of(last && to ? pass : store, sizes, bytes);
    for (std::size_t i = 0; i < count; ++i) {
      if (i == 0)
        step.receive_peer = peers[done];
      else
        step.add_receive(peers[done + i]);
    }
    if (own) {
      step.source = own->buffer;
      step.input_offset = Bytes(own->offset);
    }
    step.target = target.buffer;
    step.output_offset = Bytes(target.offset);
    if (last && to) step.send_peer = *to;
    step.mark = last;
    done += count;
    own = target;
    co_yield step;
  }
}

StepGenerator send_to_all(std::vector<std::uint32_t> peers, MessageSizes sizes, std::int64_t bytes, Place source,
                          std::uint32_t wait_lane, std::uint64_t wait_marks) {
  for (std::size_t done = 0; done < peers.size(); done += 3) {
    Step step = step_of(Primitive::send, sizes, bytes);
    step.source = source.buffer;
    step.input_offset = Bytes(source.offset);
    step.wait_lane = wait_lane;
    step.wait_marks = wait_marks;
    step.send_peer = peers[done];
    for (std::size_t i = done + 1; i < std::min(done + 3, peers.size()); ++i) step.add_send(peers[i]);
    co_yield step;
  }
}

StepGenerator copy_to_all(std::uint32_t from, std::vector<std::uint32_t> peers, MessageSizes sizes, std::int64_t bytes,
                          Place target) {
  const std::size_t first = std::min<std::size_t>(3, peers.size());
  Step step = step_of(first == 0 ? Primitive::recv : Primitive::recv_copy_send, sizes, bytes);
  step.receive_peer = from;
  step.target = target.buffer;
  step.output_offset = Bytes(target.offset);
  for (std::size_t i = 0; i < first; ++i) {
    if (i == 0)
      step.send_peer = peers[0];
    else
      step.add_send(peers[i]);
  }
  step.mark = true;
  co_yield step;
  const std::vector<std::uint32_t> others(peers.begin() + static_cast<std::ptrdiff_t>(first), peers.end());
  StepGenerator rest = send_to_all(others, sizes, bytes, target);
  for (Step more; rest.next(more);) co_yield more;
}

MessageSizes nvls_sizes(const CollectiveCall& call, std::uint32_t heads) {
  MessageSizes sizes = MessageSizes::nccl_step(call);
  if (call.tuning.chunk.count() != 0) return sizes;
  sizes.chunk = 131'072;
  const std::int64_t at_once = std::int64_t{call.tuning.channels} * heads;
  if (call.size.count() < 64 * at_once * sizes.chunk) sizes.chunk = 65'536;
  if (call.size.count() < 8 * at_once * sizes.chunk) sizes.chunk = 32'768;
  if (call.size.count() < 2 * at_once * sizes.chunk) sizes.chunk = 16'384;
  return sizes;
}

}  // namespace weft
