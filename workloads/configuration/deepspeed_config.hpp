// SPDX-License-Identifier: GPL-2.0-only
// DeepSpeed's JSON configuration (deepspeed.ai/docs/config-json; deepspeed/runtime/config.py and zero/config.py).
#pragma once

#include <string>

#include "workloads/parallel/training_description.hpp"
#include "workloads/reading/json_config.hpp"

namespace weft {

/// Applies the settings of the file to a description: batches, precision, ZeRO stage, buckets, offload, tensor and
/// sequence parallelism. "auto" stands for the value that the description already has (`where` has the field), as the
/// Hugging Face Trainer fills it in, or for what follows from the other batch sizes; otherwise it is refused with the
/// reason. Keys that have no effect here are added to `ignored`. Throws InputError with file and line.
void apply_deepspeed(const JsonConfig& config, TrainingDescription& description);
void read_deepspeed_config(const std::string& path, TrainingDescription& description);

}  // namespace weft
