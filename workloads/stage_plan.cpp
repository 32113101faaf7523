// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/stage_plan.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "support/contract.hpp"
#include "workloads/adam.hpp"
#include "workloads/gradient_buckets.hpp"
#include "workloads/reading.hpp"

namespace weft {
namespace {

constexpr std::array<std::string_view, 7> phase_names{"forward",   "backward",  "weight gradient", "recompute",
                                                      "reduction", "optimizer", "pipeline"};

constexpr std::int32_t no_operation = StagePlan::no_operation;
constexpr std::uint32_t no_place = UINT32_MAX;

/// A part of the model: embedding, a block, or the head.
struct Part {
  std::int32_t layer = -1;
  const PartPasses* passes = nullptr;
  const std::vector<Tensor>* tensors = nullptr;
  HeldParameters held;
};

/// Gradients that are reduced together, and by whom.
struct Pending {
  GradientBucket bucket;
  GroupKind group = GroupKind::data;
};

/// A model chunk: consecutive parts.
struct Chunk {
  std::uint32_t stage = 0;
  std::vector<Part> parts;
  std::vector<std::int32_t> gathered;  ///< the newest gathering of each part's parameters, or no_operation
  std::vector<std::uint32_t> waits;    ///< of each part's first operation: where its place in StagePlan::after is
  std::deque<Pending> pending;         ///< buckets to come
  std::uint32_t bucket_number = 0;
};

/// Walks a slot segment by segment, so that two slots can be worked on in turn.
struct SlotWalk {
  PipelineSlot slot;
  Chunk* chunk = nullptr;
  bool reversed = false;  ///< parts from the last to the first
  bool started = false;
  bool done = false;
  std::size_t part = 0;  ///< counted in the direction of the walk
  std::size_t segment = 0;
  bool again = false;                 ///< in the recomputation before a part's backward pass
  std::int32_t chain = no_operation;  ///< what the next segment waits for
  std::vector<std::int32_t> beside;
};

class StagePlanner {
 public:
  StagePlanner(const StageSetup& setup, std::uint32_t rank)
      : setup_(setup), description_(*setup.pass.description), plan_(description_.parallel), rank_(rank) {
    gradient_bytes_ = element_bytes(description_.gradient_precision);
    parameter_bytes_ = element_bytes(description_.parameter_precision);
    make_chunks();
  }

  StagePlan make() {
    find_last_slots();
    const auto slots = setup_.schedule->slots(setup_.shape, rank_);
    for (PipelineSlot slot; slots->next(slot);) {
      std::vector<SlotWalk> walks{start(slot)};
      while (walks.back().slot.with_next && slots->next(slot)) walks.push_back(start(slot));
      for (bool busy = true; busy;) {
        busy = false;
        for (SlotWalk& walk : walks) {
          if (!walk.done) advance(walk);
          busy = busy || !walk.done;
        }
      }
      last_of_slot_ = walks.back().chain;
    }
    end_of_step();
    return std::move(result_);
  }

 private:
  // The model
  // ----------------------------------------------------------------------------------------------------------
  void make_chunks() {
    const ModelConfig& model = description_.model;
    embedding_ = embedding_passes(setup_.pass);
    head_ = head_passes(setup_.pass);
    for (const BlockShape& shape : model.shapes) blocks_.push_back(block_passes(setup_.pass, shape));
    const std::uint32_t stages = setup_.schedule->stages(setup_.shape);
    for (std::uint32_t c = 0; c < setup_.schedule->chunks(setup_.shape); ++c) {
      Chunk chunk;
      chunk.stage = setup_.schedule->stage_of(setup_.shape, rank_, c);
      if (chunk.stage == 0 && !model.embedding.empty()) add_part(chunk, -1, embedding_, model.embedding);
      const StageLayers layers = layers_of_stage(plan_, chunk.stage);
      for (std::int64_t layer = layers.first; layer < layers.last; ++layer)
        add_part(chunk, static_cast<std::int32_t>(layer), blocks_[model.blocks[static_cast<std::size_t>(layer)]],
                 model.layer_shape(layer).tensors);
      if (chunk.stage + 1 == stages) add_part(chunk, -1, head_, model.head);
      chunk.gathered.assign(chunk.parts.size(), no_operation);
      chunk.waits.assign(chunk.parts.size(), no_place);
      chunks_.push_back(std::move(chunk));
    }
  }

  void add_part(Chunk& chunk, std::int32_t layer, const PartPasses& passes, const std::vector<Tensor>& tensors) {
    Part part{layer, &passes, &tensors, held_parameters(tensors, plan_)};
    result_.parameters.dense += part.held.dense;
    result_.parameters.experts += part.held.experts;
    chunk.parts.push_back(part);
  }

  /// The slots with which each chunk's gradients are complete.
  void find_last_slots() {
    last_.assign(chunks_.size(), 0);
    const auto slots = setup_.schedule->slots(setup_.shape, rank_);
    for (PipelineSlot slot; slots->next(slot);)
      if (completes_weights(slot.pass)) ++last_[slot.chunk];
  }
  static bool completes_weights(PipelineSlot::Pass pass) {
    return pass == PipelineSlot::Pass::backward || pass == PipelineSlot::Pass::weight_gradient;
  }

  // Operations
  // ---------------------------------------------------------------------------------------------------------
  std::int32_t add(PlannedOperation operation, std::initializer_list<std::int32_t> after,
                   const std::vector<std::int32_t>& more = {}) {
    operation.after_begin = static_cast<std::uint32_t>(result_.after.size());
    const auto depend = [this](std::int32_t position) {
      if (position != no_operation) result_.after.push_back(position);
    };
    for (const std::int32_t position : after) depend(position);
    for (const std::int32_t position : more) depend(position);
    operation.after_count = static_cast<std::uint32_t>(result_.after.size()) - operation.after_begin;
    const auto position = static_cast<std::int32_t>(result_.operations.size());
    if (operation.kind == Operation::Kind::collective) {
      auto& calls = result_.calls[static_cast<std::size_t>(operation.group)];
      operation.sequence = static_cast<std::uint32_t>(calls.size());
      calls.push_back(static_cast<std::uint32_t>(position));
    }
    if (operation.kind == Operation::Kind::compute) {
      result_.compute += operation.duration;
      result_.flops += operation.flops;
      last_compute_ = position;
    }
    result_.operations.push_back(operation);
    return position;
  }

  PlannedOperation collective(GroupKind group, CollectiveKind kind, Bytes size, Stream stream, std::string_view what) {
    PlannedOperation operation;
    operation.kind = Operation::Kind::collective;
    operation.group = group;
    operation.collective = kind;
    operation.size = size;
    operation.stream = stream;
    operation.phase = Phase::reduction;
    operation.what = what;
    return operation;
  }
  bool alone(GroupKind group) const { return setup_.layout->size(group) < 2; }

  // Slots
  // --------------------------------------------------------------------------------------------------------------
  SlotWalk start(const PipelineSlot& slot) {
    SlotWalk walk;
    walk.slot = slot;
    walk.chunk = &chunks_[slot.chunk];
    walk.reversed = slot.pass != PipelineSlot::Pass::forward;
    return walk;
  }

  const Part& part_of(const SlotWalk& walk) const {
    const auto& parts = walk.chunk->parts;
    return parts[walk.reversed ? parts.size() - 1 - walk.part : walk.part];
  }

  bool recomputes(const SlotWalk& walk) const {
    if (description_.recompute != Recompute::full || part_of(walk).layer < 0) return false;
    const auto pass = walk.slot.pass;
    if (pass != PipelineSlot::Pass::backward && pass != PipelineSlot::Pass::input_gradient) return false;
    if (description_.recompute_layers == 0) return true;
    const StageLayers layers = layers_of_stage(plan_, walk.chunk->stage);
    return part_of(walk).layer < layers.first + description_.recompute_layers;
  }

  const std::vector<Segment>& segments(const SlotWalk& walk) const {
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

  Phase phase_of(const SlotWalk& walk) const {
    if (walk.again) return Phase::recompute;
    if (walk.slot.pass == PipelineSlot::Pass::forward) return Phase::forward;
    return walk.slot.pass == PipelineSlot::Pass::weight_gradient ? Phase::weight_gradient : Phase::backward;
  }

  void advance(SlotWalk& walk) {
    if (!walk.started) {
      walk.started = true;
      walk.chain = receive(walk);
      if (walk.chunk->parts.empty()) return finish(walk);
      enter_part(walk);
    }
    while (!walk.done && walk.segment == segments(walk).size()) leave_part(walk);
    if (walk.done) return;
    run(walk, segments(walk)[walk.segment++]);
    while (!walk.done && walk.segment == segments(walk).size()) leave_part(walk);
  }

  void enter_part(SlotWalk& walk) {
    walk.segment = 0;
    walk.again = recomputes(walk);
    gather_ahead(walk);
  }

  void leave_part(SlotWalk& walk) {
    if (walk.again) {
      walk.again = false;
      walk.segment = 0;
      return;
    }
    if (completes_weights(walk.slot.pass)) reduce_part(walk);
    ++walk.part;
    if (walk.part == walk.chunk->parts.size())
      finish(walk);
    else
      enter_part(walk);
  }

  void run(SlotWalk& walk, const Segment& segment) {
    if (segment.kind == Segment::Kind::ring) return run_ring(walk, segment);
    if (segment.kind == Segment::Kind::collective && alone(segment.group)) return;
    PlannedOperation operation;
    operation.kind = segment.kind == Segment::Kind::collective ? Operation::Kind::collective : Operation::Kind::compute;
    operation.stream = segment.stream;
    operation.group = segment.group;
    operation.collective = segment.collective;
    operation.size = segment.size;
    operation.duration = segment.duration;
    operation.flops = segment.flops;
    operation.by_load = segment.by_load;
    operation.combine = segment.combine;
    operation.what = segment.what;
    describe(walk, operation);
    const std::int32_t gathered = sharded() ? gathered_of(walk) : no_operation;
    const bool first =
        gathers_late() && walk.slot.pass == PipelineSlot::Pass::forward && walk.chunk->waits[walk.part] == no_place;
    const std::int32_t position =
        add(operation, {walk.chain, gathered}, segment.join ? walk.beside : std::vector<std::int32_t>{});
    if (first) {  // a place for what it waits for of the step before: not known yet
      walk.chunk->waits[walk.part] = static_cast<std::uint32_t>(result_.after.size());
      result_.after.push_back(StagePlan::no_operation);
      ++result_.operations.back().after_count;
    }
    if (segment.join) walk.beside.clear();
    if (segment.beside)
      walk.beside.push_back(position);
    else
      walk.chain = position;
  }

  void describe(const SlotWalk& walk, PlannedOperation& operation) const {
    operation.phase = phase_of(walk);
    operation.layer = part_of(walk).layer;
    operation.micro_batch = static_cast<std::int32_t>(walk.slot.micro_batch);
  }

  /// c computations; before each but the first, the next block of keys and values comes from the neighbour, sent on as
  /// soon as it is there.
  void run_ring(SlotWalk& walk, const Segment& segment) {
    const std::int64_t ranks = plan_.context;
    std::int32_t block = walk.chain;  // what makes the block available that is sent on next
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
      operation.flops = segment.flops;
      walk.chain = add(operation, {walk.chain, block});
      if (arrived != no_operation) block = arrived;
    }
  }

  // Pipeline messages
  // --------------------------------------------------------------------------------------------------
  std::uint32_t message_tag(std::uint32_t stage, bool backward, std::uint32_t micro_batch) const {
    return (stage * 2 + (backward ? 1U : 0U)) * setup_.shape.micro_batches + micro_batch;
  }
  std::uint32_t ring_tag(const SlotWalk& walk) const {
    const std::uint32_t stages = setup_.schedule->stages(setup_.shape);
    return (2 * stages + walk.chunk->stage) * setup_.shape.micro_batches + walk.slot.micro_batch;
  }

  /// The neighbour stage from which the slot's input comes, or to which its output goes.
  std::optional<std::uint32_t> neighbour(const SlotWalk& walk, bool input) const {
    if (walk.slot.pass == PipelineSlot::Pass::weight_gradient) return std::nullopt;
    const bool lower = input != walk.reversed;
    const std::uint32_t stage = walk.chunk->stage;
    if (lower && stage == 0) return std::nullopt;
    if (!lower && stage + 1 == setup_.schedule->stages(setup_.shape)) return std::nullopt;
    return lower ? stage - 1 : stage + 1;
  }

  std::optional<PlannedOperation> message(const SlotWalk& walk, bool input) const {
    const auto stage = neighbour(walk, input);
    if (!stage) return std::nullopt;
    const auto place = setup_.schedule->place_of(setup_.shape, *stage, walk.slot.micro_batch);
    if (place.rank == rank_) return std::nullopt;  // it is here already
    PlannedOperation operation;
    operation.kind = input ? Operation::Kind::recv : Operation::Kind::send;
    operation.stream = Stream::none;
    operation.group = GroupKind::pipeline;
    operation.peer = static_cast<std::int32_t>(place.rank);
    operation.size = boundary_bytes(description_);
    operation.tag = message_tag(input ? walk.chunk->stage : *stage, walk.reversed, walk.slot.micro_batch);
    operation.phase = Phase::pipeline;
    operation.micro_batch = static_cast<std::int32_t>(walk.slot.micro_batch);
    operation.what = walk.reversed ? "gradients" : "activations";
    return operation;
  }

  std::int32_t receive(const SlotWalk& walk) {
    const auto operation = message(walk, true);
    if (!operation) return last_of_slot_;
    const std::int32_t received = add(*operation, {last_compute_});
    if (!plan_.scatter_gather || plan_.sequence || alone(GroupKind::tensor)) return received;
    PlannedOperation whole = collective(GroupKind::tensor, CollectiveKind::all_gather, operation->size * plan_.tensor,
                                        Stream::tensor, operation->what);
    whole.phase = Phase::pipeline;
    whole.micro_batch = operation->micro_batch;
    return add(whole, {received});
  }

  void finish(SlotWalk& walk) {
    walk.done = true;
    const auto operation = message(walk, false);
    if (operation) add(*operation, {walk.chain}, walk.beside);
  }

  // Parameters and gradients
  // -------------------------------------------------------------------------------------------
  bool sharded() const { return plan_.sharding == Sharding::parameters && !alone(GroupKind::shard); }

  std::int32_t gathered_of(const SlotWalk& walk) const {
    const auto& parts = walk.chunk->parts;
    return walk.chunk->gathered[walk.reversed ? parts.size() - 1 - walk.part : walk.part];
  }

  /// Parameters of this part and of those that come next, if they are shared out.
  void gather_ahead(SlotWalk& walk) {
    if (!sharded() || walk.slot.pass == PipelineSlot::Pass::weight_gradient) return;
    if (walk.reversed && !plan_.reshard_after_forward) return;
    const auto& parts = walk.chunk->parts;
    const std::size_t ahead = static_cast<std::size_t>(plan_.prefetch);
    const std::size_t first = walk.part == 0 ? 0 : walk.part + ahead;
    for (std::size_t i = first; i <= walk.part + ahead && i < parts.size(); ++i) {
      const std::size_t at = walk.reversed ? parts.size() - 1 - i : i;
      walk.chunk->gathered[at] = gather(parts[at], walk);
    }
  }

  std::int32_t gather(const Part& part, const SlotWalk& walk) {
    std::int32_t last = no_operation;
    const auto call = [&](GroupKind group, std::int64_t elements) {
      if (elements == 0 || alone(group)) return;
      PlannedOperation operation = collective(group, CollectiveKind::all_gather, Bytes(elements * parameter_bytes_),
                                              Stream::parameters, "parameters");
      describe(walk, operation);
      operation.layer = part.layer;
      last = add(operation, {walk.part == 0 ? last_of_slot_ : walk.chain, last});
    };
    call(GroupKind::shard, part.held.dense);
    call(GroupKind::expert_data, part.held.experts);
    return last;
  }

  /// The newest operation is the last one of a part's backward pass.
  void reduce_part(SlotWalk& walk) {
    const std::size_t at = walk.chunk->parts.size() - 1 - walk.part;
    const bool last_micro_batch = last_[walk.slot.chunk] == 1;
    if (at == 0) --last_[walk.slot.chunk];
    if (plan_.sharding == Sharding::parameters) return scatter_part(walk, walk.chunk->parts[at], last_micro_batch);
    const bool every = plan_.sharding == Sharding::gradients && description_.reduce_every_micro_batch;
    if (!last_micro_batch && !every) return;
    if (!description_.overlap_gradients && last_micro_batch && !every) return;
    if (at + 1 == walk.chunk->parts.size()) start_buckets(*walk.chunk);
    reduce_ready(*walk.chunk, at, walk.chain, static_cast<std::int32_t>(walk.slot.micro_batch));
  }

  void scatter_part(const SlotWalk& walk, const Part& part, bool last_micro_batch) {
    const auto call = [&](GroupKind group, CollectiveKind kind, std::int64_t elements, std::int32_t after) {
      if (elements == 0 || alone(group)) return after;
      PlannedOperation operation =
          collective(group, kind, Bytes(elements * gradient_bytes_), Stream::communication, "gradients");
      operation.layer = part.layer;
      operation.micro_batch = static_cast<std::int32_t>(walk.slot.micro_batch);
      const std::int32_t position = add(operation, {after});
      reductions_.push_back(position);
      return position;
    };
    const std::int32_t scattered = call(GroupKind::shard, CollectiveKind::reduce_scatter, part.held.dense, walk.chain);
    if (last_micro_batch && plan_.shard_group > 0)
      call(GroupKind::replica, CollectiveKind::all_reduce, part.held.dense / setup_.whole->size(GroupKind::shard),
           scattered);
    call(GroupKind::expert_data, CollectiveKind::reduce_scatter, part.held.experts, walk.chain);
  }

  void start_buckets(Chunk& chunk) {
    chunk.pending.clear();
    for (const GroupKind group : {GroupKind::data, GroupKind::expert_data}) {
      std::vector<PartTensors> parts;
      for (std::size_t i = chunk.parts.size(); i-- > 0;) {
        PartTensors one{static_cast<std::uint32_t>(i), {}};
        for (const Tensor& tensor : *chunk.parts[i].tensors) {
          if ((tensor.split == Split::expert) != (group == GroupKind::expert_data)) continue;
          one.elements.push_back(held_parameters({tensor}, plan_).sum());
        }
        parts.push_back(std::move(one));
      }
      for (const GradientBucket& bucket : gradient_buckets(parts, gradient_bytes_, description_.buckets))
        chunk.pending.push_back({bucket, group});
    }
    // Stable: both kinds keep their order.
    std::stable_sort(chunk.pending.begin(), chunk.pending.end(),
                     [](const Pending& a, const Pending& b) { return a.bucket.ready_after > b.bucket.ready_after; });
    chunk.bucket_number = 0;
  }

  void reduce_ready(Chunk& chunk, std::size_t part, std::int32_t after, std::int32_t micro_batch) {
    while (!chunk.pending.empty() && chunk.pending.front().bucket.ready_after >= part) {
      const Pending next = chunk.pending.front();
      chunk.pending.pop_front();
      const auto number = static_cast<std::int32_t>(chunk.bucket_number++);
      if (alone(next.group)) continue;
      const bool scatter = plan_.sharding != Sharding::none;
      PlannedOperation operation =
          collective(next.group, scatter ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                     next.bucket.size, Stream::communication, "grad bucket");
      operation.layer = number;
      if (description_.reduce_every_micro_batch) operation.micro_batch = micro_batch;
      reductions_.push_back(add(operation, {after}));
    }
  }

  // End of the step
  // ----------------------------------------------------------------------------------------------------
  void end_of_step() {
    const bool late = !description_.overlap_gradients && plan_.sharding != Sharding::parameters &&
                      !(plan_.sharding == Sharding::gradients && description_.reduce_every_micro_batch);
    if (late)
      for (Chunk& chunk : chunks_) {
        start_buckets(chunk);
        reduce_ready(chunk, 0, last_compute_, -1);
      }
    sum_what_is_shared();
    clip();
    step_optimizer();
    gather_parameters();
  }

  void reduce_at_end(GroupKind group, std::int64_t elements, std::string_view what) {
    if (elements == 0 || alone(group)) return;
    const std::int32_t position = add(
        collective(group, CollectiveKind::all_reduce, Bytes(elements * gradient_bytes_), Stream::communication, what),
        {last_compute_}, reductions_.empty() ? std::vector<std::int32_t>{} : std::vector{reductions_.back()});
    reductions_.push_back(position);
  }

  void sum_what_is_shared() {
    const ModelConfig& model = description_.model;
    const std::uint32_t stages = setup_.schedule->stages(setup_.shape);
    if (plan_.sequence) {
      // Norms, the last one too, and routers see a part of the sequence on each tensor rank (Korthikanti et
      // al., 4.2.2).
      std::int64_t whole = 0;
      for (const Chunk& chunk : chunks_)
        for (const Part& part : chunk.parts)
          if (part.passes != &embedding_)
            for (const Tensor& tensor : *part.tensors) whole += tensor.split == Split::none ? tensor.elements : 0;
      reduce_at_end(GroupKind::tensor, whole, "norm gradients");
    }
    const auto first = setup_.schedule->place_of(setup_.shape, 0, 0);
    const auto last = setup_.schedule->place_of(setup_.shape, stages - 1, 0);
    if (model.tied && first.rank != last.rank && (rank_ == first.rank || rank_ == last.rank))
      reduce_at_end(GroupKind::embedding, held_parameters({model.embedding.front()}, plan_).dense,
                    "embedding gradients");
    if (keeps_two_copies()) reduce_at_end(GroupKind::mirror, result_.parameters.sum(), "gradients of both copies");
  }

  /// A stage is on two ranks (DualPipe).
  bool keeps_two_copies() const {
    return setup_.schedule->chunks(setup_.shape) * setup_.shape.ranks > setup_.schedule->stages(setup_.shape);
  }

  void clip() {
    if (!description_.clip_gradients) return;
    // Each rank reads the gradients that it keeps; the sum goes over all ranks that keep other ones (Megatron-LM,
    // megatron/core/optimizer/clip_grads.py).
    const GroupKind group = plan_.sharding == Sharding::none ? GroupKind::model : GroupKind::world;
    if (alone(group)) return;
    Kernel read;
    read.kind = Kernel::Kind::memory;
    read.bytes = kept_elements() * gradient_bytes_;
    read.precision = description_.precision;
    PlannedOperation norm;
    norm.phase = Phase::optimizer;
    norm.what = "gradient norm";
    norm.duration = setup_.pass.times->of(read);
    const std::int32_t computed = add(norm, {}, reductions_);
    reductions_.clear();
    PlannedOperation sum =
        collective(group, CollectiveKind::all_reduce, Bytes(4), Stream::communication, "gradient norm");
    sum.phase = Phase::optimizer;
    reductions_.push_back(add(sum, {computed}));
  }

  /// Parameters that this rank's optimizer works on.
  std::int64_t kept_elements() const {
    if (plan_.sharding == Sharding::none) return result_.parameters.sum();
    const std::int64_t ranks =
        setup_.whole->size(plan_.sharding == Sharding::parameters ? GroupKind::shard : GroupKind::data);
    const std::int64_t copies = setup_.whole->size(GroupKind::expert_data);
    return (result_.parameters.dense + ranks - 1) / ranks + (result_.parameters.experts + copies - 1) / copies;
  }

  void step_optimizer() {
    Kernel kernel;
    kernel.kind = Kernel::Kind::memory;
    kernel.bytes = saturated(static_cast<unsigned __int128>(kept_elements()) *
                             static_cast<unsigned __int128>(adam_traffic(gradient_bytes_, parameter_bytes_)))
                       .count();
    kernel.precision = description_.precision;
    PlannedOperation operation;
    operation.phase = Phase::optimizer;
    operation.what = "optimizer";
    operation.duration = setup_.pass.times->of(kernel);
    add(operation, {}, reductions_);
  }

  bool gathers_late() const { return plan_.sharding == Sharding::optimizer || plan_.sharding == Sharding::gradients; }

  /// Parameters in forward order, so that what the next step needs first comes first. Its parts wait for theirs, or, if
  /// gathering does not overlap, all for the last.
  void gather_parameters() {
    if (!gathers_late()) return;
    const std::int32_t optimizer = last_compute_;
    std::int32_t last = no_operation;
    for (Chunk& chunk : chunks_) {
      start_buckets(chunk);
      for (auto at = chunk.pending.rbegin(); at != chunk.pending.rend(); ++at) {
        if (alone(at->group)) continue;
        const Bytes size(at->bucket.size.count() / gradient_bytes_ * parameter_bytes_);
        PlannedOperation operation =
            collective(at->group, CollectiveKind::all_gather, size, Stream::parameters, "parameters");
        operation.phase = Phase::optimizer;
        last = add(operation, {optimizer});
        // Parts above the bucket's lowest one have had their last piece, unless a later bucket has more of them.
        for (std::size_t part = at->bucket.ready_after; part < chunk.parts.size(); ++part) wait(chunk, part, last);
      }
    }
    if (last == no_operation || description_.overlap_parameters) return;
    for (Chunk& chunk : chunks_)
      for (std::size_t part = 0; part < chunk.parts.size(); ++part) wait(chunk, part, last);
  }

  void wait(const Chunk& chunk, std::size_t part, std::int32_t position) {
    if (chunk.waits[part] != no_place) result_.after[chunk.waits[part]] = -1 - position;
  }

  const StageSetup& setup_;
  const TrainingDescription& description_;
  const ParallelPlan& plan_;
  std::uint32_t rank_;
  std::int64_t gradient_bytes_ = 2, parameter_bytes_ = 2;
  PartPasses embedding_, head_;
  std::vector<PartPasses> blocks_;
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> last_;  // [chunk] slots to come that add to the gradients of weights
  StagePlan result_;
  std::int32_t last_compute_ = no_operation;
  std::int32_t last_of_slot_ = no_operation;
  std::vector<std::int32_t> reductions_;
};

}  // namespace

std::string_view to_text(Phase phase) { return phase_names.at(static_cast<std::size_t>(phase)); }

std::string PlannedOperation::label() const {
  std::string text = micro_batch >= 0 ? fmt::format("micro-batch {} ", micro_batch) : "";
  if (phase != Phase::reduction && phase != Phase::optimizer && phase != Phase::pipeline)
    text += fmt::format("{} ", to_text(phase));
  if (what == "grad bucket") return text + fmt::format("grad bucket {}", layer);
  if (layer >= 0) text += fmt::format("block {} ", layer);
  return text + std::string(what);
}

HeldParameters held_parameters(const std::vector<Tensor>& tensors, const ParallelPlan& plan) {
  const auto part = [](std::int64_t whole, std::int64_t ranks) { return (whole + ranks - 1) / ranks; };
  HeldParameters held;
  for (const Tensor& tensor : tensors) {
    if (tensor.split == Split::expert)
      held.experts += part(tensor.elements, plan.expert * plan.expert_tensor);
    else
      held.dense += tensor.split == Split::tensor ? part(tensor.elements, plan.tensor) : tensor.elements;
  }
  return held;
}

StageLayers layers_of_stage(const ParallelPlan& plan, std::uint32_t stage) {
  StageLayers layers;
  for (std::uint32_t s = 0; s < stage; ++s) layers.first += plan.stage_layers[s];
  layers.last = layers.first + plan.stage_layers.at(stage);
  return layers;
}

StagePlan plan_stage(const StageSetup& setup, std::uint32_t pipeline_rank) {
  return StagePlanner(setup, pipeline_rank).make();
}

}  // namespace weft
