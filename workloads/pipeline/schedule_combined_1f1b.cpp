// SPDX-License-Identifier: GPL-2.0-only
// 1F1B whose forward passes go beside backward passes of other micro-batches, so that the exchanges of tokens of one
// hide behind the computation of the other: Megatron-LM's --overlap-moe-expert-parallel-comm
// (megatron/core/pipeline_parallel/combined_1f1b.py, commit 00caa53a). A pair is independent because one more forward
// pass is done ahead (schedules.py, get_pp_rank_microbatches). In a pipeline each rank has several chunks, as there.
#include <algorithm>

#include <fmt/format.h>

#include "workloads/pipeline/interleaved_slots.hpp"

namespace weft {
namespace {

class Combined : public InterleavedChunks {
 public:
  std::string refuses(const PipelineShape& shape) const override {
    if (shape.ranks == 1 && shape.virtual_stages > 1)
      return fmt::format("{} virtual stages on 1 rank: it has 1", shape.virtual_stages);
    if (shape.ranks > 1 && shape.virtual_stages < 2)
      return fmt::format("{} virtual stage: with {} ranks it needs at least 2 on each", shape.virtual_stages,
                         shape.ranks);
    return refuses_groups(shape);
  }
  std::unique_ptr<SlotStream> slots(const PipelineShape& shape, std::uint32_t rank) const override {
    return std::make_unique<InterleavedSlots>(shape, ahead(shape, rank), true);
  }
  /// Alone nothing waits. In a pipeline no closed form is known: what waits for one pass of a pair waits for both.
  std::optional<double> idle_time(const PipelineShape& shape, const PipelineTimes&) const override {
    if (shape.ranks > 1) return std::nullopt;
    return 0;
  }
  std::uint32_t peak_activations(const PipelineShape& shape, std::uint32_t rank) const override {
    return static_cast<std::uint32_t>(std::min(passes_of_rank(shape), ahead(shape, rank) + 1));
  }

 private:
  static std::uint64_t ahead(const PipelineShape& shape, std::uint32_t rank) {
    return std::min(passes_of_rank(shape), passes_ahead(shape, rank) + 1);
  }
};

const Registration<PipelineSchedule, Combined> schedule_combined_1f1b_registration(
    "combined_1f1b", "1F1B whose forward passes go beside backward passes, to hide exchanges with experts");

}  // namespace
}  // namespace weft
