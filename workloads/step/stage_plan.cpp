// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/step/stage_plan.hpp"

#include <fmt/format.h>

#include "workloads/step/stage_planner.hpp"

namespace weft {
namespace {

constexpr std::array<std::string_view, 7> phase_names{"forward",   "backward",  "weight gradient", "recompute",
                                                      "reduction", "optimizer", "pipeline"};

}  // namespace

std::string_view to_text(Phase phase) { return phase_names.at(static_cast<std::size_t>(phase)); }

std::string PlannedOperation::label() const {
  std::string text = micro_batch >= 0 ? fmt::format("micro-batch {} ", micro_batch) : "";
  if (phase != Phase::reduction && phase != Phase::optimizer && phase != Phase::pipeline)
    text += fmt::format("{} ", to_text(phase));
  if (what == "grad bucket") return text + fmt::format("grad bucket {}", layer);
  if (layer >= 0) text += fmt::format("block {} ", layer);
  return text + std::string(what);
}

StageLayers layers_of_stage(const ParallelPlan& plan, std::uint32_t stage) {
  StageLayers layers;
  for (std::uint32_t s = 0; s < stage; ++s) layers.first += plan.stage_layers[s];
  layers.last = layers.first + plan.stage_layers.at(stage);
  return layers;
}

StagePlan plan_stage(const StageSetup& setup, std::uint32_t pipeline_rank) {
  return StagePlanner(setup, pipeline_rank).make();
}

}  // namespace weft
