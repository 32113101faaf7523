// SPDX-License-Identifier: GPL-2.0-only
// Arithmetic and memory traffic of the parts of a transformer.
#include "workloads/model_cost.hpp"

#include "workloads/reading.hpp"

namespace weft {
namespace {

double product(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d = 1) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c) * static_cast<double>(d);
}

Bytes traffic_of(std::int64_t tokens, std::int64_t elements_per_token, std::int64_t weights, std::int64_t element) {
  const auto per_token = static_cast<unsigned __int128>(tokens) * static_cast<unsigned __int128>(elements_per_token);
  return saturated((per_token + static_cast<unsigned __int128>(weights)) * static_cast<unsigned __int128>(element));
}

}  // namespace

PartCost block_cost(const ModelConfig& model, const BlockShape& block, const MicroBatch& batch, std::int64_t element) {
  const std::int64_t tokens = batch.tokens();
  const std::int64_t h = model.hidden;
  const std::int64_t queries = block.attention.heads * block.attention.head_size;
  const std::int64_t qkv = queries + 2 * block.attention.kv_heads * block.attention.head_size;
  const std::int64_t inner = (block.mlp.gated ? 2 : 1) * block.mlp.inner;  // results of the first products of the MLP
  PartCost cost;
  cost.flops = 2 * product(tokens, h, qkv) + 4 * product(tokens, batch.sequence_length, queries) +
               2 * product(tokens, queries, h) + 2 * product(tokens, h, inner) +
               2 * product(tokens, block.mlp.inner, h);
  const std::int64_t norms = 2 * (h + h);
  const std::int64_t attention = (h + qkv) + (qkv + queries) + (queries + h);
  const std::int64_t mlp = (h + inner) + (inner + block.mlp.inner) + (block.mlp.inner + h);
  const std::int64_t residuals = 2 * (h + h + h);
  cost.traffic = traffic_of(tokens, norms + attention + mlp + residuals, elements_of(block.tensors), element);
  return cost;
}

PartCost embedding_cost(const ModelConfig& model, const MicroBatch& batch, std::int64_t element) {
  const std::int64_t rows = model.learned_positions ? 3 : 2;  // token row, position row, result
  return {0, traffic_of(batch.tokens(), rows * model.hidden, 0, element)};
}

PartCost head_cost(const ModelConfig& model, const MicroBatch& batch, std::int64_t element) {
  const std::int64_t h = model.hidden;
  const std::int64_t per_token = (h + h) + (h + model.vocabulary) + model.vocabulary;
  const std::int64_t weights = model.vocabulary * h;  // tied or not, the product reads them
  return {2 * product(batch.tokens(), h, model.vocabulary), traffic_of(batch.tokens(), per_token, weights, element)};
}

}  // namespace weft
