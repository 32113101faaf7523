// SPDX-License-Identifier: GPL-2.0-only
// The operations of one rank that trains: its stage's plan, step after step, and the operations between steps.
#pragma once

#include <memory>

#include "schedule/program/program.hpp"

namespace weft {

class TrainingWorkload;

/// The workload must live longer.
std::unique_ptr<RankProgram> training_program(const TrainingWorkload& workload, Rank rank);

}  // namespace weft
