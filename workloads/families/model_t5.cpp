// SPDX-License-Identifier: GPL-2.0-only
// Model family `t5`: Raffel et al. 2019, arXiv:1910.10683.
#include "workloads/families/encoder_decoder.hpp"

namespace weft {
namespace {

/// Version 1.0 has ReLU, 1.1 gated GELU (feed_forward_proj "gated-gelu") and separate logits.
class T5 : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    EncoderDecoderMlp mlp;
    mlp.dense.inner = config.count("d_ff");
    mlp.dense.gated = config.text_or("feed_forward_proj", "relu").starts_with("gated-");
    return read_encoder_decoder(config, mlp);
  }
};

const Registration<ModelFamily, T5> model_t5_registration("t5", "T5: encoder and decoder with relative positions");

}  // namespace
}  // namespace weft
