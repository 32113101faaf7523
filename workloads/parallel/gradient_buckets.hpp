// SPDX-License-Identifier: GPL-2.0-only
// Gradient buckets as PyTorch's DistributedDataParallel forms them.
#pragma once

#include <cstdint>
#include <vector>

#include "units/bytes.hpp"
#include "workloads/model/model_config.hpp"

namespace weft {

/// Limits of torch 2: torch/csrc/distributed/c10d/reducer.hpp (kDefaultFirstBucketBytes 1 MiB) and bucket_cap_mb = 25
/// (MiB) of torch/nn/parallel/distributed.py.
struct BucketLimits {
  Bytes first = Bytes::mib(1);
  Bytes further = Bytes::mib(25);
};

/// Parts of a model in forward order: 0 embedding, 1..L blocks, L+1 head.
constexpr std::uint32_t embedding_part = 0;

/// Gradients that are reduced together.
struct GradientBucket {
  Bytes size;
  std::uint32_t tensors = 0;
  std::uint32_t ready_after = 0;  ///< part whose backward pass completes it
};

/// Buckets in the order in which they become ready. Tensors are taken in backward order, the reverse of registration; a
/// bucket is closed by the tensor with which it reaches its limit (compute_bucket_assignment_by_size; Li et al., VLDB
/// 2020, arXiv:2006.15704, 3.2.3), so it may be larger than the limit. These are the buckets from the second iteration
/// on, after the reducer has rebuilt them in the order in which gradients arrive. A tied matrix counts where it is
/// registered: its gradient is complete with the backward pass of the embedding.
std::vector<GradientBucket> gradient_buckets(const ModelConfig& model, std::int64_t gradient_bytes,
                                             const BucketLimits& limits);

/// Elements of the tensors of a part, in the order of registration.
struct PartTensors {
  std::uint32_t part = 0;
  std::vector<std::int64_t> elements;
};
/// The same for any parts, given in backward order.
std::vector<GradientBucket> gradient_buckets(const std::vector<PartTensors>& parts, std::int64_t gradient_bytes,
                                             const BucketLimits& limits);

}  // namespace weft
