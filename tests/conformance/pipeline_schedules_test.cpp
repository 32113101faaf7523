// SPDX-License-Identifier: GPL-2.0-only
// The contract of the interface, for every registered pipeline schedule: each micro-batch passes each stage once each
// way, at the place of place_of(); no rank waits for ever; memory is as announced; unsupported shapes have a reason.
#include <gtest/gtest.h>

#include "tests/workloads/parallel/pipeline_execution.hpp"

namespace weft::test::pipeline_schedules_test {
namespace {

/// Calls `check` for all shapes of the grid that a schedule does.
template <class Check>
std::size_t every_shape(const PipelineSchedule& schedule, Check check) {
  std::size_t shapes = 0;
  for (const std::uint32_t p : {1, 2, 3, 4, 5, 8, 16})
    for (const std::uint32_t v : {1, 2, 3, 4})
      for (const std::uint32_t m : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 16, 20, 32, 40, 64}) {
        const PipelineShape shape{p, v, m};
        if (!schedule.refuses(shape).empty()) continue;
        ++shapes;
        SCOPED_TRACE(fmt::format("p {} v {} m {}", p, v, m));
        check(shape);
      }
  return shapes;
}

class Schedules : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<PipelineSchedule> schedule_ = pipeline_schedule(GetParam());
};

TEST_P(Schedules, EveryMicroBatchPassesEveryStageOnceEachWay) {
  const std::size_t shapes = every_shape(*schedule_, [&](const PipelineShape& shape) {
    for (const PassTimes& times : {PassTimes{1, 1, 1, 0}, PassTimes{10, 12, 8, 26}, PassTimes{3, 7, 11, 0}})
      for (const std::string& fault : execute(*schedule_, shape, times).faults) ADD_FAILURE() << fault;
  });
  EXPECT_GT(shapes, 10U);
}

TEST_P(Schedules, HoldNoMoreActivationsThanAnnounced) {
  every_shape(*schedule_, [&](const PipelineShape& shape) {
    const PipelineExecution execution = execute(*schedule_, shape, {});
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank)
      EXPECT_EQ(execution.ranks[rank].peak, schedule_->peak_activations(shape, rank)) << "rank " << rank;
  });
}

TEST_P(Schedules, PlacesAndStagesAreInverse) {
  every_shape(*schedule_, [&](const PipelineShape& shape) {
    for (std::uint32_t micro_batch = 0; micro_batch < shape.micro_batches; ++micro_batch)
      for (std::uint32_t stage = 0; stage < schedule_->stages(shape); ++stage) {
        const PipelineSchedule::Place place = schedule_->place_of(shape, stage, micro_batch);
        ASSERT_LT(place.rank, shape.ranks);
        ASSERT_LT(place.chunk, schedule_->chunks(shape));
        EXPECT_EQ(schedule_->stage_of(shape, place.rank, place.chunk), stage);
      }
  });
}

TEST_P(Schedules, PairsAreAForwardAndABackwardPassOfOtherMicroBatches) {
  every_shape(*schedule_, [&](const PipelineShape& shape) {
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
      const auto stream = schedule_->slots(shape, rank);
      for (PipelineSlot slot, second; stream->next(slot);) {
        if (!slot.with_next) continue;
        ASSERT_TRUE(stream->next(second)) << "the last slot has no next";
        EXPECT_FALSE(second.with_next);
        EXPECT_EQ(slot.pass, PipelineSlot::Pass::forward);
        EXPECT_EQ(second.pass, PipelineSlot::Pass::backward);
        EXPECT_NE(slot.micro_batch, second.micro_batch);
      }
    }
  });
}

TEST_P(Schedules, ReasonsForRefusalNameTheNumber) {
  for (const std::uint32_t p : {1, 3, 4})
    for (const std::uint32_t v : {1, 2, 3})
      for (const std::uint32_t m : {1, 5, 7}) {
        const std::string reason = schedule_->refuses({p, v, m});
        if (reason.empty()) continue;
        EXPECT_TRUE(reason.find_first_of("0123456789") != std::string::npos) << reason;
      }
}

/// Names of tests begin with no digit.
std::string test_name(const testing::TestParamInfo<std::string>& schedule) { return "_" + schedule.param; }

INSTANTIATE_TEST_SUITE_P(All, Schedules, testing::ValuesIn(PipelineScheduleRegistry::instance().names()), test_name);

}  // namespace
}  // namespace weft::test::pipeline_schedules_test
