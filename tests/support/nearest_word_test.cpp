// SPDX-License-Identifier: GPL-2.0-only
// Tests of "did you mean".
#include <gtest/gtest.h>

#include "support/documents/spec.hpp"

namespace weft::nearest_word_test {
namespace {

const std::vector<std::string> kinds{"dragonfly", "fat_tree", "ring", "torus"};

TEST(DidYouMean, OneEditOfAnyKind) {
  EXPECT_EQ(did_you_mean("rin", kinds), " (did you mean 'ring'?)");    // one missing
  EXPECT_EQ(did_you_mean("riing", kinds), " (did you mean 'ring'?)");  // one too many
  EXPECT_EQ(did_you_mean("rink", kinds), " (did you mean 'ring'?)");   // one other
  EXPECT_EQ(did_you_mean("rnig", kinds), " (did you mean 'ring'?)");   // two neighbours swapped
}

TEST(DidYouMean, TheFirstPartOfTheWordInsteadOfManyEdits) {
  const std::vector<std::string> known = {"micro_batch", "micro_batches", "micro_bench"};
  EXPECT_EQ(did_you_mean("micro_batch_size", known), " (did you mean 'micro_batch'?)");
  EXPECT_EQ(did_you_mean("micro_batchs", known), " (did you mean 'micro_batch'?)");
  EXPECT_EQ(did_you_mean("micro_batchez", known), " (did you mean 'micro_batches'?)");
}

TEST(DidYouMean, AsFarAsAThirdOfTheLength) {
  EXPECT_EQ(did_you_mean("dragnfl", kinds), " (did you mean 'dragonfly'?)");  // 7 / 3 = 2 edits
  EXPECT_EQ(did_you_mean("dragnf", kinds), "");                               // 6 / 3 < 3 edits
  EXPECT_EQ(did_you_mean("fattree", kinds), " (did you mean 'fat_tree'?)");
  EXPECT_EQ(did_you_mean("mesh", kinds), "");
}

TEST(DidYouMean, TheNearestThenTheFirst) {
  EXPECT_EQ(did_you_mean("abcdef", {"abcdxy", "abcdex"}), " (did you mean 'abcdex'?)");
  EXPECT_EQ(did_you_mean("abcdef", {"abcdey", "abcdex"}), " (did you mean 'abcdey'?)");
}

TEST(DidYouMean, WhatJoinsPartsCountsHalf) {
  EXPECT_EQ(did_you_mean("llama3-8b", {"llama-2-7b", "llama-3.1-8b"}), " (did you mean 'llama-3.1-8b'?)");
  EXPECT_EQ(did_you_mean("FAT-TREE", kinds), " (did you mean 'fat_tree'?)");
}

TEST(DidYouMean, ElseNamesThatShareAPart) {
  const std::vector<std::string> trees{"double_binary_tree", "nvls_tree", "ring", "subtrees"};
  EXPECT_EQ(did_you_mean("tree", trees), " (did you mean 'double_binary_tree' or 'nvls_tree'?)");
  EXPECT_EQ(did_you_mean("ring_all_reduce", trees), " (did you mean 'ring'?)");
  EXPECT_EQ(did_you_mean("sub", trees), "");
}

TEST(NearlyTheSame, SoManyEdits) {
  EXPECT_TRUE(nearly_the_same("tensor-size", "tensor-siez", 1));
  EXPECT_TRUE(nearly_the_same("tensor-size", "tensorsiz", 2));
  EXPECT_FALSE(nearly_the_same("tensor-size", "tensor", 2));
}

TEST(DidYouMean, NothingToCompare) {
  EXPECT_EQ(did_you_mean("", kinds), "");
  EXPECT_EQ(did_you_mean("ring", {}), "");
  EXPECT_EQ(did_you_mean(std::string(100'000, 'x'), kinds), "");
}

}  // namespace
}  // namespace weft::nearest_word_test
