// SPDX-License-Identifier: GPL-2.0-only
// Gradient buckets as PyTorch's DistributedDataParallel forms them.
#include "workloads/gradient_buckets.hpp"

namespace weft {
namespace {

/// Fills buckets tensor by tensor.
class Bucketing {
 public:
  Bucketing(std::int64_t gradient_bytes, const BucketLimits& limits)
      : gradient_bytes_(gradient_bytes), limits_(limits) {}

  /// All tensors of a part, last first.
  void add(const std::vector<Tensor>& tensors, std::uint32_t part) {
    for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
      if (!open_) buckets_.emplace_back();
      GradientBucket& bucket = buckets_.back();
      bucket.size += Bytes(tensor->elements * gradient_bytes_);
      ++bucket.tensors;
      bucket.ready_after = part;
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

std::vector<GradientBucket> gradient_buckets(const ModelConfig& model, std::int64_t gradient_bytes,
                                             const BucketLimits& limits) {
  Bucketing bucketing(gradient_bytes, limits);
  const auto layers = static_cast<std::uint32_t>(model.layers());
  bucketing.add(model.head, layers + 1);
  for (std::uint32_t layer = layers; layer > 0; --layer) bucketing.add(model.layer_shape(layer - 1).tensors, layer);
  bucketing.add(model.embedding, embedding_part);
  return bucketing.buckets();
}

}  // namespace weft
