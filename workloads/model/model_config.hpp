// SPDX-License-Identifier: GPL-2.0-only
// The shape of a model: dimensions and parameter tensors, from a config.json as published on the Hugging Face hub.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/basics/registry.hpp"
#include "workloads/reading/json_config.hpp"

namespace weft {

/// The part of a tensor that each of the ranks that share a block holds.
enum class Split : std::uint8_t {
  none,    ///< whole on each
  tensor,  ///< shared out over the tensor-parallel ranks
  expert,  ///< of all experts together: shared out over expert-parallel ranks, and within an expert over tensor ranks
};

/// One parameter tensor.
struct Tensor {
  std::string name;
  std::int64_t elements = 0;
  Split split = Split::none;
};

/// Attention. Symbols of the formulas in brackets.
struct AttentionShape {
  std::int64_t heads = 0;       ///< query heads [a]; 0: the block has no attention
  std::int64_t kv_heads = 0;    ///< key and value heads [k]
  std::int64_t head_size = 0;   ///< of queries and keys [d], the rotary part included
  std::int64_t value_size = 0;  ///< of values; usually head_size
  /// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, 2.1): ranks of the compressed queries (0: not
  /// compressed) and of the compressed keys and values (0: standard attention), and the shared rotary key.
  std::int64_t query_rank = 0;
  std::int64_t kv_rank = 0;
  std::int64_t rope_size = 0;
  bool causal = true;
  std::int64_t window = 0;  ///< a token sees so many before it; 0: all
  bool latent() const { return kv_rank > 0; }
};

/// The feed-forward part: dense, or a mixture of experts beside experts that every token passes.
struct MlpShape {
  bool gated = false;                  ///< a gate matrix beside the up projection (SwiGLU)
  std::int64_t inner = 0;              ///< inner width of the dense MLP [f]; 0 with experts
  std::int64_t experts = 0;            ///< routed experts [E]
  std::int64_t experts_per_token = 0;  ///< [K]
  std::int64_t expert_inner = 0;       ///< inner width of one routed expert
  std::int64_t shared_inner = 0;       ///< inner width of all shared experts together
  bool mixture() const { return experts > 0; }
};

/// A GEMM of fixed size per sample (a convolution as one): `rows` x `inner` times `inner` x `columns`.
struct SampleGemm {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
};

/// A block that occurs once or more.
struct BlockShape {
  std::string name = "block";
  AttentionShape attention;
  bool cross_attention = false;  ///< a second attention of the same shape over the encoder's output
  MlpShape mlp;
  std::vector<SampleGemm> gemms;  ///< of blocks without attention and MLP
  std::vector<Tensor> tensors;    ///< in the order in which the framework registers them, which is the forward order
};

/// Embedding, blocks, head.
struct ModelConfig {
  std::string family;
  std::int64_t hidden = 0;        ///< [h]
  std::int64_t vocabulary = 0;    ///< [V]; 0: no logits (a classifier's head is in `head_classes`)
  std::int64_t positions = 0;     ///< longest sequence; 0: any
  std::int64_t head_classes = 0;  ///< outputs per sample of a classifier
  bool tied = false;              ///< the logits use the matrix of the token embedding
  bool learned_positions = false;
  bool dropout = true;                ///< of the results of attention and MLP
  std::vector<BlockShape> shapes;     ///< the kinds of blocks
  std::vector<std::uint32_t> blocks;  ///< kind of each block, in forward order [L]
  std::int64_t encoder_blocks = 0;    ///< the first so many are an encoder, whose output all others see
  std::vector<Tensor> embedding, head;
  /// Layers of multi-token prediction (DeepSeek-V3, arXiv:2412.19437, 2.2) that the file has; and those that are
  /// trained, each behind the last block: a projection of hidden vectors and embeddings, a block like the last one, and
  /// the head once more.
  std::int64_t published_prediction_blocks = 0, prediction_blocks = 0;
  std::vector<Tensor> prediction_input, prediction_head;  ///< of each of these layers, beside those of its block

  std::int64_t layers() const { return static_cast<std::int64_t>(blocks.size()); }
  /// Layers of multi-token prediction are those from layers() on.
  std::uint32_t shape_of(std::int64_t layer) const {
    return layer < layers() ? blocks[static_cast<std::size_t>(layer)] : blocks.back();
  }
  const BlockShape& layer_shape(std::int64_t layer) const { return shapes[shape_of(layer)]; }
  /// Trains so many layers of multi-token prediction.
  void predict(std::int64_t layers);
  /// All parameters, and those that one token passes (of routed experts, experts_per_token).
  std::int64_t parameters() const;
  std::int64_t active_parameters() const;
  /// `layers` times the one kind of block.
  void repeat(BlockShape shape, std::int64_t layers);
};

/// Parameters of all tensors of a part.
std::int64_t elements_of(const std::vector<Tensor>& tensors);

/// Throws InputError at `where` for a model whose number of parameters leaves 48 bits: sums over tensors, bytes of
/// gradients and of optimizer state stay within 64 bits.
void require_plausible(const ModelConfig& model, const SourceLine& where);

/// Reads the fields of one `model_type`. Registered under that name: a further family is one new file.
class ModelFamily {
 public:
  virtual ~ModelFamily() = default;
  virtual ModelConfig read(const JsonConfig& config) const = 0;
};
using ModelFamilyRegistry = Registry<ModelFamily>;

/// Reads a config.json by its `model_type`. Throws InputError with file and line; an unknown type is answered with the
/// list of known ones, as is a model whose number of parameters leaves 48 bits.
ModelConfig read_model(const JsonConfig& config);

}  // namespace weft
