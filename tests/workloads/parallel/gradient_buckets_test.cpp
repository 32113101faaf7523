// SPDX-License-Identifier: GPL-2.0-only
// Gradient buckets: sizes, order, and when they are ready.
#include "workloads/parallel/gradient_buckets.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::gradient_buckets_test {
namespace {

ModelConfig ready_made(const std::string& name) {
  return read_model(JsonConfig::load(workloads_folder() + "/models/" + name + ".json"));
}

/// A model of one tensor of 10 elements in each part, and a head of two tensors.
ModelConfig toy(std::int64_t layers) {
  ModelConfig model;
  model.embedding = {{"e", 10}};
  BlockShape block;
  block.tensors = {{"b", 10}};
  model.repeat(std::move(block), layers);
  model.head = {{"h0", 1}, {"h1", 9}};
  return model;
}

TEST(GradientBuckets, AreClosedByTheTensorThatReachesTheLimit) {
  // Backward: h1 9, h0 1, b 10, b 10, b 10, e 10 elements of 2 B. First limit 19 B: h1 h0. Further limit 30 B: b b, b
  // e.
  const auto buckets = gradient_buckets(toy(3), 2, {Bytes(19), Bytes(30)});
  ASSERT_EQ(buckets.size(), 3U);
  EXPECT_EQ(buckets[0].size, Bytes(20));
  EXPECT_EQ(buckets[0].tensors, 2U);
  EXPECT_EQ(buckets[0].ready_after, 4U);  // head
  EXPECT_EQ(buckets[1].size, Bytes(40));
  EXPECT_EQ(buckets[1].ready_after, 2U);  // second of three blocks
  EXPECT_EQ(buckets[2].size, Bytes(40));
  EXPECT_EQ(buckets[2].ready_after, embedding_part);
}

TEST(GradientBuckets, ALimitThatIsMetExactlyCloses) {
  const auto buckets = gradient_buckets(toy(1), 2, {Bytes(18), Bytes(22)});
  ASSERT_EQ(buckets.size(), 3U);
  EXPECT_EQ(buckets[0].size, Bytes(18));
  EXPECT_EQ(buckets[1].size, Bytes(2 + 20));
  EXPECT_EQ(buckets[2].size, Bytes(20));
}

TEST(GradientBuckets, TheLastMayBeSmall) {
  const auto buckets = gradient_buckets(toy(2), 4, {Bytes(1000), Bytes(1000)});
  ASSERT_EQ(buckets.size(), 1U);
  EXPECT_EQ(buckets[0].size, Bytes(4 * 40));
  EXPECT_EQ(buckets[0].ready_after, embedding_part);
}

TEST(GradientBuckets, SumToTheGradientsInBackwardOrder) {
  for (const std::string name : {"gpt2", "llama-3.1-8b"})
    for (const std::int64_t element : {2, 4})
      for (const std::int64_t mib : {1, 25, 500}) {
        const ModelConfig model = ready_made(name);
        const BucketLimits limits{Bytes::mib(1), Bytes::mib(mib)};
        const auto buckets = gradient_buckets(model, element, limits);
        std::int64_t sum = 0;
        std::uint32_t tensors = 0;
        for (std::size_t i = 0; i < buckets.size(); ++i) {
          sum += buckets[i].size.count();
          tensors += buckets[i].tensors;
          if (i + 1 < buckets.size()) {
            EXPECT_GE(buckets[i].size, i == 0 ? limits.first : limits.further);
            EXPECT_GE(buckets[i].ready_after, buckets[i + 1].ready_after);
          }
        }
        EXPECT_EQ(sum, model.parameters() * element);
        EXPECT_EQ(tensors, model.embedding.size() +
                               static_cast<std::size_t>(model.layers()) * model.layer_shape(0).tensors.size() +
                               model.head.size());
        EXPECT_EQ(buckets.back().ready_after, embedding_part);
      }
}

TEST(GradientBuckets, TiedEmbeddingOfGpt2IsReadyLast) {
  // 25 MiB in bf16. The last bucket ends with wte, the tensor that is registered first, and so holds all its 77 MB.
  const ModelConfig model = ready_made("gpt2");
  const auto buckets = gradient_buckets(model, 2, {});
  EXPECT_GE(buckets.back().size.count(), 2 * 50257 * 768);
  EXPECT_EQ(buckets.back().ready_after, embedding_part);
  // The first bucket passes 1 MiB with the last tensors of the last block: ln_f and mlp.c_proj, 2 (2 h + h + 4 h^2) B.
  const std::int64_t h = 768;
  EXPECT_EQ(buckets.front().size.count(), 2 * (2 * h + h + 4 * h * h));
  EXPECT_EQ(buckets.front().ready_after, 12U);
}

}  // namespace
}  // namespace weft::test::gradient_buckets_test
