// SPDX-License-Identifier: GPL-2.0-only
// A stage's plan: transfers over the device's link to the memory of its host (Rajbhandari et al., ZeRO-Infinity,
// arXiv:2104.07857; Ren et al., ZeRO-Offload, arXiv:2101.06840).
#include "workloads/compute/adam.hpp"
#include "workloads/reading/reading.hpp"
#include "workloads/step/stage_planner.hpp"

namespace weft {

std::int32_t StagePlanner::transfer(Way way, Bytes bytes, std::string_view what,
                                    std::initializer_list<std::int32_t> after, const std::vector<std::int32_t>& more) {
  PlannedOperation operation;
  operation.stream = Stream::none;
  operation.phase = Phase::optimizer;
  operation.what = what;
  operation.duration = serialization_time(bytes, setup_.pass.times->device().host_link);
  std::int32_t& last = last_transfer_[static_cast<std::size_t>(way)];
  std::vector<std::int32_t> all(after);
  all.insert(all.end(), more.begin(), more.end());
  last = add(operation, {last}, all);
  return last;
}

void StagePlanner::gradients_to_host(std::int32_t reduced, Bytes whole, GroupKind group) {
  if (!description_.offload_optimizer || !description_.overlap_offload || whole == Bytes(0)) return;
  const std::int64_t ranks = plan_.sharding == Sharding::none ? 1 : setup_.whole->size(group);
  gradients_on_host_.push_back(
      transfer(Way::to_host, Bytes((whole.count() + ranks - 1) / ranks), "gradients to host", {reduced}));
}

// Adam reads and writes the memory of the host; new parameters are copied back, unless they stay there.
void StagePlanner::step_optimizer_on_host() {
  if (!description_.overlap_offload)
    gradients_on_host_ = {transfer(Way::to_host, Bytes(kept_elements() * gradient_bytes_), "gradients to host",
                                   {last_compute_}, reductions_)};
  const Bandwidth memory = setup_.pass.times->device().host_memory_bandwidth;
  PlannedOperation adam;
  adam.stream = Stream::none;
  adam.phase = Phase::optimizer;
  adam.what = "optimizer on host";
  if (memory != Bandwidth())
    adam.duration =
        serialization_time(Bytes(kept_elements() * adam_traffic(gradient_bytes_, parameter_bytes_,
                                                                element_bytes(description_.moment_precision))),
                           memory);
  std::vector<std::int32_t> ready = gradients_on_host_;
  ready.insert(ready.end(), reductions_.begin(), reductions_.end());
  std::int32_t done = add(adam, {last_compute_}, ready);
  if (!description_.offload_parameters)
    done = transfer(Way::to_device, Bytes(kept_elements() * parameter_bytes_), "parameters to device", {done});
  PlannedOperation end;  // of the step, for its kernels
  end.phase = Phase::optimizer;
  end.what = "optimizer";
  add(end, {done});
}

std::int32_t StagePlanner::fetch(const Part& part, const SlotWalk& walk) {
  const auto share = [this](std::int64_t elements, GroupKind group) {
    const std::int64_t ranks = plan_.sharding == Sharding::parameters ? setup_.whole->size(group) : 1;
    return (elements + ranks - 1) / ranks;
  };
  const Bytes bytes(parameter_bytes_ *
                    (share(part.held.dense, GroupKind::shard) + share(part.held.experts, GroupKind::expert_data)));
  if (bytes == Bytes(0)) return no_operation;
  const std::int32_t fetched =
      transfer(Way::to_device, bytes, "parameters to device", {walk.part == 0 ? last_of_slot_ : walk.chain});
  wait_for_optimizer();
  return fetched;
}

}  // namespace weft
