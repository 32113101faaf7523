// SPDX-License-Identifier: GPL-2.0-only
// Gradient buckets as PyTorch's DistributedDataParallel forms them.
#include "workloads/parallel/gradient_buckets.hpp"

namespace weft {
namespace {

/// Fills buckets tensor by tensor.
class Bucketing {
 public:
  Bucketing(std::int64_t gradient_bytes, const BucketLimits& limits)
      : gradient_bytes_(gradient_bytes), limits_(limits) {}

  /// All tensors of a part, last first.
  void add(const PartTensors& part) {
    for (auto elements = part.elements.rbegin(); elements != part.elements.rend(); ++elements) {
      if (!open_) buckets_.emplace_back();
      GradientBucket& bucket = buckets_.back();
      bucket.size += Bytes(*elements * gradient_bytes_);
      ++bucket.tensors;
      bucket.ready_after = part.part;
      open_ = bucket.size < (buckets_.size() == 1 ? limits_.first : limits_.further);
    }
  }
  const std::vector<GradientBucket>& buckets() const { return buckets_; }

 private:
  std::int64_t gradient_bytes_;
  BucketLimits limits_;
  std::vector<GradientBucket> buckets_;
  bool open_ = false;
};

}  // namespace

std::vector<GradientBucket> gradient_buckets(const std::vector<PartTensors>& parts, std::int64_t gradient_bytes,
                                             const BucketLimits& limits) {
  Bucketing bucketing(gradient_bytes, limits);
  for (const PartTensors& part : parts) bucketing.add(part);
  return bucketing.buckets();
}

std::vector<GradientBucket> gradient_buckets(const ModelConfig& model, std::int64_t gradient_bytes,
                                             const BucketLimits& limits) {
  std::vector<PartTensors> parts;
  const auto add = [&parts](const std::vector<Tensor>& tensors, std::uint32_t part) {
    parts.push_back({part, {}});
    for (const Tensor& tensor : tensors) parts.back().elements.push_back(tensor.elements);
  };
  const auto layers = static_cast<std::uint32_t>(model.layers());
  add(model.head, layers + 1);
  for (std::uint32_t layer = layers; layer > 0; --layer) add(model.layer_shape(layer - 1).tensors, layer);
  add(model.embedding, embedding_part);
  return gradient_buckets(parts, gradient_bytes, limits);
}

}  // namespace weft
