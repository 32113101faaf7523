// SPDX-License-Identifier: GPL-2.0-only
// A stage's plan: passes of micro-batches through its parts, and messages between stages.
#include <algorithm>
#include <utility>

#include "workloads/step/stage_planner.hpp"

namespace weft {

namespace {

constexpr std::string_view activations_message = "activations", gradients_message = "gradients";

}  // namespace

SlotWalk StagePlanner::start(const PipelineSlot& slot) {
  SlotWalk walk;
  walk.slot = slot;
  walk.chunk = &chunks_[slot.chunk];
  walk.reversed = slot.pass != PipelineSlot::Pass::forward;
  return walk;
}

const Part& StagePlanner::part_of(const SlotWalk& walk) const {
  const auto& parts = walk.chunk->parts;
  return parts[walk.reversed ? parts.size() - 1 - walk.part : walk.part];
}

bool StagePlanner::recomputes(const SlotWalk& walk) const {
  if (part_of(walk).passes->recompute.empty() || part_of(walk).layer < 0) return false;
  const auto pass = walk.slot.pass;
  if (pass != PipelineSlot::Pass::backward && pass != PipelineSlot::Pass::input_gradient) return false;
  if (description_.recompute_layers == 0) return true;
  const StageLayers layers = layers_of_stage(plan_, walk.chunk->stage);
  return part_of(walk).layer < layers.first + description_.recompute_layers;
}

const std::vector<Segment>& StagePlanner::segments(const SlotWalk& walk) const {
  const PartPasses& passes = *part_of(walk).passes;
  if (walk.again) return passes.recompute;
  switch (walk.slot.pass) {
    case PipelineSlot::Pass::forward:
      return passes.forward;
    case PipelineSlot::Pass::backward:
      return passes.backward;
    case PipelineSlot::Pass::input_gradient:
      return passes.input_gradient;
    case PipelineSlot::Pass::weight_gradient:
      break;
  }
  return passes.weight_gradient;
}

Phase StagePlanner::phase_of(const SlotWalk& walk) const {
  if (walk.again) return Phase::recompute;
  if (walk.slot.pass == PipelineSlot::Pass::forward) return Phase::forward;
  return walk.slot.pass == PipelineSlot::Pass::weight_gradient ? Phase::weight_gradient : Phase::backward;
}

void StagePlanner::walk_together(std::vector<SlotWalk>& walks) {
  // The backward pass goes first (NVIDIA/Megatron-LM, commit 01cf4fb5,
  // megatron/core/models/common/model_chunk_schedule_plan.py, TransformerLayerSchedulePlan.run).
  const bool combined = plan_.combined() && walks.size() > 1;
  if (combined) std::reverse(walks.begin(), walks.end());
  for (bool busy = true; busy;) {
    busy = false;
    for (SlotWalk& walk : walks) {
      if (combined)
        take_turn(walk);
      else if (!walk.done)
        advance(walk);
      busy = busy || !walk.done;
    }
  }
  if (combined) std::reverse(walks.begin(), walks.end());
}

void StagePlanner::take_turn(SlotWalk& walk) {
  while (!walk.done && !advance(walk)) {
  }
}

bool StagePlanner::advance(SlotWalk& walk) {
  if (!walk.started) {
    walk.started = true;
    const bool in_turn = setup_.pass.kernels().messages_in_turn;
    if (!in_turn && walk.slot.pass == PipelineSlot::Pass::forward) send_held(no_operation);
    in_turn ? meet(walk) : receive(walk);
    if (walk.chunk->parts.empty()) {
      finish(walk);
      return false;
    }
    enter_part(walk);
  }
  while (!walk.done && walk.segment == segments(walk).size()) leave_part(walk);
  if (walk.done) return false;
  const Segment& piece = segments(walk)[walk.segment++];
  run(walk, piece);
  while (!walk.done && walk.segment == segments(walk).size()) leave_part(walk);
  return piece.yields;
}

void StagePlanner::enter_part(SlotWalk& walk) {
  walk.segment = 0;
  walk.again = recomputes(walk);
  gather_ahead(walk);
}

void StagePlanner::leave_part(SlotWalk& walk) {
  if (walk.again) {
    walk.again = false;
    walk.segment = 0;
    return;
  }
  if (completes_weights(walk.slot.pass)) reduce_part(walk);
  if (leaves_blocks(walk)) reduce_magnitudes(walk);
  ++walk.part;
  if (walk.part == walk.chunk->parts.size())
    finish(walk);
  else
    enter_part(walk);
}

bool StagePlanner::leaves_blocks(const SlotWalk& walk) const {
  if (part_of(walk).layer < 0) return false;
  SlotWalk next = walk;
  ++next.part;
  return next.part == walk.chunk->parts.size() || part_of(next).layer < 0;
}

void StagePlanner::reduce_magnitudes(SlotWalk& walk) {
  if (walk.slot.pass == PipelineSlot::Pass::weight_gradient) return;
  const bool forward = walk.slot.pass == PipelineSlot::Pass::forward;
  for (const Segment& segment : forward ? magnitudes_.forward : magnitudes_.backward) run(walk, segment);
}

void StagePlanner::run(SlotWalk& walk, const Segment& segment) {
  if (segment.kind == Segment::Kind::ring) return run_ring(walk, segment);
  if (segment.kind == Segment::Kind::rotation) return rotate(walk, segment);
  if (segment.kind == Segment::Kind::gathering || segment.kind == Segment::Kind::summing ||
      segment.kind == Segment::Kind::scattering)
    return run_in_parts(walk, segment);
  if (segment.kind == Segment::Kind::collective && alone(segment.group)) return;
  if (segment.from_second && last_[walk.slot.chunk] == passes_[walk.slot.chunk]) return;
  PlannedOperation operation;
  operation.kind = segment.kind == Segment::Kind::collective ? Operation::Kind::collective : Operation::Kind::compute;
  operation.stream = segment.stream;
  operation.group = segment.group;
  operation.collective = segment.collective;
  operation.size = segment.size;
  operation.duration = segment.duration;
  operation.slowed = segment.slowed;
  operation.flops = segment.flops;
  operation.by_load = segment.by_load;
  if (segment.by_load) operation.grouped = segment.grouped;
  operation.combine = segment.combine;
  operation.what = segment.what;
  describe(walk, operation);
  const std::int32_t gathered = fetches() ? gathered_of(walk) : no_operation;
  if (walk.host_waits != no_operation) host_waits_ = std::exchange(walk.host_waits, no_operation);
  std::vector<std::int32_t> waits = std::exchange(sent_, {});
  if (segment.join) waits.insert(waits.end(), walk.beside.begin(), walk.beside.end());
  const bool first = walk.slot.pass == PipelineSlot::Pass::forward && !walk.chunk->started[walk.part];
  if (first) {
    walk.chunk->started[walk.part] = true;
    waits.push_back(walk.chunk->awaited[walk.part]);
  }
  const std::int32_t position = add(operation, {walk.chain, gathered, launch(segment, operation)}, waits);
  if (first && gathers_late()) {  // a place for its dependency on the step before: not known yet
    first_forward_.push_back(static_cast<std::uint32_t>(result_.after.size()));
    result_.after.push_back(StagePlan::no_operation);
    ++result_.operations.back().after_count;
  }
  const auto& host = setup_.pass.kernels().host;
  if (host && host->waits_for_launches) host_waits_ = position;
  if (host && segment.host_waits) walk.host_waits = position;
  if (segment.join) walk.beside.clear();
  if (segment.beside)
    walk.beside.push_back(position);
  else
    walk.chain = position;
}

std::int32_t StagePlanner::launch(const Segment& segment, const PlannedOperation& operation) {
  const auto& host = setup_.pass.kernels().host;
  if (!host) return no_operation;
  if (segment.graph == Segment::Graph::first) return launch_kernels(1, operation);
  if (segment.graph == Segment::Graph::later) return host_;
  if (segment.kind != Segment::Kind::compute) return launches(1, host->collective, operation);
  std::int64_t kernels = 0;
  for (const KernelUse& use : segment.kernels) kernels += launches_of(use.kernel);
  return launches(kernels, segment.launch > Time() ? segment.launch : host->kernel, operation);
}

std::int32_t StagePlanner::launch_kernels(std::int64_t kernels, const PlannedOperation& operation) {
  const auto& host = setup_.pass.kernels().host;
  return host ? launches(kernels, host->kernel, operation) : no_operation;
}

// The device begins with the first kernel when it is launched; the others are launched meanwhile, before what is
// launched next.
std::int32_t StagePlanner::launches(std::int64_t kernels, Time each, const PlannedOperation& operation) {
  if (setup_.pass.kernels().host->waits_for_launches || kernels == 0) return launch_for(kernels * each, operation);
  if (host_waits_ != no_operation) launch_rest();
  const Time rest = std::exchange(rest_of_launches_, (kernels - 1) * each);
  launched_ = operation;
  return launch_for(rest + each, operation);
}

void StagePlanner::launch_rest() {
  const Time rest = std::exchange(rest_of_launches_, Time());
  if (rest == Time()) return;
  const std::int32_t waited = std::exchange(host_waits_, no_operation);
  launch_for(rest, launched_);
  host_waits_ = waited;
}

std::int32_t StagePlanner::launch_for(Time duration, const PlannedOperation& operation) {
  PlannedOperation launches;
  launches.stream = Stream::host;
  launches.host = true;
  launches.phase = operation.phase;
  launches.layer = operation.layer;
  launches.micro_batch = operation.micro_batch;
  launches.what = "launches";
  launches.duration = duration;
  const std::int32_t waited = std::exchange(host_waits_, no_operation);
  host_ = add(launches, {host_, waited});
  return host_;
}

void StagePlanner::describe(const SlotWalk& walk, PlannedOperation& operation) const {
  operation.phase = phase_of(walk);
  operation.layer = part_of(walk).layer;
  operation.micro_batch = static_cast<std::int32_t>(walk.slot.micro_batch);
}

void StagePlanner::run_ring(SlotWalk& walk, const Segment& segment) {
  const std::int64_t ranks = plan_.context;
  std::int32_t block = walk.chain;  // the operation that provides the block that is sent next
  for (std::int64_t i = 0; i < ranks; ++i) {
    PlannedOperation operation;
    operation.what = segment.what;
    operation.group = segment.group;
    describe(walk, operation);
    std::int32_t arrived = no_operation;
    if (i + 1 < ranks) {
      PlannedOperation send = operation;
      send.kind = Operation::Kind::send;
      send.stream = Stream::none;
      send.peer = 1;
      send.size = segment.size;
      send.tag = ring_tag(walk);
      const std::int32_t sent = add(send, {block});
      PlannedOperation recv = send;
      recv.kind = Operation::Kind::recv;
      recv.peer = -1;
      arrived = add(recv, {block});
      walk.beside.push_back(sent);
    }
    operation.duration = segment.duration;
    operation.slowed = segment.slowed;
    operation.flops = segment.flops;
    walk.chain = add(operation, {walk.chain, block});
    if (arrived != no_operation) block = arrived;
  }
}

void StagePlanner::rotate(SlotWalk& walk, const Segment& segment) {
  PlannedOperation send;
  send.kind = Operation::Kind::send;
  send.stream = Stream::none;
  send.what = segment.what;
  send.group = segment.group;
  send.peer = 1;
  send.size = segment.size;
  send.tag = ring_tag(walk);
  describe(walk, send);
  PlannedOperation recv = send;
  recv.kind = Operation::Kind::recv;
  recv.peer = -1;
  const std::int32_t launched = launch(segment, send);
  walk.beside.push_back(add(send, {walk.chain, launched}));
  const std::int32_t arrived = add(recv, {walk.chain, launched});
  if (segment.beside)
    walk.beside.push_back(arrived);
  else
    walk.chain = arrived;
}

std::uint32_t StagePlanner::message_tag(std::uint32_t stage, bool backward, std::uint32_t micro_batch) const {
  return (stage * 2 + (backward ? 1U : 0U)) * setup_.shape.micro_batches + micro_batch;
}

std::uint32_t StagePlanner::ring_tag(const SlotWalk& walk) const {
  const std::uint32_t stages = setup_.schedule->stages(setup_.shape);
  return (2 * stages + walk.chunk->stage) * setup_.shape.micro_batches + walk.slot.micro_batch;
}

std::uint32_t StagePlanner::ready_tag(std::uint32_t tag) const {
  return 3 * setup_.schedule->stages(setup_.shape) * setup_.shape.micro_batches + tag;
}

std::optional<std::uint32_t> StagePlanner::neighbour(const SlotWalk& walk, bool input) const {
  if (walk.slot.pass == PipelineSlot::Pass::weight_gradient) return std::nullopt;
  const bool lower = input != walk.reversed;
  const std::uint32_t stage = walk.chunk->stage;
  if (lower && stage == 0) return std::nullopt;
  if (!lower && stage + 1 == setup_.schedule->stages(setup_.shape)) return std::nullopt;
  return lower ? stage - 1 : stage + 1;
}

std::optional<PlannedOperation> StagePlanner::message(const SlotWalk& walk, bool input) const {
  const auto stage = neighbour(walk, input);
  if (!stage) return std::nullopt;
  const auto place = setup_.schedule->place_of(setup_.shape, *stage, walk.slot.micro_batch);
  if (place.rank == rank_) return std::nullopt;  // it is here already
  PlannedOperation operation;
  operation.kind = input ? Operation::Kind::recv : Operation::Kind::send;
  operation.stream = Stream::none;
  operation.group = GroupKind::pipeline;
  operation.peer = static_cast<std::int32_t>(place.rank);
  operation.size = boundary_bytes(description_, std::min(walk.chunk->stage, *stage));
  operation.tag = message_tag(input ? walk.chunk->stage : *stage, walk.reversed, walk.slot.micro_batch);
  operation.phase = Phase::pipeline;
  operation.micro_batch = static_cast<std::int32_t>(walk.slot.micro_batch);
  operation.what = walk.reversed ? gradients_message : activations_message;
  return operation;
}

void StagePlanner::receive(SlotWalk& walk) {
  walk.chain = last_of_slot_;
  const auto operation = message(walk, true);
  if (!operation) return;
  walk.chain = add(*operation, {last_compute_});
  gather_message(walk, *operation);
}

void StagePlanner::gather_message(SlotWalk& walk, const PlannedOperation& message) {
  if (!plan_.scatter_gather || plan_.sequence || alone(GroupKind::tensor)) return;
  PlannedOperation whole = collective(GroupKind::tensor, CollectiveKind::all_gather, message.size * plan_.tensor,
                                      Stream::tensor, message.what);
  whole.phase = Phase::pipeline;
  whole.micro_batch = message.micro_batch;
  walk.chain = add(whole, {walk.chain});
  if (walk.chunk->parts.empty()) return;
  for (const Segment& copies : message_.forward) run(walk, copies);
}

void StagePlanner::finish(SlotWalk& walk) {
  walk.done = true;
  launch_rest();
  const auto& host = setup_.pass.kernels().host;
  if (host && host->waits_for_chunks) host_waits_ = walk.chain;
  const auto operation = message(walk, false);
  if (setup_.pass.kernels().messages_in_turn && operation)
    held_message_ = HeldMessage{*operation, walk.beside};
  else if (setup_.pass.kernels().blocking_messages)
    exchange(walk, operation);
  else if (operation)
    add(*operation, {walk.chain}, walk.beside);
}

void StagePlanner::exchange(const SlotWalk& walk, const std::optional<PlannedOperation>& operation) {
  send_held(walk.chain);
  if (!operation) return;
  std::vector<std::int32_t> after = walk.beside;
  after.push_back(walk.chain);
  // As many micro-batches as stages are all sent forward before the first one returns: no messages are sent together.
  const bool together = plan_.schedule == "interleaved" && setup_.shape.micro_batches > setup_.shape.ranks;
  if (together && walk.slot.pass == PipelineSlot::Pass::forward)
    held_message_ = HeldMessage{*operation, std::move(after)};
  else
    sent_.push_back(add(*operation, {}, after));
}

void StagePlanner::send_held(std::int32_t after) {
  if (!held_message_) return;
  sent_.push_back(add(held_message_->operation, {after}, held_message_->after));
  held_message_.reset();
}

// DeepSpeed, runtime/pipe/schedule.py, TrainSchedule: before a forward pass a stage receives activations and then sends
// the gradients of the backward pass before; otherwise it sends first.
void StagePlanner::meet(SlotWalk& walk) {
  const bool forward = walk.slot.pass == PipelineSlot::Pass::forward;
  const bool receives_first = forward && held_message_ && held_message_->operation.what == gradients_message;
  walk.chain = receives_first ? last_of_slot_ : send_in_turn(last_of_slot_);
  const auto operation = message(walk, true);
  if (operation) walk.chain = transfer_in_turn(*operation, walk.chain);
  if (receives_first) walk.chain = send_in_turn(walk.chain);
  if (!operation) return;
  if (!forward && setup_.pass.kernels().gathers_sent) {
    PlannedOperation sent = *operation;
    sent.what = activations_message;
    gather_message(walk, sent);
  }
  gather_message(walk, *operation);
}

// NCCL's receiver tells its sender where to write to (src/transport/net_ib.cc, ncclIbPostFifo, an entry of 32 B), and
// nothing of a message leaves before. A sender waits until its message has arrived.
std::int32_t StagePlanner::transfer_in_turn(const PlannedOperation& operation, std::int32_t after,
                                            const std::vector<std::int32_t>& more) {
  PlannedOperation ready = operation;
  const bool sends = operation.kind == Operation::Kind::send;
  ready.kind = sends ? Operation::Kind::recv : Operation::Kind::send;
  ready.size = Bytes(32);
  ready.tag = ready_tag(operation.tag);
  ready.what = "ready to receive";
  const std::int32_t told = add(ready, {after});
  return add(operation, {sends ? told : after}, more);
}

std::int32_t StagePlanner::send_in_turn(std::int32_t after) {
  const auto held = std::exchange(held_message_, std::nullopt);
  return held ? transfer_in_turn(held->operation, after, held->after) : after;
}

}  // namespace weft
