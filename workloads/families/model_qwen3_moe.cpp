// SPDX-License-Identifier: GPL-2.0-only
// Model family `qwen3_moe`: Yang et al. 2025, "Qwen3 technical report", arXiv:2505.09388.
#include "workloads/families/qwen_mixture.hpp"

namespace weft {
namespace {

/// Qwen3 with experts and without a shared one.
class Qwen3Moe : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    BlockOptions options;
    options.query_bias = options.output_bias = config.boolean_or("attention_bias", false);
    options.head_norms = true;
    return read_qwen_mixture(config, options, false);
  }
};

const Registration<ModelFamily, Qwen3Moe> model_qwen3_moe_registration("qwen3_moe", "Qwen3 with experts");

}  // namespace
}  // namespace weft
