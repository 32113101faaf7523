// SPDX-License-Identifier: GPL-2.0-only
// One step of a training job as all ranks of one pipeline rank execute it: operators with dependencies.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/program/program.hpp"
#include "workloads/parallel/held_parameters.hpp"
#include "workloads/parallel/rank_layout.hpp"
#include "workloads/pass/block_passes.hpp"
#include "workloads/pipeline/pipeline_schedule.hpp"

namespace weft {

/// Phases of a step, for people and for sums.
enum class Phase : std::uint8_t { forward, backward, weight_gradient, recompute, reduction, optimizer, pipeline };
std::string_view to_text(Phase phase);

/// One operator, the same for all ranks of a pipeline rank except for their peers.
struct PlannedOperation {
  Operation::Kind kind = Operation::Kind::compute;
  Stream stream = Stream::compute;
  Phase phase = Phase::forward;
  CollectiveKind collective = CollectiveKind::all_reduce;
  GroupKind group = GroupKind::tensor;  ///< of a collective; context: of a ring's messages; pipeline: of a stage's
  bool by_load = false;                 ///< goes with the tokens that come to the rank's experts
  bool combine = false;
  bool host = false;              ///< compute: by the host, while the device may do other things
  std::uint32_t after_begin = 0;  ///< in StagePlan::after
  std::uint32_t after_count = 0;
  std::uint32_t sequence = 0;     ///< collective: number among the calls of its group in this step
  std::uint32_t tag = 0;          ///< send, recv
  std::int32_t peer = 0;          ///< send, recv: the pipeline rank; in a ring: how many places further
  bool neighbour = false;         ///< send, recv in a group: the other one of two neighbours, instead of `peer`
  std::int32_t layer = -1;        ///< block, or -1
  std::int32_t micro_batch = -1;  ///< or -1: once per step
  std::string_view what;
  Bytes size;
  Time duration;
  Time slowed;  ///< compute: `duration` while collectives are under way, or 0 (Segment)
  double flops = 0;
  std::shared_ptr<const std::vector<KernelUse>> grouped;  ///< by_load, compute: its grouped GEMMs (Segment)

  std::string label() const;
};

/// Blocks [first, last) of a stage.
struct StageLayers {
  std::int64_t first = 0;
  std::int64_t last = 0;
};
StageLayers layers_of_stage(const ParallelPlan& plan, std::uint32_t stage);

struct StagePlan {
  std::vector<PlannedOperation> operations;
  static constexpr std::int32_t no_operation = INT32_MIN;
  /// Positions of operations that must be complete; a negative one, -1 - x, is position x of the step before; or
  /// no_operation.
  std::vector<std::int32_t> after;
  std::array<std::vector<std::uint32_t>, group_kind_count>
      calls;     ///< positions of the collectives of each kind of group
  Time compute;  ///< of the step
  double flops = 0;
  HeldParameters parameters;
  std::uint32_t gathers_at_start = 0;  ///< operations before the first pass, which goes on beside them

  std::span<const std::int32_t> after_of(const PlannedOperation& operation) const {
    return {after.data() + operation.after_begin, operation.after_count};
  }
};

/// The job that plans are made for.
struct StageSetup {
  PassSetup pass;
  const RankLayout* layout = nullptr;  ///< of the ranks that are simulated
  const RankLayout* whole = nullptr;   ///< of all ranks
  const PipelineSchedule* schedule = nullptr;
  PipelineShape shape;
};

/// Expands the slots of a pipeline rank. Order within a step: slots as the schedule gives them, each part after part;
/// gradients are reduced when the last micro-batch has left their part; then sums of what several ranks hold in common,
/// the norm of all gradients, the optimizer, and the gathering of parameters that are shared out. With
/// overlap_parameters these come first.
StagePlan plan_stage(const StageSetup& setup, std::uint32_t pipeline_rank);

}  // namespace weft
