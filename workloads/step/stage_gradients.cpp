// SPDX-License-Identifier: GPL-2.0-only
// A stage's plan: parameters gathered before they are needed, gradients summed as they become ready.
#include <algorithm>

#include "workloads/parallel/pass_sizes.hpp"
#include "workloads/step/stage_planner.hpp"

namespace weft {

std::int32_t StagePlanner::gathered_of(const SlotWalk& walk) const {
  const auto& parts = walk.chunk->parts;
  return walk.chunk->gathered[walk.reversed ? parts.size() - 1 - walk.part : walk.part];
}

void StagePlanner::gather_ahead(SlotWalk& walk) {
  if (!fetches() || walk.slot.pass == PipelineSlot::Pass::weight_gradient) return;
  if (walk.reversed && !plan_.reshard_after_forward) return;
  const auto& parts = walk.chunk->parts;
  const bool waits = description_.offload_parameters && !description_.overlap_offload;
  const std::size_t ahead = waits ? 0 : static_cast<std::size_t>(plan_.prefetch);
  const std::size_t first = walk.part == 0 ? 0 : walk.part + ahead;
  for (std::size_t i = first; i <= walk.part + ahead && i < parts.size(); ++i) {
    const std::size_t at = walk.reversed ? parts.size() - 1 - i : i;
    walk.chunk->gathered[at] = gather(parts[at], walk);
  }
}

std::int32_t StagePlanner::gather(const Part& part, const SlotWalk& walk) {
  std::int32_t last = description_.offload_parameters ? fetch(part, walk) : no_operation;
  const auto call = [&](GroupKind group, std::int64_t elements) {
    if (elements == 0 || alone(group)) return;
    PlannedOperation operation = collective(group, CollectiveKind::all_gather, Bytes(elements * parameter_bytes_),
                                            Stream::parameters, "parameters");
    describe(walk, operation);
    operation.layer = part.layer;
    last = add(operation, {walk.part == 0 ? last_of_slot_ : walk.chain, last});
    wait_for_optimizer();
  };
  call(GroupKind::shard, part.held.dense);
  call(GroupKind::expert_data, part.held.experts);
  return last;
}

std::int32_t StagePlanner::gather_parameters() {
  std::int32_t last = no_operation;
  for (Chunk& chunk : chunks_) {
    start_buckets(chunk);
    for (auto at = chunk.pending.rbegin(); at != chunk.pending.rend(); ++at) {
      if (alone(at->group)) continue;
      const Bytes size(at->bucket.size.count() / gradient_bytes_ * parameter_bytes_);
      PlannedOperation operation =
          collective(at->group, CollectiveKind::all_gather, size, Stream::parameters, "parameters");
      operation.phase = Phase::optimizer;
      last = add(operation, {last_compute_});
      wait_for_optimizer();
      // Parts above the bucket's lowest one have had their last piece, unless a later bucket has more of them.
      for (std::size_t part = at->bucket.ready_after; part < chunk.parts.size(); ++part) chunk.awaited[part] = last;
    }
    chunk.pending.clear();
  }
  return last;
}

void StagePlanner::wait_for_optimizer() {
  if (last_compute_ != no_operation) return;  // something has been computed in this step, after that
  after_optimizer_.push_back(static_cast<std::uint32_t>(result_.after.size()));
  result_.after.push_back(no_operation);
  ++result_.operations.back().after_count;
}

std::int32_t StagePlanner::computed(const SlotWalk& walk) const {
  if (!plan_.combined() || walk.beside.empty()) return walk.chain;
  return std::max(walk.chain, walk.beside.back());
}

void StagePlanner::reduce_part(SlotWalk& walk) {
  const std::size_t at = walk.chunk->parts.size() - 1 - walk.part;
  const bool last_micro_batch = last_[walk.slot.chunk] == 1;
  if (at == 0) --last_[walk.slot.chunk];
  if (plan_.sharding == Sharding::parameters) return scatter_part(walk, walk.chunk->parts[at], last_micro_batch);
  const bool every = plan_.sharding == Sharding::gradients && description_.reduce_every_micro_batch;
  if (!last_micro_batch && !every) return;
  if (!description_.overlap_gradients && last_micro_batch && !every) return;
  if (at + 1 == walk.chunk->parts.size()) start_buckets(*walk.chunk);
  if (description_.align_gradients) {
    if (at == 0)
      complete_.push_back({walk.chunk, backward_slots_ + 1 + rank_, static_cast<std::int32_t>(walk.slot.micro_batch)});
    return;
  }
  reduce_ready(*walk.chunk, at, computed(walk), static_cast<std::int32_t>(walk.slot.micro_batch));
}

void StagePlanner::reduce_aligned() {
  for (; !complete_.empty() && complete_.front().slots <= backward_slots_; complete_.pop_front())
    reduce_ready(*complete_.front().chunk, 0, last_of_slot_, complete_.front().micro_batch);
}

void StagePlanner::scatter_part(const SlotWalk& walk, const Part& part, bool last_micro_batch) {
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
  const std::int32_t scattered =
      call(GroupKind::shard, CollectiveKind::reduce_scatter, part.held.dense, computed(walk));
  if ((last_micro_batch || description_.reduce_every_micro_batch) && plan_.shard_group > 0)
    call(GroupKind::replica, CollectiveKind::all_reduce, part.held.dense / setup_.whole->size(GroupKind::shard),
         scattered);
  const std::int32_t experts =
      call(GroupKind::expert_data, CollectiveKind::reduce_scatter, part.held.experts, computed(walk));
  if (!last_micro_batch) return;
  gradients_to_host(reductions_.empty() ? scattered : reductions_.back(), Bytes(part.held.dense * gradient_bytes_),
                    GroupKind::shard);
  gradients_to_host(experts, Bytes(part.held.experts * gradient_bytes_), GroupKind::expert_data);
}

void StagePlanner::start_buckets(Chunk& chunk) {
  chunk.pending.clear();
  // Optimizer state that several groups keep (Megatron-LM, megatron/core/distributed/param_and_grad_buffer.py,
  // num_distributed_optimizer_instances); experts have one.
  const bool groups = plan_.sharding != Sharding::none && plan_.shard_group > 0;
  for (const GroupKind group : {groups ? GroupKind::shard : GroupKind::data, GroupKind::expert_data}) {
    std::vector<PartTensors> parts;
    for (std::size_t i = chunk.parts.size(); i-- > 0;) {
      PartTensors one{static_cast<std::uint32_t>(i), {}};
      for (const Tensor& tensor : *chunk.parts[i].tensors) {
        if ((tensor.split == Split::expert) != (group == GroupKind::expert_data)) continue;
        one.elements.push_back(held_parameters({tensor}, plan_).sum());
      }
      parts.push_back(std::move(one));
    }
    const bool one = description_.buckets_of_first_chunk && (rank_ > 0 || &chunk != &chunks_.front());
    const BucketLimits limits = one ? BucketLimits{Bytes::max(), Bytes::max()} : description_.buckets;
    for (const GradientBucket& bucket : gradient_buckets(parts, gradient_bytes_, limits))
      chunk.pending.push_back({bucket, group});
  }
  // Stable: both kinds keep their order.
  std::stable_sort(chunk.pending.begin(), chunk.pending.end(),
                   [](const Pending& a, const Pending& b) { return a.bucket.ready_after > b.bucket.ready_after; });
  chunk.bucket_number = 0;
}

void StagePlanner::reduce_ready(Chunk& chunk, std::size_t part, std::int32_t after, std::int32_t micro_batch) {
  while (!chunk.pending.empty() && chunk.pending.front().bucket.ready_after >= part) {
    const Pending next = chunk.pending.front();
    chunk.pending.pop_front();
    const auto number = static_cast<std::int32_t>(chunk.bucket_number++);
    const auto call = [&](GroupKind group, CollectiveKind kind, Bytes size, std::int32_t before) {
      if (alone(group)) return before;
      PlannedOperation operation = collective(group, kind, size, Stream::communication, "grad bucket");
      operation.layer = number;
      if (description_.reduce_every_micro_batch) operation.micro_batch = micro_batch;
      reductions_.push_back(add(operation, {before}));
      return reductions_.back();
    };
    const bool whole = gradient_bytes_ == 4 && setup_.pass.kernels().all_reduces_fp32;
    const bool scatter = plan_.sharding != Sharding::none && !whole;
    std::int32_t summed = call(next.group, scatter ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                               next.bucket.size, after);
    if (next.group == GroupKind::shard) {  // each group has a sum of its own
      const std::int64_t ranks = setup_.whole->size(GroupKind::shard);
      summed = call(GroupKind::replica, CollectiveKind::all_reduce,
                    Bytes(share_of(next.bucket.size.count() / gradient_bytes_, ranks) * gradient_bytes_), summed);
    }
    gradients_to_host(summed, next.bucket.size, next.group);
  }
}

}  // namespace weft
