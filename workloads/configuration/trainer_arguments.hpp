// SPDX-License-Identifier: GPL-2.0-only
// Arguments of the Hugging Face Trainer (transformers/training_args.py) in JSON or YAML.
#pragma once

#include <string>

#include "support/documents/spec.hpp"
#include "workloads/parallel/training_description.hpp"

namespace weft {

/// Applies the arguments to a description: batches, precision, recomputation, FSDP, and the DeepSpeed file that
/// `deepspeed` names, relative to `directory`. Arguments that have no effect here are added to `ignored`. Throws
/// InputError with file and line.
void apply_trainer_arguments(const Spec& spec, const std::string& directory, TrainingDescription& description);
void read_trainer_arguments(const std::string& path, TrainingDescription& description);

}  // namespace weft
