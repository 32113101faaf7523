// SPDX-License-Identifier: GPL-2.0-only
// Buckets of gradients as a framework forms them, if a job says nothing else.
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::framework_buckets_test {
namespace {

/// Elements of the buckets of a rank, of 2 bytes each.
std::vector<std::int64_t> buckets_of(const std::string& job, std::uint32_t hosts, std::uint32_t rank = 0) {
  const auto workload = read_workload("{kind: training, device: h100-sxm, " + job + "}", context_of(hosts));
  std::vector<std::int64_t> buckets;
  for (const Operation& operation : operations_of(*workload, rank))
    if (operation.label.text().find("grad bucket") != std::string::npos)
      buckets.push_back(operation.call->size.count() / 2);
  return buckets;
}

const std::string gpt2 = "model: gpt2, sequence_length: 64, gradient_precision: bf16";

// 124 million parameters of which the largest tensor, the embedding, has 50,257 x 768. Megatron-Core closes a bucket
// with the tensor with which it has 40 million elements, or a million for each data-parallel rank if that is more
// (megatron/core/distributed/distributed_data_parallel.py).
TEST(FrameworkBuckets, OfMegatronCoreHaveFortyMillionElements) {
  constexpr std::int64_t embedding = 50'257 * 768;
  for (const std::uint32_t ranks : {2U, 50U}) {
    const std::int64_t least = std::max<std::int64_t>(40'000'000, 1'000'000 * ranks);
    const auto buckets = buckets_of(gpt2 + ", framework: megatron_core", ranks);
    ASSERT_GE(buckets.size(), 2U);
    for (std::size_t i = 0; i + 1 < buckets.size(); ++i) {
      EXPECT_GE(buckets[i], least);
      EXPECT_LT(buckets[i], least + embedding);
    }
    EXPECT_NEAR(std::accumulate(buckets.begin(), buckets.end(), 0.0), 124.4e6, 0.1e6);
  }
}

TEST(FrameworkBuckets, AreOneWithoutOverlapAndWhatKeysSay) {
  const std::string core = gpt2 + ", framework: megatron_core";
  EXPECT_EQ(buckets_of(core + ", overlap_gradients: false", 2).size(), 1U);
  EXPECT_EQ(buckets_of(core + ", bucket_size: 1 GiB, first_bucket_size: 1 GiB", 2).size(), 1U);
  // Of PyTorch: 1 MiB, then 25 MiB, closed by the tensor that fills them.
  for (const std::string& torch :
       {gpt2, gpt2 + ", framework: pytorch_eager", core + ", bucket_size: 25 MiB, first_bucket_size: 1 MiB"}) {
    const auto buckets = buckets_of(torch, 2);
    ASSERT_GE(buckets.size(), 5U) << torch;
    EXPECT_LT(buckets[0], 1'000'000 + 4 * 768 * 768) << torch;
    EXPECT_GE(buckets[1], 25 * 1024 * 1024 / 2) << torch;
  }
}

TEST(FrameworkBuckets, AreOneForEachChunkButTheFirst) {
  const std::string stages = gpt2 + ", framework: megatron_core, micro_batches: 2, parallelism: {pipeline: 2}";
  EXPECT_EQ(buckets_of(stages, 4, 0).size(), 2U);  // 39.4 million of the embedding, 42.5 of six blocks
  EXPECT_EQ(buckets_of(stages, 4, 2).size(), 1U);
}

// A configuration file says how gradients are summed; a key beside it counts first.
TEST(FrameworkBuckets, DoNotReplaceThoseOfAConfiguration) {
  const TemporaryFile script("run.sh",
                             "pretrain_gpt.py --num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length "
                             "64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 2 --bf16 "
                             "--grad-reduce-in-bf16 --overlap-grad-reduce --ddp-bucket-size 10000000\n");
  const std::string job = "megatron: " + script.path() + ", framework: megatron_core";
  EXPECT_GE(buckets_of(job, 2).size(), 6U);
  EXPECT_EQ(buckets_of(job + ", bucket_size: 1 GiB, first_bucket_size: 1 GiB", 2).size(), 1U);
}

}  // namespace
}  // namespace weft::test::framework_buckets_test
