// SPDX-License-Identifier: GPL-2.0-only
// GPT models as Megatron-LM builds them from its options.
#include "workloads/configuration/megatron_model.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "workloads/model/latent_attention.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

constexpr std::int64_t widest = std::int64_t{1} << 24;

/// Tokens of tokenizers, with added ones (len() of the tokenizer that transformers loads), by a part of the name.
struct Tokenizer {
  const char* name;
  std::int64_t size;
};
constexpr Tokenizer known_tokenizers[] = {{"deepseek-v3", 128815}, {"llama-3", 128256}, {"llama3", 128256},
                                          {"llama-2", 32000},      {"mixtral", 32000},  {"mistral-7b", 32000},
                                          {"qwen3", 151669},       {"qwen2.5", 151665}, {"gpt2", 50257}};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// --moe-layer-freq as a list: sums and multiples of lists of whole numbers.
class ListExpression {
 public:
  explicit ListExpression(std::string_view text) : text_(text) {}
  std::optional<std::vector<std::int64_t>> value() {
    auto list = sum(0);
    skip();
    if (failed_ || at_ != text_.size()) return std::nullopt;
    return list;
  }

 private:
  using List = std::vector<std::int64_t>;
  static constexpr std::size_t longest = 65536;

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(char wanted) {
    skip();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  List fail() {
    failed_ = true;
    at_ = text_.size();
    return {};
  }
  std::int64_t number() {
    skip();
    const std::size_t start = at_;
    std::int64_t value = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 && value < widest)
      value = 10 * value + (text_[at_++] - '0');
    if (at_ == start) fail();
    return value;
  }
  List sum(int depth) {
    List list = product(depth);
    while (take('+')) {
      const List more = product(depth);
      list.insert(list.end(), more.begin(), more.end());
      if (list.size() > longest) return fail();
    }
    return list;
  }
  List product(int depth) {
    List list = factor(depth);
    while (take('*')) {
      const std::int64_t times = number();
      if (failed_ || list.size() * static_cast<std::size_t>(times) > longest) return fail();
      List repeated;
      for (std::int64_t i = 0; i < times; ++i) repeated.insert(repeated.end(), list.begin(), list.end());
      list = std::move(repeated);
    }
    return list;
  }
  List factor(int depth) {
    constexpr int deepest = 32;
    if (depth > deepest) return fail();
    if (take('(')) {
      List inner = sum(depth + 1);
      return take(')') ? inner : fail();
    }
    if (!take('[')) return fail();
    List list;
    do list.push_back(number());
    while (!failed_ && list.size() < longest && take(','));
    return take(']') ? list : fail();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

class MegatronModelBuilder {
 public:
  MegatronModelBuilder(const MegatronOptions& options, std::int64_t tensor) : o_(options), tensor_(tensor) {
    hidden_ = o_.count("hidden-size");
    layers_ = o_.whole("num-layers", 1, 65536);
    gated_ = o_.flag("swiglu");
    biases_ = !o_.flag("disable-bias-linear");
    shift_ = o_.text_or("normalization", "LayerNorm") != "RMSNorm";
    head_norms_ = o_.flag("qk-layernorm");
    // arguments.py: 4h, or for gated MLPs two thirds of it, a multiple of 64.
    inner_ = o_.count_or("ffn-hidden-size", gated_ ? 4 * hidden_ * 2 / 3 / 64 * 64 : 4 * hidden_);
    require_width("ffn-hidden-size", 1, inner_);
    if (inner_ < 1) throw o_.error("hidden-size", fmt::format("{} is too narrow for a gated MLP", hidden_));
  }

  ModelConfig build() {
    ModelConfig model;
    model.family = "gpt";
    model.hidden = hidden_;
    model.vocabulary = padded_vocabulary();
    model.tied = !o_.flag("untie-embeddings-and-output-weights");
    model.learned_positions = learned_positions();
    model.dropout = !o_.has("hidden-dropout") || o_.number("hidden-dropout") > 0;  // arguments.py: 0.1
    model.positions = o_.count_or("max-position-embeddings", o_.count_or("seq-length", 0));
    add_columns(model.embedding, "embedding.word_embeddings", model.vocabulary, hidden_, false);
    if (model.learned_positions)
      add_whole(model.embedding, "embedding.position_embeddings", model.positions, hidden_, false);
    add_blocks(model);
    add_norm(model.head, "decoder.final_layernorm", hidden_, shift_);
    if (!model.tied) add_columns(model.head, "output_layer", hidden_, model.vocabulary, false);
    if (o_.has("mtp-num-layers")) model.predict(o_.whole("mtp-num-layers", 0, 65536));
    require_plausible(model, o_.where("num-layers"));
    return model;
  }

 private:
  void require_width(const std::string& option, std::int64_t factor, std::int64_t size) const {
    if (factor * size > widest)
      throw o_.error(option, fmt::format("{} times {} is wider than {}", factor, size, grouped(widest)));
  }

  bool learned_positions() const {
    if (o_.flag("use-rotary-position-embeddings") || o_.flag("no-position-embedding")) return false;
    return o_.text_or("position-embedding-type", "learned_absolute") == "learned_absolute";
  }

  std::int64_t padded_vocabulary() const {
    const std::int64_t unit = o_.count_or("make-vocab-size-divisible-by", 128) * tensor_;
    const std::int64_t size = vocabulary();
    const std::int64_t padded = (size + unit - 1) / unit * unit;
    if (padded > widest)
      throw o_.error("make-vocab-size-divisible-by",
                     fmt::format("a vocabulary of {} is padded to {}; at most {} tokens "
                                 "are possible",
                                 size, grouped(padded), grouped(widest)));
    return padded;
  }

  /// pretrain_gpt.py uses GPT2BPETokenizer unless another is named.
  std::int64_t vocabulary() const {
    const std::string type = o_.text_or("tokenizer-type", "GPT2BPETokenizer");
    const bool is_null = type == "NullTokenizer";  // has one more token, the end of a document
    if (o_.has("vocab-size")) return o_.count("vocab-size") + (is_null ? 1 : 0);
    if (type == "GPT2BPETokenizer") return 50257;
    if (type == "Llama2Tokenizer") return 32000;
    for (const char* option : {"tokenizer-model", "tokenizer-name-or-path"})
      for (const std::string& name : o_.texts(option))
        for (const Tokenizer& known : known_tokenizers)
          if (lower(name).find(known.name) != std::string::npos) return known.size;
    throw o_.error("vocab-size", fmt::format("this option is missing, and how many tokens {} has is not known; add "
                                             "--vocab-size",
                                             type));
  }

  AttentionShape attention() const {
    AttentionShape shape;
    shape.heads = shape.kv_heads = o_.count("num-attention-heads");
    if (o_.flag("multi-latent-attention")) {
      latent(shape);
      return shape;
    }
    if (o_.flag("group-query-attention")) shape.kv_heads = o_.count_or("num-query-groups", 1);
    if (shape.heads % shape.kv_heads != 0)
      throw o_.error("num-query-groups",
                     fmt::format("{} groups do not divide {} attention heads", shape.kv_heads, shape.heads));
    if (!o_.has("kv-channels") && hidden_ % shape.heads != 0)
      throw o_.error(
          "num-attention-heads",
          fmt::format("{} heads do not divide --hidden-size {}, and --kv-channels is absent", shape.heads, hidden_));
    shape.head_size = shape.value_size = o_.count_or("kv-channels", hidden_ / shape.heads);
    require_width("kv-channels", shape.heads, shape.head_size);
    return shape;
  }
  /// Defaults of arguments.py.
  void latent(AttentionShape& shape) const {
    shape.query_rank = o_.count_or("q-lora-rank", 0);
    shape.kv_rank = o_.count_or("kv-lora-rank", 32);
    shape.rope_size = o_.count_or("qk-pos-emb-head-dim", 64);
    shape.head_size = o_.count_or("qk-head-dim", 128) + shape.rope_size;
    shape.value_size = o_.count_or("v-head-dim", 128);
    static_cast<void>(o_.has("kv-channels"));  // latent attention has separate sizes
    require_width("qk-head-dim", shape.heads, shape.head_size);
    require_width("v-head-dim", shape.heads, shape.value_size);
  }

  void add_blocks(ModelConfig& model) const {
    const std::vector<bool> sparse =
        o_.has("num-experts") ? expert_blocks(o_, layers_) : std::vector<bool>(static_cast<std::size_t>(layers_));
    std::uint32_t kinds[2] = {};
    for (const bool experts : {false, true}) {
      if (std::find(sparse.begin(), sparse.end(), experts) == sparse.end()) continue;
      kinds[experts ? 1 : 0] = static_cast<std::uint32_t>(model.shapes.size());
      model.shapes.push_back(block(experts));
    }
    for (const bool experts : sparse) model.blocks.push_back(kinds[experts ? 1 : 0]);
  }

  BlockShape block(bool experts) const {
    BlockShape block;
    block.name = experts ? "expert block" : "block";
    block.attention = attention();
    block.mlp.gated = gated_;
    std::vector<Tensor>& tensors = block.tensors;
    add_norm(tensors, "input_layernorm", hidden_, shift_);
    if (block.attention.latent())
      add_latent_attention(tensors, hidden_, block.attention, false, head_norms_);
    else
      add_attention(tensors, block.attention);
    add_norm(tensors, "pre_mlp_layernorm", hidden_, shift_);
    if (experts) {
      add_mixture(block);
    } else {
      block.mlp.inner = inner_;
      add_columns(tensors, "mlp.linear_fc1", hidden_, rows() * inner_, biases_);
      add_rows(tensors, "mlp.linear_fc2", inner_, hidden_, biases_);
    }
    return block;
  }
  std::int64_t rows() const { return gated_ ? 2 : 1; }

  void add_attention(std::vector<Tensor>& tensors, const AttentionShape& shape) const {
    const std::int64_t groups = shape.heads + 2 * shape.kv_heads;
    add_columns(tensors, "self_attention.linear_qkv", hidden_, groups * shape.head_size,
                biases_ || o_.flag("add-qkv-bias"));
    if (head_norms_) {
      add_norm(tensors, "self_attention.q_layernorm", shape.head_size, shift_);
      add_norm(tensors, "self_attention.k_layernorm", shape.head_size, shift_);
    }
    add_rows(tensors, "self_attention.linear_proj", shape.heads * shape.head_size, hidden_, biases_);
  }

  void add_mixture(BlockShape& block) const {
    MlpShape& mlp = block.mlp;
    mlp.experts = o_.count("num-experts");
    mlp.experts_per_token = o_.count_or("moe-router-topk", 2);
    if (mlp.experts_per_token > mlp.experts)
      throw o_.error("moe-router-topk", fmt::format("{} experts per token, but --num-experts is {}; use up to {}",
                                                    mlp.experts_per_token, mlp.experts, mlp.experts));
    mlp.expert_inner = o_.count_or("moe-ffn-hidden-size", inner_);
    require_width("num-experts", mlp.experts, mlp.expert_inner);
    add_whole(block.tensors, "mlp.router", hidden_, mlp.experts, false);
    add_experts(block.tensors, "mlp.experts.linear_fc1", mlp.experts, hidden_, rows() * mlp.expert_inner);
    add_experts(block.tensors, "mlp.experts.linear_fc2", mlp.experts, mlp.expert_inner, hidden_);
    if (biases_)
      block.tensors.push_back({"mlp.experts.bias", mlp.experts * (rows() * mlp.expert_inner + hidden_), Split::expert});
    if (!o_.has("moe-shared-expert-intermediate-size")) return;
    mlp.shared_inner = o_.count("moe-shared-expert-intermediate-size");
    add_columns(block.tensors, "mlp.shared_experts.linear_fc1", hidden_, rows() * mlp.shared_inner, false);
    add_rows(block.tensors, "mlp.shared_experts.linear_fc2", mlp.shared_inner, hidden_, false);
    if (o_.flag("moe-shared-expert-gate")) add_whole(block.tensors, "mlp.shared_experts.gate", hidden_, 1, false);
  }

  const MegatronOptions& o_;
  std::int64_t tensor_;
  std::int64_t hidden_ = 0, layers_ = 0, inner_ = 0;
  bool gated_ = false, biases_ = true, shift_ = true, head_norms_ = false;
};

}  // namespace

std::vector<bool> expert_blocks(const MegatronOptions& options, std::int64_t layers) {
  const std::string text = options.text_or("moe-layer-freq", "1");
  std::vector<bool> blocks;
  if (text.find('[') == std::string::npos) {
    const std::int64_t step = options.has("moe-layer-freq") ? options.count("moe-layer-freq") : 1;
    for (std::int64_t layer = 0; layer < layers; ++layer) blocks.push_back(layer % step == 0);
    return blocks;
  }
  const auto list = ListExpression(text).value();
  if (!list)
    throw options.error("moe-layer-freq",
                        fmt::format("expected a number, or lists such as ([0]*3+[1]*58); found '{}'", text));
  if (static_cast<std::int64_t>(list->size()) != layers)
    throw options.error("moe-layer-freq",
                        fmt::format("{} entries, but --num-layers is {}; expected {}", list->size(), layers, layers));
  for (const std::int64_t value : *list) blocks.push_back(value != 0);
  return blocks;
}

ModelConfig read_megatron_model(const MegatronOptions& options, std::int64_t tensor) {
  return MegatronModelBuilder(options, tensor).build();
}

}  // namespace weft
