// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/parallel/pass_sizes.hpp"

#include <algorithm>

#include "workloads/compute/kernel_time.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {

bool narrow_gradients(const TrainingDescription& d) {
  return element_bytes(d.gradient_precision.empty() ? d.parameter_precision : d.gradient_precision) == 2;
}

std::int64_t share_of(std::int64_t whole, std::int64_t ranks) {
  return std::max<std::int64_t>(1, (whole + ranks - 1) / ranks);
}

Bytes bytes_of(std::int64_t a, std::int64_t b, std::int64_t element) {
  return saturated(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b) *
                   static_cast<unsigned __int128>(element));
}

std::string activation_precision(const TrainingDescription& description) {
  return is_fp8(description.precision) ? "bf16" : description.precision;
}

std::int64_t activation_bytes(const TrainingDescription& description) {
  return element_bytes(activation_precision(description));
}

std::vector<std::string> kept_precision_names() {
  std::vector<std::string> names = precision_names();
  names.emplace_back("e5m6");
  return names;
}

double kept_element_bytes(const std::string& precision) {
  return precision == "e5m6" ? 1.5 : static_cast<double>(element_bytes(precision));
}

std::int64_t tokens_per_rank(const TrainingDescription& description) {
  return description.micro_batch * description.sequence_length / description.parallel.context;
}

std::int64_t routed_tokens(const TrainingDescription& description) {
  const ParallelPlan& plan = description.parallel;
  return plan.sequence ? share_of(tokens_per_rank(description), plan.tensor) : tokens_per_rank(description);
}

std::int64_t servers_of_token(const ParallelPlan& plan, const MlpShape& mlp) {
  const std::int64_t servers = plan.expert / plan.expert_server;
  const std::int64_t max = plan.servers_per_token > 0 ? plan.servers_per_token : servers;
  return std::min({max, servers, mlp.experts_per_token});
}

Bytes boundary_bytes(const TrainingDescription& description, std::int64_t stage) {
  const ParallelPlan& plan = description.parallel;
  std::int64_t streams = description.model.encoder_blocks > 0 ? 2 : 1;  // the encoder's output goes along
  if (stage >= plan.prediction_stage) streams += description.model.prediction_blocks;
  const std::int64_t tokens =
      plan.scatter_gather ? share_of(tokens_per_rank(description), plan.tensor) : routed_tokens(description);
  return bytes_of(tokens, description.model.hidden * streams, activation_bytes(description));
}

}  // namespace weft
