// SPDX-License-Identifier: GPL-2.0-only
// A stage's plan: GEMMs in parts, with messages or calls of each part beside the computation of another one, as
// userbuffers of NVIDIA's Transformer Engine have them
// (transformer_engine/common/comm_gemm_overlap/comm_gemm_overlap.cpp).
#include "workloads/step/stage_planner.hpp"

namespace weft {

void StagePlanner::run_in_parts(SlotWalk& walk, const Segment& segment) {
  switch (segment.kind) {
    case Segment::Kind::gathering:
      return gather_in_parts(walk, segment);
    case Segment::Kind::summing:
      return sum_in_parts(walk, segment);
    default:
      return scatter_in_parts(walk, segment);
  }
}

PlannedOperation StagePlanner::message_of_part(const SlotWalk& walk, const Segment& segment,
                                               std::int32_t places) const {
  PlannedOperation message;
  message.kind = places < 0 ? Operation::Kind::recv : Operation::Kind::send;
  message.stream = Stream::none;
  message.what = segment.what;
  message.group = segment.group;
  message.peer = places;
  message.size = segment.size;
  message.tag = ring_tag(walk);
  describe(walk, message);
  return message;
}

std::int32_t StagePlanner::exchange_part(SlotWalk& walk, const PlannedOperation& send, PlannedOperation recv,
                                         std::int32_t after) {
  recv.kind = Operation::Kind::recv;
  const std::int32_t launched = launch_kernels(2, send);
  walk.beside.push_back(add(send, {after, launched}));
  return add(recv, {after, launched});
}

std::int32_t StagePlanner::compute_part(SlotWalk& walk, const Segment& segment, std::int32_t after) {
  PlannedOperation operation;
  operation.stream = segment.stream;
  operation.what = segment.what;
  operation.duration = segment.duration;
  operation.slowed = segment.slowed;
  operation.flops = segment.flops;
  describe(walk, operation);
  walk.chain = add(operation, {walk.chain, after, launch_kernels(1, operation)});
  return walk.chain;
}

// split_overlap_ag of CommOverlapP2PBase. A part is sent on as soon as it is here; with `pairs` two neighbours first
// exchange what they have, and both parts go round together, to every second rank.
void StagePlanner::gather_in_parts(SlotWalk& walk, const Segment& segment) {
  const std::int32_t places = segment.pairs ? 2 : 1;
  PlannedOperation send = message_of_part(walk, segment, places), recv = message_of_part(walk, segment, -places);
  std::int32_t here = walk.chain;
  if (segment.pairs) {
    PlannedOperation own = message_of_part(walk, segment, 0);
    own.neighbour = true;
    here = exchange_part(walk, own, own, here);
    send.size = recv.size = segment.size * 2;
  }
  for (std::int64_t part = 0; part < segment.parts; ++part) {
    const bool last = part + 1 == segment.parts;
    const std::int32_t next = last ? no_operation : exchange_part(walk, send, recv, here);
    compute_part(walk, segment, here);
    here = next;
  }
}

// split_overlap_rs of CommOverlapBase.
void StagePlanner::sum_in_parts(SlotWalk& walk, const Segment& segment) {
  std::int32_t summed = no_operation;
  for (std::int64_t part = 0; part < segment.parts; ++part) {
    const std::int32_t computed = compute_part(walk, segment, no_operation);
    PlannedOperation call = collective(segment.group, segment.collective, segment.size, Stream::tensor, segment.what);
    describe(walk, call);
    summed = add(call, {computed, launch_kernels(1, call)});
  }
  walk.chain = summed;
}

// split_overlap_rs of CommOverlapP2PBase. The last part is the rank's own.
void StagePlanner::scatter_in_parts(SlotWalk& walk, const Segment& segment) {
  for (std::int64_t part = 0; part < segment.parts; ++part) {
    const std::int32_t computed = compute_part(walk, segment, no_operation);
    if (part + 1 == segment.parts) return;
    const auto places = static_cast<std::int32_t>(part + 1);
    const PlannedOperation send = message_of_part(walk, segment, places);
    walk.beside.push_back(exchange_part(walk, send, message_of_part(walk, segment, -places), computed));
  }
}

}  // namespace weft
