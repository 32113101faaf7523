// SPDX-License-Identifier: GPL-2.0-only
// One step of data-parallel training: what every rank computes and reduces, in order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/program.hpp"
#include "units/time.hpp"
#include "workloads/device.hpp"
#include "workloads/gradient_buckets.hpp"
#include "workloads/model_config.hpp"
#include "workloads/model_cost.hpp"

namespace weft {

/// What a step depends on.
struct TrainingSetup {
  ModelConfig model;
  Device device;
  MicroBatch batch;
  std::string precision = "bf16";           ///< of weights and activations
  std::string gradient_precision = "bf16";  ///< of what is reduced
  BucketLimits buckets;
};

/// One operation of a step; ids count from 0 within the step.
struct PlannedOperation {
  bool collective = false;
  Time duration;                     ///< of a compute operation
  std::uint32_t bucket = 0;          ///< of a collective
  std::vector<std::uint32_t> after;  ///< smaller positions in the step
  std::string label;
};

/// The same for all ranks and steps: forward passes, backward passes in reverse, each followed by the all-reduces of
/// the buckets that it completes (they overlap with what follows: Li et al., arXiv:2006.15704, 3.2.3), and the
/// optimizer after all.
struct StepPlan {
  std::vector<PlannedOperation> operations;
  std::vector<GradientBucket> buckets;
  Time forward, backward, optimizer;  ///< compute time of the step, without waits
  double forward_flops = 0;
  Time compute() const { return forward + backward + optimizer; }
};

/// Throws InputError at `where` if the step takes longer than `longest` to compute.
StepPlan plan_step(const TrainingSetup& setup, const Spec& where, Time longest);

}  // namespace weft
