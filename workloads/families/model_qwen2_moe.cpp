// SPDX-License-Identifier: GPL-2.0-only
// Model family `qwen2_moe`: Yang et al. 2024, "Qwen2 technical report", arXiv:2407.10671, 2.2.2.
#include "workloads/families/qwen_mixture.hpp"

namespace weft {
namespace {

/// Qwen2 with experts, and a shared expert behind a gate.
class Qwen2Moe : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    BlockOptions options;
    options.query_bias = config.boolean_or("qkv_bias", true);
    return read_qwen_mixture(config, options, true);
  }
};

const Registration<ModelFamily, Qwen2Moe> model_qwen2_moe_registration("qwen2_moe",
                                                                       "Qwen2 with experts and a shared expert");

}  // namespace
}  // namespace weft
