// SPDX-License-Identifier: GPL-2.0-only
// Model family `resnet`: He et al. 2015, arXiv:1512.03385, with the stride in the 3x3 convolutions as in transformers
// and torchvision.
#include <algorithm>

#include <fmt/format.h>

#include "workloads/model/model_config.hpp"

namespace weft {
namespace {

/// Adds convolutions, each with a batch norm, to a block.
class Convolutions {
 public:
  explicit Convolutions(BlockShape& block) : block_(block) {}
  /// kernel x kernel from `in` to `out` channels, whose result is `side` x `side`.
  void add(const std::string& name, std::int64_t kernel, std::int64_t in, std::int64_t out, std::int64_t side) {
    block_.gemms.push_back({side * side, out, kernel * kernel * in});
    block_.tensors.push_back({name + ".convolution.weight", kernel * kernel * in * out});
    block_.tensors.push_back({name + ".normalization.weight", out});
    block_.tensors.push_back({name + ".normalization.bias", out});
  }

 private:
  BlockShape& block_;
};

/// The first convolution is a separate block: an image is no table row.
class ResNet : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    const std::vector<std::int64_t> widths = list_or(config, "hidden_sizes", {256, 512, 1024, 2048});
    const std::vector<std::int64_t> depths = list_or(config, "depths", {3, 4, 6, 3});
    if (widths.size() != depths.size())
      throw config.error("depths", fmt::format("{} stages, but hidden_sizes has {}", depths.size(), widths.size()));
    ModelConfig model;
    std::int64_t side = halved(image_size(config));
    std::int64_t channels = bounded(config, "embedding_size", 64);
    BlockShape stem;
    stem.name = "stem";
    Convolutions(stem).add("embedder", 7, bounded(config, "num_channels", 3), channels, side);
    model.repeat(std::move(stem), 1);
    side = halved(side);  // the pooling behind it
    for (std::size_t stage = 0; stage < widths.size(); ++stage) {
      const bool halves = stage > 0 || config.boolean_or("downsample_in_first_stage", false);
      add_stage(config, model, stage, {channels, widths[stage], side, halves ? halved(side) : side}, depths[stage]);
      if (halves) side = halved(side);
      channels = widths[stage];
    }
    model.hidden = channels;
    model.head_classes = config.entries("id2label") > 0 ? static_cast<std::int64_t>(config.entries("id2label"))
                                                        : bounded(config, "num_labels", 2);
    model.head = {{"classifier.weight", channels * model.head_classes}, {"classifier.bias", model.head_classes}};
    return model;
  }

 private:
  static constexpr std::int64_t widest = 65536;  // so that a 7x7 convolution stays within 64 bits, and so do its FLOPs

  struct Stage {
    std::int64_t in, out;   ///< channels
    std::int64_t from, to;  ///< sides of images
  };

  /// Side of the output of a convolution or pooling of stride 2, padded by half its kernel.
  static std::int64_t halved(std::int64_t side) { return (side - 1) / 2 + 1; }
  static std::int64_t image_size(const JsonConfig& config) {
    return config.has("image_size") ? config.whole("image_size", 1, 16384) : 224;
  }
  static std::int64_t bounded(const JsonConfig& config, const std::string& key, std::int64_t otherwise) {
    return config.has(key) ? config.whole(key, 1, widest) : otherwise;
  }
  static std::vector<std::int64_t> list_or(const JsonConfig& config, const std::string& key,
                                           std::vector<std::int64_t> otherwise) {
    if (!config.has(key)) return otherwise;
    std::vector<std::int64_t> values = config.counts(key);
    constexpr std::size_t max_stages = 64;
    if (values.empty() || values.size() > max_stages)
      throw config.error(key, fmt::format("{} stages; expected 1 to {}", values.size(), max_stages));
    for (const std::int64_t value : values)
      if (value < 1 || value > widest)
        throw config.error(key, fmt::format("expected whole numbers from 1 to {}, found {}", widest, value));
    return values;
  }

  static void add_stage(const JsonConfig& config, ModelConfig& model, std::size_t number, const Stage& stage,
                        std::int64_t depth) {
    BlockShape first = block(config, stage);
    first.name = fmt::format("stage {} first", number);
    model.repeat(std::move(first), 1);
    if (depth == 1) return;
    BlockShape further = block(config, {stage.out, stage.out, stage.to, stage.to});
    further.name = fmt::format("stage {}", number);
    model.repeat(std::move(further), depth - 1);
  }

  static BlockShape block(const JsonConfig& config, const Stage& stage) {
    BlockShape block;
    Convolutions convolutions(block);
    const std::string type = config.text_or("layer_type", "bottleneck");
    if (stage.in != stage.out || stage.from != stage.to) convolutions.add("shortcut", 1, stage.in, stage.out, stage.to);
    if (type == "basic") {
      convolutions.add("layer.0", 3, stage.in, stage.out, stage.to);
      convolutions.add("layer.1", 3, stage.out, stage.out, stage.to);
    } else if (type == "bottleneck") {
      const std::int64_t narrow = std::max<std::int64_t>(1, stage.out / 4);
      const bool early = config.boolean_or("downsample_in_bottleneck", false);
      convolutions.add("layer.0", 1, stage.in, narrow, early ? stage.to : stage.from);
      convolutions.add("layer.1", 3, narrow, narrow, stage.to);
      convolutions.add("layer.2", 1, narrow, stage.out, stage.to);
    } else {
      throw config.error("layer_type", fmt::format("unknown type '{}'; use bottleneck or basic", type));
    }
    return block;
  }
};

const Registration<ModelFamily, ResNet> model_resnet_registration(
    "resnet", "ResNet: convolutions with batch norms, a classifier");

}  // namespace
}  // namespace weft
