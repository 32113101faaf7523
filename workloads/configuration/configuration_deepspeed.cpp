// SPDX-License-Identifier: GPL-2.0-only
// DeepSpeed's JSON and the arguments of the Hugging Face Trainer by themselves: on a server of 8 devices, with the
// model whose config.json is beside them.
#include <filesystem>

#include "schedule/program/configuration.hpp"
#include "workloads/configuration/default_machine.hpp"

namespace weft {
namespace {

constexpr std::int64_t devices = 8;

bool contains(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

/// `key: 'file'`, and the model if it is there; without it the reader of the job prints the remedy.
std::string job_of(const std::string& key, const std::string& path) {
  const std::filesystem::path file(path);
  std::string keys = key + ": '" + file.filename().string() + "'";
  if (std::filesystem::exists(file.parent_path() / "config.json")) keys += "\n  model: 'config.json'";
  return experiment_on_default_machine(devices, keys);
}

class TrainerConfiguration : public ConfigurationReader {
 public:
  bool recognises(const std::string& path, const std::string& text) const override {
    const bool known = path.ends_with(".json") || path.ends_with(".yaml") || path.ends_with(".yml");
    return known && contains(text, "per_device_train_batch_size") && !contains(text, "workload:");
  }
  std::string experiment(const std::string& path) const override { return job_of("trainer", path); }
};

class DeepSpeedConfiguration : public ConfigurationReader {
 public:
  bool recognises(const std::string& path, const std::string& text) const override {
    if (!path.ends_with(".json") || contains(text, "per_device_train_batch_size") || contains(text, "\"model_type\""))
      return false;
    return contains(text, "\"zero_optimization\"") || contains(text, "\"train_batch_size\"") ||
           contains(text, "\"train_micro_batch_size_per_gpu\"");
  }
  std::string experiment(const std::string& path) const override { return job_of("deepspeed", path); }
};

const Registration<ConfigurationReader, TrainerConfiguration> trainer("trainer",
                                                                      "arguments of the Hugging Face Trainer");
const Registration<ConfigurationReader, DeepSpeedConfiguration> deepspeed("deepspeed", "DeepSpeed's JSON");

}  // namespace
}  // namespace weft
