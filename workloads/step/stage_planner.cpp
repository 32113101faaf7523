// SPDX-License-Identifier: GPL-2.0-only
// A stage's plan: the parts that it has, its slots in their order, and how an operation is added.
#include "workloads/step/stage_planner.hpp"

#include <utility>

#include "workloads/pass/magnitude_passes.hpp"
#include "workloads/step/recomputed_modules.hpp"

namespace weft {

StagePlanner::StagePlanner(const StageSetup& setup, std::uint32_t rank)
    : setup_(setup), description_(*setup.pass.description), plan_(description_.parallel), rank_(rank) {
  gradient_bytes_ = element_bytes(description_.gradient_precision);
  parameter_bytes_ = element_bytes(description_.parameter_precision);
  make_chunks();
}

StagePlan StagePlanner::make() {
  find_last_slots();
  if (gathers_at_start()) gather_parameters();
  result_.gathers_at_start = static_cast<std::uint32_t>(result_.operations.size());
  const auto slots = setup_.schedule->slots(setup_.shape, rank_);
  for (PipelineSlot slot; slots->next(slot);) {
    std::vector<SlotWalk> walks{start(slot)};
    while (walks.back().slot.with_next && slots->next(slot)) walks.push_back(start(slot));
    walk_together(walks);
    last_of_slot_ = walks.back().chain;
    if (completes_weights(slot.pass)) ++backward_slots_;
    reduce_aligned();
  }
  send_in_turn(last_of_slot_);
  backward_slots_ += rank_;
  reduce_aligned();
  end_of_step();
  return std::move(result_);
}

void StagePlanner::make_chunks() {
  const ModelConfig& model = description_.model;
  embedding_ = embedding_passes(setup_.pass);
  head_ = head_passes(setup_.pass);
  head_tensors_ = head_tensors(model, plan_);
  message_ = message_passes(setup_.pass);
  for (const BlockShape& shape : model.shapes) blocks_.push_back(passes_of_block(setup_.pass, shape));
  if (model.prediction_blocks > 0) {
    prediction_input_ = prediction_input_passes(setup_.pass);
    prediction_head_ = prediction_head_passes(setup_.pass);
  }
  const std::uint32_t stages = setup_.schedule->stages(setup_.shape);
  for (std::uint32_t c = 0; c < setup_.schedule->chunks(setup_.shape); ++c) {
    Chunk chunk;
    chunk.stage = setup_.schedule->stage_of(setup_.shape, rank_, c);
    if (chunk.stage == 0 && !model.embedding.empty()) add_part(chunk, -1, embedding_, model.embedding);
    const StageLayers layers = layers_of_stage(plan_, chunk.stage);
    for (std::int64_t layer = layers.first; layer < layers.last; ++layer)
      add_part(chunk, static_cast<std::int32_t>(layer), blocks_[model.blocks[static_cast<std::size_t>(layer)]],
               model.layer_shape(layer).tensors);
    if (chunk.stage == plan_.prediction_stage) add_predictions(chunk);
    if (chunk.stage + 1 == stages) {
      for (std::int64_t i = 0; i < model.prediction_blocks; ++i)
        add_part(chunk, -1, prediction_head_, model.prediction_head);
      add_part(chunk, -1, head_, head_tensors_);
    }
    chunk.gathered.assign(chunk.parts.size(), no_operation);
    chunk.awaited.assign(chunk.parts.size(), no_operation);
    chunk.started.assign(chunk.parts.size(), false);
    chunks_.push_back(std::move(chunk));
  }
  std::int64_t gemms = 0;
  for (const Chunk& chunk : chunks_)
    for (const Part& part : chunk.parts)
      if (part.layer >= 0) gemms += fp8_gemms(model.layer_shape(part.layer), plan_);
  magnitudes_ = magnitude_passes(setup_.pass, gemms);
}

void StagePlanner::add_part(Chunk& chunk, std::int32_t layer, const PartPasses& passes,
                            const std::vector<Tensor>& tensors) {
  Part part{layer, &passes, &tensors, held_parameters(tensors, plan_)};
  result_.parameters.dense += part.held.dense;
  result_.parameters.experts += part.held.experts;
  chunk.parts.push_back(part);
}

void StagePlanner::add_predictions(Chunk& chunk) {
  static const std::vector<Tensor> none;
  const ModelConfig& model = description_.model;
  if (plan_.embedding_copy > 0) embedding_copy_ = {model.embedding.front()};
  for (std::int64_t i = 0; i < model.prediction_blocks; ++i) {
    add_part(chunk, -1, embedding_, i == 0 ? embedding_copy_ : none);
    add_part(chunk, -1, prediction_input_, model.prediction_input);
    const std::int64_t layer = model.layers() + i;
    add_part(chunk, static_cast<std::int32_t>(layer), blocks_[model.shape_of(layer)], model.layer_shape(layer).tensors);
  }
}

void StagePlanner::find_last_slots() {
  last_.assign(chunks_.size(), 0);
  const auto slots = setup_.schedule->slots(setup_.shape, rank_);
  for (PipelineSlot slot; slots->next(slot);)
    if (completes_weights(slot.pass)) ++last_[slot.chunk];
  passes_ = last_;
}

bool StagePlanner::completes_weights(PipelineSlot::Pass pass) {
  return pass == PipelineSlot::Pass::backward || pass == PipelineSlot::Pass::weight_gradient;
}

std::int32_t StagePlanner::add(PlannedOperation operation, std::initializer_list<std::int32_t> after,
                               const std::vector<std::int32_t>& more) {
  operation.after_begin = static_cast<std::uint32_t>(result_.after.size());
  const auto depend = [this](std::int32_t position) {
    if (position != no_operation) result_.after.push_back(position);
  };
  for (const std::int32_t position : after) depend(position);
  for (const std::int32_t position : more) depend(position);
  operation.after_count = static_cast<std::uint32_t>(result_.after.size()) - operation.after_begin;
  const auto position = static_cast<std::int32_t>(result_.operations.size());
  if (operation.kind == Operation::Kind::collective) {
    auto& calls = result_.calls[static_cast<std::size_t>(operation.group)];
    operation.sequence = static_cast<std::uint32_t>(calls.size());
    calls.push_back(static_cast<std::uint32_t>(position));
  }
  if (operation.kind == Operation::Kind::compute && operation.stream != Stream::none && !operation.host) {
    result_.compute += operation.duration;
    result_.flops += operation.flops;
    if (operation.stream == Stream::compute) last_compute_ = position;
  }
  result_.operations.push_back(operation);
  return position;
}

PlannedOperation StagePlanner::collective(GroupKind group, CollectiveKind kind, Bytes size, Stream stream,
                                          std::string_view what) {
  PlannedOperation operation;
  operation.kind = Operation::Kind::collective;
  operation.group = group;
  operation.collective = kind;
  operation.size = size;
  operation.stream = stream;
  operation.phase = Phase::reduction;
  operation.what = what;
  return operation;
}

}  // namespace weft
