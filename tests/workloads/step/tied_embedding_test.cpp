// SPDX-License-Identifier: GPL-2.0-only
// A tied embedding with a pipeline: its copy on the last stage is a parameter like any other, by hand.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::tied_embedding_test {
namespace {

constexpr std::int64_t h = 64, inner = 128, vocabulary = 256, layers = 8;
constexpr std::int64_t block = 4 * h * h + 3 * h * inner + 2 * h;  // no biases, two norms

std::unique_ptr<Workload> job(bool tied, const std::string& parallelism, std::uint32_t ranks,
                              const std::string& more = "") {
  const TemporaryFile file(
      "config.json",
      R"({"model_type": "llama", "max_position_embeddings": 64, "hidden_size": 64, "intermediate_size": 128,
          "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 256, "num_hidden_layers": 8,
          "tie_word_embeddings": )" +
          std::string(tied ? "true" : "false") + "}");
  return read_workload("{kind: training, model: " + file.path() +
                           ", device: h100-sxm, micro_batches: 8, clip_gradients: false, parallelism: {" + parallelism +
                           "}" + more + "}",
                       context_of(ranks));
}

/// Elements in bf16 that a rank sums or gathers, by kind of call; those between both copies apart.
struct Summed {
  std::map<CollectiveKind, std::int64_t> elements;
  std::int64_t copies = 0;
};
Summed summed(const Workload& workload, std::uint32_t rank) {
  Summed result;
  for (const Operation& operation : operations_of(workload, rank)) {
    if (operation.call == nullptr) continue;
    const std::int64_t elements = operation.call->size.count() / 2;
    if (operation.call->label.find("embedding gradients") != std::string::npos)
      result.copies += elements;
    else
      result.elements[operation.call->kind] += elements;
  }
  return result;
}

// Megatron-LM: the last stage allocates the matrix of its own and marks it as shared
// (megatron/core/models/common/language_module/language_module.py, setup_embeddings_and_output_layer). Both are in the
// buffers of gradients of their stage, which data-parallel ranks sum first; then the two stages sum them
// (megatron/core/distributed/finalize_model_grads.py, _allreduce_word_embedding_grads).
TEST(TiedEmbedding, BothCopiesAreSummedOverDataParallelRanks) {
  for (const std::string pipeline : {"pipeline: 4", "pipeline: 4, schedule: interleaved, virtual_stages: 2"}) {
    const auto workload = job(true, pipeline + ", data: 2", 8);
    const std::int64_t blocks = layers / 4 * block, matrix = vocabulary * h;
    const std::int64_t expected[] = {matrix + blocks, blocks, blocks, blocks + h + matrix};
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
      const Summed sums = summed(*workload, rank);
      EXPECT_EQ(sums.elements.at(CollectiveKind::all_reduce), expected[rank / 2]) << pipeline << rank;
      EXPECT_EQ(sums.copies, rank / 2 == 0 || rank / 2 == 3 ? matrix : 0) << pipeline << rank;
    }
  }
}

// ZeRO-1: both copies are scattered as sums and gathered after the optimizer. ZeRO-3: gathered before the head's
// passes, forward and backward of each of the 8 micro-batches, and scattered after each.
TEST(TiedEmbedding, BothCopiesAreSharedOut) {
  const std::int64_t last = layers / 4 * block + h + vocabulary * h;
  const Summed first = summed(*job(true, "pipeline: 4, data: 2, sharding: optimizer", 8), 6);
  EXPECT_EQ(first.elements.at(CollectiveKind::reduce_scatter), last);
  EXPECT_EQ(first.elements.at(CollectiveKind::all_gather), last);
  const Summed third = summed(*job(true, "pipeline: 4, data: 2, sharding: parameters", 8), 6);
  EXPECT_EQ(third.elements.at(CollectiveKind::reduce_scatter), 8 * last);
  EXPECT_EQ(third.elements.at(CollectiveKind::all_gather), 2 * 8 * last);
}

// With tensor ranks each has its columns; the norm has its own sum with sequence parallelism.
TEST(TiedEmbedding, EachTensorRankHasItsPart) {
  const Summed sums = summed(*job(true, "tensor: 2, pipeline: 4, data: 2, sharding: optimizer", 16), 12);
  const std::int64_t matrices = (4 * h * h + 3 * h * inner) / 2, norms = 2 * h;
  EXPECT_EQ(sums.elements.at(CollectiveKind::reduce_scatter), layers / 4 * (matrices + norms) + h + vocabulary * h / 2);
  EXPECT_EQ(sums.copies, vocabulary * h / 2);
}

// One matrix, one sum: where no pipeline divides the model, or one rank has both of its ends.
TEST(TiedEmbedding, NoCopyWhereOneRankHasBothEnds) {
  const std::int64_t all = vocabulary * h + layers * block + h;
  EXPECT_EQ(summed(*job(true, "data: 2", 2), 0).elements.at(CollectiveKind::all_reduce), all);
  const Summed ends = summed(*job(true, "schedule: zbv, pipeline: 2, data: 2", 4), 0);
  EXPECT_EQ(ends.elements.at(CollectiveKind::all_reduce), vocabulary * h + layers / 2 * block + h);
  EXPECT_EQ(ends.copies, 0);
}

// A last stage of a tied model has what that of an untied one has, so that the optimizer and the sums take as long.
TEST(TiedEmbedding, AsManyParametersAsUntied) {
  for (const std::string sharding : {"none", "optimizer", "parameters"}) {
    const std::string plan = "pipeline: 4, data: 2, sharding: " + sharding;
    const Summed tied = summed(*job(true, plan, 8), 6), untied = summed(*job(false, plan, 8), 6);
    EXPECT_EQ(tied.elements, untied.elements) << sharding;
    const auto optimizer = [](const Workload& workload) {
      Time time;
      for (const Operation& operation : operations_of(workload, 6))
        if (operation.label == "optimizer") time += operation.duration;
      return time;
    };
    EXPECT_EQ(optimizer(*job(true, plan, 8)), optimizer(*job(false, plan, 8))) << sharding;
    EXPECT_GT(optimizer(*job(true, plan, 8)), Time()) << sharding;
  }
}

}  // namespace
}  // namespace weft::test::tied_embedding_test
