// SPDX-License-Identifier: GPL-2.0-only
// What a job's steps, checkpoints and their reading take, for the clock of its failures.
#pragma once

#include "schedule/program/workload.hpp"
#include "workloads/storage/training_storage.hpp"

namespace weft {

/// Times a step, and with `checkpoint` writing one and reading it, in short runs of the same job on the ideal network,
/// and puts failures on the whole clock with them. A step is what a second step adds to one; writing what one
/// checkpoint adds; reading what a failure in the middle of the second step takes beyond the half step that is lost.
/// Throws InputError.
void time_failures(const WorkloadContext& context, TrainingEvents& events);

}  // namespace weft
