// SPDX-License-Identifier: GPL-2.0-only
// The keys of `kind: training`.
#pragma once

#include "schedule/program/workload.hpp"
#include "support/documents/spec.hpp"
#include "workloads/training/training_workload.hpp"

namespace weft {

/// Reads and finishes the map (docs/reference/training.md). Throws InputError.
TrainingJob read_training_job(const Spec& spec, const WorkloadContext& context);

}  // namespace weft
