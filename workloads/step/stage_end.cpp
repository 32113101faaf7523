// SPDX-License-Identifier: GPL-2.0-only
// A stage's plan after all passes: sums over several ranks, the norm, the optimizer.
#include "workloads/compute/adam.hpp"
#include "workloads/pass/pass_work.hpp"
#include "workloads/reading/reading.hpp"
#include "workloads/step/stage_planner.hpp"

namespace weft {

void StagePlanner::end_of_step() {
  const bool late = !description_.overlap_gradients && plan_.sharding != Sharding::parameters &&
                    !(plan_.sharding == Sharding::gradients && description_.reduce_every_micro_batch);
  if (late)
    for (Chunk& chunk : chunks_) {
      start_buckets(chunk);
      reduce_ready(chunk, 0, last_compute_, -1);
    }
  sum_what_is_shared();
  clip();
  if (description_.offload_optimizer)
    step_optimizer_on_host();
  else
    step_optimizer();
  if (description_.offload_parameters && !description_.offload_optimizer)
    transfer(Way::to_host, Bytes(kept_elements() * parameter_bytes_), "parameters to host", {last_compute_});
  for (const std::uint32_t place : after_optimizer_) result_.after[place] = -1 - last_compute_;
  if (!gathers_late()) return;
  const std::int32_t last = gather_parameters();
  if (last == no_operation) return;
  for (const std::uint32_t place : first_forward_) result_.after[place] = -1 - last;
}

void StagePlanner::reduce_at_end(GroupKind group, std::int64_t elements, std::string_view what) {
  if (elements == 0 || alone(group)) return;
  const std::int32_t position =
      add(collective(group, CollectiveKind::all_reduce, Bytes(elements * gradient_bytes_), Stream::communication, what),
          {last_compute_}, reductions_.empty() ? std::vector<std::int32_t>{} : std::vector{reductions_.back()});
  reductions_.push_back(position);
}

void StagePlanner::sum_what_is_shared() {
  const ModelConfig& model = description_.model;
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
  if (plan_.embedding_copy > 0 && (rank_ == 0 || rank_ == plan_.embedding_copy))
    reduce_at_end(GroupKind::embedding, held_parameters({model.embedding.front()}, plan_).dense, "embedding gradients");
  // Each rank sums what its data-parallel ranks have left to it.
  if (keeps_two_copies()) reduce_at_end(GroupKind::mirror, kept_elements(), "gradients of both copies");
}

bool StagePlanner::keeps_two_copies() const {
  return setup_.schedule->chunks(setup_.shape) * setup_.shape.ranks > setup_.schedule->stages(setup_.shape);
}

void StagePlanner::clip() {
  if (!description_.clip_gradients) return;
  // Each rank reads the gradients that it keeps; the sum is over all ranks that keep other ones (Megatron-LM,
  // megatron/core/optimizer/clip_grads.py).
  const GroupKind group = plan_.sharding == Sharding::none ? GroupKind::model : GroupKind::world;
  const KernelCatalogue& kernels = setup_.pass.kernels();
  if (alone(group)) {
    if (kernels.counts_optimizer())
      reductions_ = {add(whole_pass("gradient norm", kernels.gradient_norm), {}, reductions_)};
    return;
  }
  Kernel read;
  read.kind = Kernel::Kind::memory;
  read.bytes = kept_elements() * gradient_bytes_;
  read.precision = description_.precision;
  PlannedOperation norm;
  norm.phase = Phase::optimizer;
  norm.what = "gradient norm";
  norm.duration = setup_.pass.times->of(read);
  norm.slowed = setup_.pass.times->beside(read);
  if (kernels.counts_optimizer()) norm = whole_pass("gradient norm", kernels.gradient_norm);
  const std::int32_t computed = add(norm, {}, reductions_);
  reductions_.clear();
  PlannedOperation sum =
      collective(group, CollectiveKind::all_reduce, Bytes(4), Stream::communication, "gradient norm");
  sum.phase = Phase::optimizer;
  reductions_.push_back(add(sum, {computed}));
}

std::int64_t StagePlanner::kept_elements() const { return kept_parameters(result_.parameters, plan_, *setup_.whole); }

PlannedOperation StagePlanner::whole_pass(std::string_view what, const std::vector<SmallKernel>& kernels) const {
  PlannedOperation operation;
  operation.phase = Phase::optimizer;
  operation.what = what;
  for (const SmallKernel& one : kernels) {
    if (!has_kernel(setup_.pass, one)) continue;
    const std::int64_t units = one.unit == KernelUnit::kept ? kept_elements() : result_.parameters.sum();
    const Kernel kernel = kernel_of(one, units, activation_precision(description_));
    operation.duration += setup_.pass.times->of(kernel);
    operation.slowed += setup_.pass.times->beside(kernel);
  }
  return operation;
}

void StagePlanner::step_optimizer() {
  if (setup_.pass.kernels().counts_optimizer()) {
    add(whole_pass("optimizer", setup_.pass.kernels().optimizer), {}, reductions_);
    return;
  }
  Kernel kernel;
  kernel.kind = Kernel::Kind::memory;
  kernel.bytes = saturated(static_cast<unsigned __int128>(kept_elements()) *
                           static_cast<unsigned __int128>(adam_traffic(gradient_bytes_, parameter_bytes_,
                                                                       element_bytes(description_.moment_precision))))
                     .count();
  kernel.precision = description_.precision;
  PlannedOperation operation;
  operation.phase = Phase::optimizer;
  operation.what = "optimizer";
  operation.duration = setup_.pass.times->of(kernel);
  operation.slowed = setup_.pass.times->beside(kernel);
  add(operation, {}, reductions_);
}

}  // namespace weft
