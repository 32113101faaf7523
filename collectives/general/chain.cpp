// SPDX-License-Identifier: GPL-2.0-only
// Pipelined chains: broadcast from the root, reduction towards it, and both for an all-reduce.
//
// broadcast and reduce go the way of NCCL's rings without the last link (src/device/{broadcast,reduce}.h): root,
// root+1,
// ..., root-1, and from root+1 to the root. all_reduce: a reduction from the last member to the first one, and a
// broadcast back, at the same time for different chunks, as NCCL's tree does inside a server (src/device/all_reduce.h,
// runTreeSplit). (p - 2 + q) (alpha + c beta) for q chunks of c bytes on each way.
#include "collectives/steps/exchange.hpp"
#include "schedule/collective/step_generator.hpp"

namespace weft {
namespace {

/// Member `place` of `ranks` on the way; peers are those before and after it.
Step broadcast_step(std::uint32_t place, std::uint32_t ranks, std::uint32_t before, std::uint32_t after) {
  Step step;
  step.primitive = place == 0 ? Primitive::send : place + 1 == ranks ? Primitive::recv : Primitive::recv_copy_send;
  step.receive_peer = before;
  step.send_peer = after;
  return step;
}
Step reduce_step(std::uint32_t place, std::uint32_t ranks, std::uint32_t before, std::uint32_t after) {
  Step step = broadcast_step(place, ranks, before, after);
  if (place != 0) step.primitive = place + 1 == ranks ? Primitive::recv_reduce_copy : Primitive::recv_reduce_send;
  return step;
}

class Chain final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce || kind == CollectiveKind::all_reduce;
  }
  std::uint32_t credits(const CollectiveCall& call) const override { return MessageSizes::nccl_step(call).credits; }
  std::uint32_t lanes(const CollectiveCall& call) const override {
    return call.tuning.channels * (call.kind == CollectiveKind::all_reduce ? 2 : 1);
  }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    const std::uint32_t n = call.communicator->size();
    if (n == 1) return lone_stream(call, lane);
    const MessageSizes sizes = MessageSizes::nccl_step(call);
    const Piece part = ChannelShare{call.tuning.channels, lane % call.tuning.channels}.of(0, call.size.count());
    const std::uint32_t before = (index + n - 1) % n;
    const std::uint32_t after = (index + 1) % n;
    if (call.kind == CollectiveKind::broadcast)
      return stream_of(chunks_of(broadcast_step((index + n - call.root) % n, n, before, after), sizes, part));
    if (call.kind == CollectiveKind::reduce)
      return stream_of(chunks_of(reduce_step((index + 2 * n - call.root - 1) % n, n, before, after), sizes, part));
    if (lane >= call.tuning.channels) {
      // The first member sends the result down in the step in which it makes it.
      return stream_of(chunks_of(broadcast_step(index, n, before, after), sizes, index == 0 ? Piece{} : part));
    }
    Step step = reduce_step(n - 1 - index, n, after, before);
    if (index == 0) {
      step.primitive = Primitive::recv_reduce_copy_send;
      step.send_peer = after;
    }
    return stream_of(chunks_of(step, sizes, part));
  }
};

const Registration<CollectiveAlgorithm, Chain> chain_registration("chain", "pipelined chain from or to the root");

}  // namespace
}  // namespace weft
