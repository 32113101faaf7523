// SPDX-License-Identifier: GPL-2.0-only
// Ranks of a training job in their communicators.
#include "workloads/parallel/rank_layout.hpp"

#include <set>

#include <gtest/gtest.h>

namespace weft::test::rank_layout_test {
namespace {

ParallelPlan plan_of(std::int64_t t, std::int64_t c, std::int64_t d, std::int64_t p, std::int64_t e = 1,
                     std::int64_t et = 0) {
  ParallelPlan plan;
  plan.tensor = t;
  plan.context = c;
  plan.data = d;
  plan.pipeline = p;
  plan.expert = e;
  plan.expert_tensor = et > 0 ? et : t;
  return plan;
}

std::vector<std::uint32_t> members(const RankLayout& layout, GroupKind kind, std::uint32_t group) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t i = 0; i < layout.size(kind); ++i) ranks.push_back(layout.member(kind, group, i).value());
  return ranks;
}
using Ranks = std::vector<std::uint32_t>;

TEST(RankLayout, MegatronsExampleOfSixteenRanks) {
  // Megatron-LM, megatron/core/parallel_state.py, docstring of initialize_model_parallel: 16 GPUs, 2 tensor ranks, 4
  // pipeline ranks: 8 data-parallel groups [g0, g2], [g1, g3], [g4, g6], ...; 8 tensor groups [g0, g1], ...; 4 pipeline
  // groups [g0, g4, g8, g12], [g1, g5, g9, g13], ...
  const RankLayout layout(plan_of(2, 1, 2, 4));
  EXPECT_EQ(layout.groups(GroupKind::data), 8U);
  EXPECT_EQ(members(layout, GroupKind::data, 0), (Ranks{0, 2}));
  EXPECT_EQ(members(layout, GroupKind::data, 1), (Ranks{1, 3}));
  EXPECT_EQ(members(layout, GroupKind::data, 2), (Ranks{4, 6}));
  EXPECT_EQ(layout.groups(GroupKind::tensor), 8U);
  EXPECT_EQ(members(layout, GroupKind::tensor, 1), (Ranks{2, 3}));
  EXPECT_EQ(layout.groups(GroupKind::pipeline), 4U);
  EXPECT_EQ(members(layout, GroupKind::pipeline, 0), (Ranks{0, 4, 8, 12}));
  EXPECT_EQ(members(layout, GroupKind::pipeline, 1), (Ranks{1, 5, 9, 13}));
  EXPECT_EQ(members(layout, GroupKind::embedding, 1), (Ranks{1, 13}));
  EXPECT_EQ(members(layout, GroupKind::mirror, 1), (Ranks{4, 8}));
  // get_amax_reduction_group: tensor, context and data ranks of a stage.
  EXPECT_EQ(members(layout, GroupKind::stage, 1), (Ranks{4, 5, 6, 7}));
  EXPECT_EQ(members(layout, GroupKind::tensor_context, 1), (Ranks{2, 3}));
  EXPECT_EQ(members(RankLayout(plan_of(2, 2, 2, 2)), GroupKind::tensor_context, 1), (Ranks{4, 5, 6, 7}));
}

TEST(RankLayout, ExpertsShareTheRanksAnew) {
  // 2 tensor ranks x 4 data ranks; 4 expert ranks of one tensor rank each: expert groups are neighbours, experts'
  // copies 4 apart.
  const RankLayout layout(plan_of(2, 1, 4, 1, 4, 1));
  EXPECT_EQ(members(layout, GroupKind::expert, 0), (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(members(layout, GroupKind::expert_data, 1), (Ranks{1, 5}));
  EXPECT_EQ(layout.size(GroupKind::expert_tensor), 1U);
}

// Experts over ranks 0 to 7, in servers of four.
TEST(RankLayout, ExpertsInServersAndOnRails) {
  ParallelPlan plan = plan_of(1, 1, 16, 1, 8, 1);
  plan.expert_server = 4;
  const RankLayout layout(plan);
  EXPECT_EQ(layout.groups(GroupKind::expert_server), 4U);
  EXPECT_EQ(members(layout, GroupKind::expert_server, 1), (Ranks{4, 5, 6, 7}));
  EXPECT_EQ(members(layout, GroupKind::expert_rail, 1), (Ranks{1, 5}));
  EXPECT_EQ(members(layout, GroupKind::expert_rail, 6), (Ranks{10, 14}));
}

TEST(RankLayout, AnyOrder) {
  ParallelPlan plan = plan_of(2, 2, 2, 2);
  plan.order = "pp-dp-ep-cp-tp";
  const RankLayout layout(plan);
  EXPECT_EQ(members(layout, GroupKind::pipeline, 0), (Ranks{0, 1}));
  EXPECT_EQ(members(layout, GroupKind::tensor, 0), (Ranks{0, 8}));
  EXPECT_EQ(layout.place(Rank(9)).tensor, 1U);
  EXPECT_EQ(layout.place(Rank(9)).pipeline, 1U);
}

TEST(RankLayout, GroupsOfEachKindShareOutAllRanks) {
  for (const auto& plan :
       {plan_of(2, 1, 4, 2), plan_of(2, 3, 4, 2, 6, 2), plan_of(1, 2, 8, 4, 16, 1), plan_of(4, 1, 4, 6, 4, 2)}) {
    for (const std::int64_t shard : {0, 2}) {
      ParallelPlan with = plan;
      with.shard_group = shard;
      if (shard > 0 && plan.expert % 4 == 0) with.expert_server = 2;
      const RankLayout layout(with);
      std::set<std::uint32_t> ids;
      for (std::size_t k = 0; k < group_kind_count; ++k) {
        const auto kind = static_cast<GroupKind>(k);
        std::multiset<std::uint32_t> seen;
        for (std::uint32_t group = 0; group < layout.groups(kind); ++group) {
          const Communicator communicator = layout.communicator(kind, group);
          EXPECT_TRUE(ids.insert(communicator.id()).second);
          for (std::uint32_t i = 0; i < layout.size(kind); ++i) {
            const Rank rank = layout.member(kind, group, i);
            EXPECT_EQ(communicator.rank(i), rank);
            EXPECT_EQ(layout.group_of(kind, rank), group) << to_text(kind);
            EXPECT_EQ(layout.index_of(kind, rank), i) << to_text(kind);
            seen.insert(rank.value());
            if (!RankLayout::spans_pipeline(kind)) {
              const std::uint32_t per_stage = layout.groups(kind) / static_cast<std::uint32_t>(plan.pipeline);
              EXPECT_EQ(layout.place(rank).pipeline, group / per_stage);
            }
          }
        }
        if (kind == GroupKind::embedding) continue;  // has the ends of pipelines only
        EXPECT_EQ(seen.size(), layout.world()) << to_text(kind);
        EXPECT_EQ(std::set<std::uint32_t>(seen.begin(), seen.end()).size(), layout.world()) << to_text(kind);
      }
    }
  }
}

}  // namespace
}  // namespace weft::test::rank_layout_test
