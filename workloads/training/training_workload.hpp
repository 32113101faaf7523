// SPDX-License-Identifier: GPL-2.0-only
// Training steps of a model on many ranks, as a workload.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/program/workload.hpp"
#include "workloads/compute/compute_noise.hpp"
#include "workloads/compute/operator_times.hpp"
#include "workloads/parallel/expert_routing.hpp"
#include "workloads/parallel/rank_layout.hpp"
#include "workloads/parallel/training_description.hpp"
#include "workloads/step/stage_plan.hpp"
#include "workloads/storage/run_outline.hpp"
#include "workloads/storage/training_storage.hpp"

namespace weft {

/// Algorithm and tuning of the calls of a kind of group, as the experiment says.
struct GroupCollectives {
  CollectiveTuning tuning;
  std::map<CollectiveKind, std::string> algorithms;
};

/// Everything that a training job depends on.
struct TrainingJob {
  TrainingDescription description;  ///< settled
  OperatorTimes times{Device{}};
  ComputeNoise noise;
  AttentionKernel attention = AttentionKernel::flash;
  std::shared_ptr<const KernelCatalogue> framework;  ///< nothing: plain_kernels()
  PassSetup pass_setup() const { return {&description, &times, attention, framework.get()}; }
  ExpertRouting routing;
  std::uint32_t steps = 1;
  /// Data-parallel copies that are simulated; 0: all. The others are taken to do the same at the same time.
  std::uint32_t simulated_data = 0;
  std::array<GroupCollectives, group_kind_count> collectives;
  TrainingEvents events;
  SourceLine where;
};

/// Programs of all ranks of a pipeline rank are walks over one plan (created on demand); calls have the ids run * calls
/// of a step + those of group kinds, pipeline ranks, groups and calls of a group in order, where a run is one complete
/// execution of a step (RunOutline). Storage targets are the ranks after those that train: first those of data, then
/// those of checkpoints.
class TrainingWorkload final : public Workload {
 public:
  using Settle = std::function<void(CollectiveCall&)>;
  /// `settle` has the last word on a call (settle_call). Throws InputError if the schedule refuses the shape or the
  /// machine's memory does not hold the job.
  /// `graphs`: as in the context.
  TrainingWorkload(TrainingJob job, Settle settle, ChannelGraphs graphs = nullptr);

  std::uint32_t ranks() const override { return layout_.world() + job_.events.targets(); }
  std::uint32_t storage_ranks() const override { return job_.events.targets(); }
  std::unique_ptr<RankProgram> program(Rank rank) const override;
  std::uint64_t call_count() const override { return calls_per_step_ * outline_.complete(); }
  CollectiveCall call(std::uint32_t id) const override;
  std::uint64_t steps() const override { return job_.steps; }
  WorkloadEstimate estimate() const override;
  std::vector<std::pair<std::string, std::string>> description() const override;
  /// Kinds are pipeline ranks, and each storage target.
  std::uint32_t kind_count() const override { return shape_.ranks + job_.events.targets(); }
  std::uint32_t kind_of(Rank rank) const override;
  Rank first_of_kind(std::uint32_t kind) const override;
  std::uint32_t ranks_of_kind(std::uint32_t kind) const override {
    return kind < shape_.ranks ? layout_.world() / shape_.ranks : 1;
  }
  std::optional<WorkloadReport> report() const override;
  std::vector<KernelLine> kernels() const override;

  const TrainingJob& job() const { return job_; }
  /// Of the simulated ranks.
  const RankLayout& layout() const { return layout_; }
  const PipelineSchedule& schedule() const { return *schedule_; }
  const PipelineShape& shape() const { return shape_; }
  /// The plan of a pipeline rank.
  const StagePlan& plan(std::uint32_t pipeline_rank) const;

  // For the programs
  const RunOutline& outline() const { return outline_; }
  const StorageUse& data_use() const { return data_; }
  const StorageUse& checkpoint_use() const { return checkpoints_; }
  /// Which client of the data's targets a rank is, if any.
  std::optional<std::uint32_t> data_client(Rank rank) const;
  /// What the rank writes to a checkpoint.
  Bytes checkpoint_bytes(std::uint32_t pipeline_rank) const;
  std::shared_ptr<const CollectiveCall> make_call(const PlannedOperation& operation, Rank rank,
                                                  std::uint32_t run) const;
  /// Tokens that come to the experts of a rank, relative to an even spread, and how long it computes with them: grouped
  /// GEMMs by the rows of each expert, all else as many times as long.
  struct Load {
    double relative = 1;
    Time time;
  };
  Load load_of(const PlannedOperation& operation, Rank rank, std::uint32_t step) const;

 private:
  std::uint32_t call_id(GroupKind kind, std::uint32_t group, std::uint32_t sequence, std::uint32_t run) const;
  Bytes represented(const PlannedOperation& operation) const;
  CollectiveCall call_of(const PlannedOperation& operation, std::uint32_t group, std::uint32_t run) const;
  const Communicator& communicator(GroupKind kind, std::uint32_t group) const;
  std::uint32_t groups_of_stage(GroupKind kind) const;
  /// Its sizes go with the tokens that come to experts.
  std::shared_ptr<const ChannelGraph> graph_of(const Communicator& members) const;
  bool goes_by_load(const PlannedOperation& operation) const;
  void set_blocks(const PlannedOperation& operation, std::uint32_t group, std::uint32_t step,
                  CollectiveCall& call) const;
  RoutingCase routing_case(const PlannedOperation& operation, std::uint32_t expert_group, std::uint32_t step) const;
  void count_calls();
  void make_outline();
  void use_storage();
  std::unique_ptr<RankProgram> target_program(std::uint32_t target) const;
  void describe_events(std::vector<std::pair<std::string, std::string>>& lines) const;
  /// What is to be known of GEMMs of 16 bits whose rows in memory are no multiples of 16 B.
  std::vector<std::string> slow_gemms() const;
  /// That the host may take longer for a block than the device; nothing if it does not, or that is not known.
  std::optional<std::string> host_note() const;
  void describe_sizes(std::vector<std::pair<std::string, std::string>>& lines) const;

  TrainingJob job_;
  Settle settle_;
  ChannelGraphs graphs_;
  RankLayout layout_;  // of the simulated ranks
  RankLayout whole_;   // of all ranks
  std::unique_ptr<PipelineSchedule> schedule_;
  PipelineShape shape_;
  /// [kind][pipeline rank] calls of a group in a step, and the id of the first of all its groups.
  std::array<std::vector<std::uint32_t>, group_kind_count> calls_;
  std::array<std::vector<std::uint64_t>, group_kind_count> first_call_;
  std::uint64_t calls_per_step_ = 0;
  RunOutline outline_;
  StorageUse data_, checkpoints_;
  std::vector<std::uint32_t> readers_;  // pipeline ranks with the first stage
  std::vector<HeldParameters> held_;    // of each pipeline rank
  Time compute_;                        // of the busiest rank in a step
  double flops_ = 0;                    // of all ranks in a step
  mutable std::vector<std::unique_ptr<const StagePlan>> plans_;
  mutable std::map<std::uint32_t, Communicator> communicators_;
  mutable std::map<std::uint32_t, std::shared_ptr<const ChannelGraph>> graph_of_;  // by communicator
  mutable std::map<std::pair<GroupKind, std::pair<CollectiveKind, std::int64_t>>, CollectiveCall> settled_;
};

}  // namespace weft
