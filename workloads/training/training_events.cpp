// SPDX-License-Identifier: GPL-2.0-only
// Storage targets, checkpoints and failures of a training job: how much each rank reads and writes.
#include <algorithm>

#include <fmt/format.h>

#include "units/text.hpp"
#include "workloads/compute/adam.hpp"
#include "workloads/reading/reading.hpp"
#include "workloads/training/training_workload.hpp"

namespace weft {
namespace {

StoragePlan storage_plan(const StorageTargets& targets, std::uint32_t clients, const SourceLine& where) {
  if (targets.count > clients)
    throw InputError(where, fmt::format("{} storage targets for {} ranks: {} of them would have nothing to do",
                                        targets.count, clients, targets.count - clients));
  StoragePlan plan;
  plan.clients = clients;
  plan.targets = targets.count;
  plan.piece = targets.piece;
  plan.device_rate = targets.device_rate;
  plan.device_latency = targets.device_latency;
  return plan;
}

}  // namespace

void TrainingWorkload::use_storage() {
  const TrainingEvents& events = job_.events;
  const std::uint32_t of_stage = layout_.world() / shape_.ranks;
  if (events.data.targets.count > 0) {
    for (std::uint32_t p = 0; p < shape_.ranks; ++p)
      for (std::uint32_t c = 0; c < schedule_->chunks(shape_); ++c)
        if (schedule_->stage_of(shape_, p, c) == 0) readers_.push_back(p);
    const auto clients = static_cast<std::uint32_t>(readers_.size()) * of_stage;
    StoragePlan plan = storage_plan(events.data.targets, clients, job_.where);
    // Samples of a copy of the model, over the ranks that share them out.
    const ParallelPlan& parallel = job_.description.parallel;
    const auto samples = static_cast<unsigned __int128>(job_.description.global_batch / parallel.data);
    const auto shares =
        static_cast<unsigned __int128>(parallel.tensor * parallel.context) * static_cast<unsigned>(readers_.size());
    plan.shard =
        saturated((samples * static_cast<unsigned __int128>(events.data.sample.count()) + shares - 1) / shares);
    data_ = StorageUse(plan, layout_.world(), [this, of_stage](std::uint32_t client) {
      const std::uint32_t at = client % of_stage;
      const std::uint32_t tensor = layout_.size(GroupKind::tensor), context = layout_.size(GroupKind::context);
      return layout_.rank({at % tensor, at / tensor % context, at / tensor / context, readers_[client / of_stage]});
    });
  }
  if (events.checkpoints.targets.count == 0) return;
  StoragePlan plan = storage_plan(events.checkpoints.targets, layout_.world(), job_.where);
  plan.shard_of = [this](std::uint32_t rank) { return checkpoint_bytes(layout_.place(Rank(rank)).pipeline); };
  checkpoints_ =
      StorageUse(plan, layout_.world() + events.data.targets.count, [](std::uint32_t client) { return Rank(client); });
}

std::optional<std::uint32_t> TrainingWorkload::data_client(Rank rank) const {
  const RankPlace place = layout_.place(rank);
  const auto reader = std::find(readers_.begin(), readers_.end(), place.pipeline);
  if (reader == readers_.end()) return std::nullopt;
  const std::uint32_t tensor = layout_.size(GroupKind::tensor), context = layout_.size(GroupKind::context);
  return static_cast<std::uint32_t>(reader - readers_.begin()) * (layout_.world() / shape_.ranks) + place.tensor +
         tensor * (place.context + context * place.data);
}

// Weights and the optimizer's state (Rajbhandari et al., arXiv:1910.02054, 3.1: 2 + 12 bytes per parameter of mixed
// precision) of the parameters that the rank holds, divided among all ranks that hold the same.
Bytes TrainingWorkload::checkpoint_bytes(std::uint32_t pipeline_rank) const {
  if (job_.events.checkpoints.size > Bytes(0)) return job_.events.checkpoints.size;
  const HeldParameters& held = held_[pipeline_rank];
  const bool twice =
      schedule_->chunks(shape_) * shape_.ranks > schedule_->stages(shape_);  // each stage is on two ranks
  const auto share = [twice](std::int64_t elements, std::int64_t ranks) {
    ranks *= twice ? 2 : 1;
    return (elements + ranks - 1) / ranks;
  };
  const std::int64_t bytes = element_bytes(job_.description.parameter_precision);
  const std::int64_t elements =
      share(held.dense, whole_.size(GroupKind::data)) + share(held.experts, whole_.size(GroupKind::expert_data));
  return Bytes(std::max<std::int64_t>(
      1, elements * (bytes + adam_kept(bytes, element_bytes(job_.description.moment_precision)))));
}

std::unique_ptr<RankProgram> TrainingWorkload::target_program(std::uint32_t target) const {
  const std::uint32_t of_data = job_.events.data.targets.count;
  if (target < of_data) return data_target_program(data_, target, outline_.reads(), job_.events.data.prefetch);
  return checkpoint_target_program(checkpoints_, target - of_data, outline_);
}

void TrainingWorkload::describe_events(std::vector<std::pair<std::string, std::string>>& lines) const {
  const TrainingEvents& events = job_.events;
  if (events.data.targets.count > 0)
    lines.emplace_back("data", fmt::format("{} a step on each of {} ranks from {} storage targets, {} steps ahead",
                                           to_text(data_.plan().shard), data_.plan().clients, data_.plan().targets,
                                           events.data.prefetch));
  if (events.checkpoints.targets.count > 0)
    lines.emplace_back("checkpoints",
                       fmt::format("{} to {} storage targets, one after every {} steps, {} B each, {}",
                                   outline_.checkpoints(), events.checkpoints.targets.count, events.checkpoints.every,
                                   grouped(saturated(checkpoints_.bytes_of_round()).count() -
                                           StoragePlan::word.count() * checkpoints_.plan().clients),
                                   events.checkpoints.asynchronous ? "beside the next steps" : "while training waits"));
  if (events.failures.whole_clock)
    lines.emplace_back(
        "on their clock",
        fmt::format("a step {:.3f} ms, a checkpoint {:.3f} ms, reading it {:.3f} ms, on the ideal network",
                    events.failures.step_time.seconds() * 1e3, events.failures.write.seconds() * 1e3,
                    events.failures.read.seconds() * 1e3));
  if (events.failures.any())
    lines.emplace_back("failures", fmt::format("{}; {} steps are executed for {}, checkpoints are read {} times",
                                               outline_.failures(), outline_.runs(), job_.steps, outline_.restores()));
}

}  // namespace weft
