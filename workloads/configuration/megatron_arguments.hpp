// SPDX-License-Identifier: GPL-2.0-only
// Training jobs as Megatron-LM's options describe them (megatron/training/arguments.py).
#pragma once

#include <string>

#include "workloads/configuration/megatron_options.hpp"
#include "workloads/parallel/training_description.hpp"

namespace weft {

/// Applies options to a description; a model is built if they have --num-layers. Options that have no effect here, and
/// parts of the file that were not read, are added to `ignored`. Throws InputError with file and line.
void apply_megatron_options(const MegatronSource& source, TrainingDescription& description);

/// Reads a shell script, or YAML (.yaml, .yml), whose unset variables are those of the environment.
void read_megatron_arguments(const std::string& path, TrainingDescription& description);

/// Blocks of each stage by --pipeline-model-parallel-layout, such as "Et*3|(tt|)*29m|L": stages parted by bars, `t` a
/// block, `*` a repetition. Throws InputError.
struct MegatronLayout {
  std::vector<std::int64_t> stage_layers;  ///< blocks of each stage
  std::int64_t prediction_stage = -1;      ///< with layers of multi-token prediction; -1: none is named
};
MegatronLayout pipeline_layout(const MegatronOptions& options);

}  // namespace weft
