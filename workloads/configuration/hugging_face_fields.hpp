// SPDX-License-Identifier: GPL-2.0-only
// Fields of a config.json that do not concern shapes.
#pragma once

#include <string>
#include <vector>

#include "workloads/parallel/training_description.hpp"
#include "workloads/reading/json_config.hpp"

namespace weft {

/// Fields that no model family has read, and that are not known to say nothing about shapes (names, token numbers,
/// norms' epsilons, dropout, generation). To be called after read_model.
std::vector<std::string> unknown_fields(const JsonConfig& config);

/// Reads a config.json into `description.model`, and adds what it does not know to `ignored`.
void read_hugging_face_model(const std::string& path, TrainingDescription& description);

}  // namespace weft
