// SPDX-License-Identifier: GPL-2.0-only
// Shares out the blocks of a model over pipeline stages.
#include <algorithm>

#include <fmt/format.h>

#include "support/documents/spec.hpp"
#include "workloads/parallel/settling.hpp"
#include "workloads/pipeline/pipeline_schedule.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

/// The blocks of each pipeline stage, and where the layers of multi-token prediction are.
class StageSettling {
 public:
  StageSettling(TrainingDescription& description, const Complaints& complaints)
      : d_(description), p_(description.parallel), complaints_(complaints) {}

  void settle() {
    settle_pipeline();
    settle_predictions();
  }

 private:
  void settle_pipeline() {
    if (p_.pipeline == 1) {
      if (p_.virtual_stages > 1)
        complaints_.raise({"virtual_stages"},
                          fmt::format("virtual_stages {}, but pipeline is 1; use 1", p_.virtual_stages));
      settle_stages(1);
      return;
    }
    settle_stages(pipeline_stages());
  }

  std::int64_t pipeline_stages() const {
    const auto* entry = PipelineScheduleRegistry::instance().find(p_.schedule);
    if (entry == nullptr) {
      const auto known = PipelineScheduleRegistry::instance().names();
      complaints_.raise({"schedule"}, fmt::format("unknown schedule '{}'{}; known here: {}", p_.schedule,
                                                  did_you_mean(p_.schedule, known), listed(known)));
    }
    complaints_.ranks_of({p_.pipeline, p_.virtual_stages});
    const auto schedule = entry->make();
    const PipelineShape shape{static_cast<std::uint32_t>(p_.pipeline), static_cast<std::uint32_t>(p_.virtual_stages),
                              static_cast<std::uint32_t>(d_.micro_batches)};
    if (const std::string reason = schedule->refuses(shape); !reason.empty())
      complaints_.raise({"schedule", "virtual_stages", "micro_batches", "global_batch", "pipeline"},
                        fmt::format("schedule {}: {}", p_.schedule, reason));
    return schedule->stages(shape);
  }

  void settle_stages(std::int64_t stages) {
    const std::int64_t layers = d_.model.layers();
    if (p_.stage_layers.empty()) {
      if (layers % stages != 0)
        complaints_.raise(
            {"pipeline", "virtual_stages"},
            fmt::format("{} layers cannot be shared out over the {} stages of pipeline {} x virtual_stages {}; use {} "
                        "layers, or {} stages",
                        layers, stages, p_.pipeline, p_.virtual_stages, near_multiples(stages, layers),
                        near_divisors(layers, stages)));
      p_.stage_layers.assign(static_cast<std::size_t>(stages), layers / stages);
      return;
    }
    std::int64_t sum = 0;
    for (const std::int64_t own : p_.stage_layers) {
      complaints_.require("stage_layers", own, 0);
      sum += own;
    }
    if (static_cast<std::int64_t>(p_.stage_layers.size()) != stages)
      complaints_.raise(
          {"stage_layers", "pipeline"},
          fmt::format("stage_layers has {} stages, but pipeline {} x virtual_stages {} is {}; expected {} "
                      "numbers",
                      p_.stage_layers.size(), p_.pipeline, p_.virtual_stages, stages, stages));
    if (sum != layers)
      complaints_.raise({"stage_layers", "pipeline"},
                        fmt::format("stage_layers has {} blocks in all, but the model has {}; expected a sum "
                                    "of {}",
                                    sum, layers, layers));
  }

  void settle_predictions() {
    const auto stages = static_cast<std::int64_t>(p_.stage_layers.size());
    if (p_.prediction_stage < 0) p_.prediction_stage = stages - 1;
    if (p_.prediction_stage >= stages)
      complaints_.raise({"prediction_stage"}, fmt::format("prediction_stage {}, but there are {} stages; use 0 to {}",
                                                          p_.prediction_stage, stages, stages - 1));
    if (d_.model.prediction_blocks == 0) {
      if (d_.model.tied) p_.embedding_copy = rank_beside_embedding(stages - 1);
      return;
    }
    if (d_.model.blocks.empty())
      complaints_.raise({"prediction_blocks"}, "the model has no blocks; use prediction_blocks 0");
    const AttentionShape& attention = d_.model.layer_shape(d_.model.layers()).attention;
    if (d_.model.vocabulary == 0 || d_.model.encoder_blocks > 0 || attention.heads == 0 || !attention.causal)
      complaints_.raise(
          {"prediction_blocks"},
          "layers of multi-token prediction want a decoder with a vocabulary; use prediction_blocks 0 with this "
          "model");
    p_.embedding_copy = rank_beside_embedding(p_.prediction_stage);
    if (d_.model.tied && p_.embedding_copy != rank_beside_embedding(stages - 1))
      complaints_.raise(
          {"prediction_stage"},
          fmt::format("the embedding is tied to the logits, which are on another pipeline rank than stage {}; use "
                      "prediction_stage {}",
                      p_.prediction_stage, stages - 1));
  }

  /// The pipeline rank of a stage, or 0 if the embedding is there, too.
  std::int64_t rank_beside_embedding(std::int64_t stage) const {
    if (p_.pipeline == 1) return 0;
    const PipelineShape shape{static_cast<std::uint32_t>(p_.pipeline), static_cast<std::uint32_t>(p_.virtual_stages),
                              static_cast<std::uint32_t>(d_.micro_batches)};
    const auto schedule = PipelineScheduleRegistry::instance().find(p_.schedule)->make();
    const std::uint32_t rank = schedule->place_of(shape, static_cast<std::uint32_t>(stage), 0).rank;
    for (std::uint32_t chunk = 0; chunk < schedule->chunks(shape); ++chunk)
      if (schedule->stage_of(shape, rank, chunk) == 0) return 0;
    return rank;
  }

  TrainingDescription& d_;
  ParallelPlan& p_;
  const Complaints& complaints_;
};

}  // namespace

void settle_pipeline(TrainingDescription& description, const Complaints& complaints) {
  StageSettling(description, complaints).settle();
}

}  // namespace weft
