// SPDX-License-Identifier: GPL-2.0-only
// Megatron-LM's arguments by themselves: the fewest ranks that their plan of parallelism takes, unless they give a
// number.
#include <algorithm>
#include <filesystem>

#include "schedule/program/configuration.hpp"
#include "workloads/configuration/default_machine.hpp"
#include "workloads/configuration/megatron_arguments.hpp"

namespace weft {
namespace {

class MegatronConfiguration : public ConfigurationReader {
 public:
  bool recognises(const std::string& path, const std::string& text) const override {
    if (path.ends_with(".sh")) return true;
    const bool yaml = path.ends_with(".yaml") || path.ends_with(".yml");
    return yaml && text.find("--num-layers") != std::string::npos;
  }
  std::string experiment(const std::string& path) const override {
    TrainingDescription description;
    read_megatron_arguments(path, description);
    const ParallelPlan& plan = description.parallel;
    const std::int64_t shares = plan.tensor * plan.context;
    const std::int64_t expert_shares = plan.expert * (plan.expert_tensor > 0 ? plan.expert_tensor
                                                      : plan.expert > 1      ? plan.tensor
                                                                             : 1);
    const std::int64_t copies = std::max<std::int64_t>({1, plan.data, (expert_shares + shares - 1) / shares});
    const std::int64_t hosts = description.world > 0 ? description.world : shares * copies * plan.pipeline;
    return experiment_on_default_machine(hosts, "megatron: '" + std::filesystem::path(path).filename().string() + "'");
  }
};

const Registration<ConfigurationReader, MegatronConfiguration> configuration_megatron_registration(
    "megatron", "Megatron-LM's arguments: shell script or YAML");

}  // namespace
}  // namespace weft
