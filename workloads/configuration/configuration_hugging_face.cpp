// SPDX-License-Identifier: GPL-2.0-only
// A config.json of the Hugging Face hub alone: one data-parallel copy of the model on each device of a server.
#include <filesystem>

#include "schedule/program/configuration.hpp"
#include "workloads/configuration/default_machine.hpp"

namespace weft {
namespace {

class HuggingFaceConfiguration : public ConfigurationReader {
 public:
  bool recognises(const std::string& path, const std::string& text) const override {
    return path.ends_with(".json") && text.find("\"model_type\"") != std::string::npos;
  }
  std::string experiment(const std::string& path) const override {
    constexpr std::int64_t devices = 8;
    return experiment_on_default_machine(devices, "model: '" + std::filesystem::path(path).filename().string() + "'");
  }
};

const Registration<ConfigurationReader, HuggingFaceConfiguration> configuration_hugging_face_registration(
    "hugging_face", "config.json of a model");

}  // namespace
}  // namespace weft
