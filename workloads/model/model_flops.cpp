// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/model/model_flops.hpp"

#include <algorithm>

#include "workloads/model/real.hpp"

namespace weft {
namespace {

/// Multiplications per token of the matrices around attention.
double attention_gemms(const AttentionShape& a, std::int64_t hidden) {
  const double h = real(hidden);
  const double out = real(a.heads * a.value_size) * h;
  if (!a.latent()) return h * real(a.heads * a.head_size + a.kv_heads * (a.head_size + a.value_size)) + out;
  const double query =
      a.query_rank > 0 ? real(a.query_rank) * (h + real(a.heads * a.head_size)) : h * real(a.heads * a.head_size);
  const double keys =
      h * real(a.kv_rank + a.rope_size) + real(a.kv_rank) * real(a.heads * (a.head_size - a.rope_size + a.value_size));
  return query + keys + out;
}

double mlp_gemms(const MlpShape& mlp, std::int64_t hidden) {
  const double matrices = mlp.gated ? 3 : 2;
  if (!mlp.mixture()) return matrices * real(hidden) * real(mlp.inner);
  return real(hidden) * (real(mlp.experts) +  // the router
                         matrices * real(mlp.experts_per_token * mlp.expert_inner + mlp.shared_inner));
}

}  // namespace

ModelFlops forward_flops(const ModelConfig& model, std::int64_t sequence_length) {
  const double s = real(sequence_length);
  ModelFlops flops;
  for (std::int64_t layer = 0; layer < model.layers() + model.prediction_blocks; ++layer) {
    const BlockShape& block = model.layer_shape(layer);
    for (const SampleGemm& gemm : block.gemms)
      flops.linear += 2 * real(gemm.rows) * real(gemm.columns) * real(gemm.inner);
    if (!block.gemms.empty()) continue;
    const AttentionShape& a = block.attention;
    const double attentions = a.heads == 0 ? 0 : block.cross_attention ? 2 : 1;
    flops.linear += 2 * s * (attentions * attention_gemms(a, model.hidden) + mlp_gemms(block.mlp, model.hidden));
    const double full = 2 * s * s * real(a.heads * (a.head_size + a.value_size));
    double seen = a.causal ? 0.5 : 1;
    if (a.window > 0) seen = std::min(seen, real(a.window) / s);
    flops.scores += attentions * full;
    flops.causal += a.heads == 0 ? 0 : full * seen + (block.cross_attention ? full : 0);
  }
  const double logits = model.vocabulary > 0 ? 2 * s * real(model.vocabulary) * real(model.hidden)
                                             : 2 * real(model.head_classes) * real(model.hidden);
  const double projection = 2 * s * 2 * real(model.hidden) * real(model.hidden);
  flops.linear += logits + real(model.prediction_blocks) * (projection + logits);
  return flops;
}

}  // namespace weft
