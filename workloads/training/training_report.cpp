// SPDX-License-Identifier: GPL-2.0-only
// The report of a training job: parameters, FLOPs, memory, the closed form of its pipeline's bubble.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "workloads/model/model_flops.hpp"
#include "workloads/pass/magnitude_passes.hpp"
#include "workloads/step/recomputed_modules.hpp"
#include "workloads/step/training_memory.hpp"
#include "workloads/training/training_workload.hpp"

namespace weft {
namespace {

/// Compute time of a pass. A ring's segment is one of `ring` parts, that of a GEMM in parts says how many it has.
double seconds(const std::vector<Segment>& pass, std::int64_t ring) {
  double sum = 0;
  for (const Segment& segment : pass)
    sum += segment.duration.seconds() * static_cast<double>(segment.kind == Segment::Kind::ring ? ring : segment.parts);
  return sum;
}

/// Compute times of all parts of the model, over the number of pipeline ranks.
PipelineTimes pipeline_times(const PassSetup& setup, std::uint32_t ranks) {
  const TrainingDescription& d = *setup.description;
  PipelineTimes times;
  const auto add = [&](const PartPasses& part, double count) {
    const auto time = [&](const std::vector<Segment>& pass) { return count * seconds(pass, d.parallel.context); };
    times.forward += time(part.forward);
    times.input_gradient += time(part.input_gradient) + time(part.recompute);
    times.weight_gradient += time(part.weight_gradient);
    times.backward += time(part.backward) + time(part.recompute);
  };
  for (std::size_t shape = 0; shape < d.model.shapes.size(); ++shape)
    add(passes_of_block(setup, d.model.shapes[shape]),
        static_cast<double>(std::count(d.model.blocks.begin(), d.model.blocks.end(), shape)));
  const auto predictions = static_cast<double>(d.model.prediction_blocks);
  if (!d.model.embedding.empty()) add(embedding_passes(setup), 1 + predictions);
  add(head_passes(setup), 1);
  add(magnitude_passes(setup, mean_fp8_gemms(d)), static_cast<double>(d.parallel.stage_layers.size()));
  if (predictions > 0) {
    add(prediction_input_passes(setup), predictions);
    add(passes_of_block(setup, d.model.layer_shape(d.model.layers())), predictions);
    add(prediction_head_passes(setup), predictions);
  }
  for (double* time : {&times.forward, &times.input_gradient, &times.weight_gradient, &times.backward})
    *time /= static_cast<double>(ranks);
  return times;
}

}  // namespace

std::uint32_t TrainingWorkload::kind_of(Rank rank) const {
  if (rank.value() >= layout_.world()) return shape_.ranks + rank.value() - layout_.world();
  return layout_.place(rank).pipeline;
}

Rank TrainingWorkload::first_of_kind(std::uint32_t kind) const {
  if (kind >= shape_.ranks) return Rank(layout_.world() + kind - shape_.ranks);
  RankPlace place;
  place.pipeline = kind;
  return layout_.rank(place);
}

std::optional<WorkloadReport> TrainingWorkload::report() const {
  const TrainingDescription& d = job_.description;
  const PassSetup setup = job_.pass_setup();
  WorkloadReport report;
  report.steps = job_.steps;
  report.parameters = d.model.parameters();
  report.active_parameters = d.model.active_parameters();
  report.copies = static_cast<double>(whole_.world()) / layout_.world();
  report.sequences = static_cast<double>(d.global_batch) / report.copies;
  report.tokens = report.sequences * static_cast<double>(d.sequence_length);
  const ModelFlops forward = forward_flops(d.model, d.sequence_length);
  report.model_flops = 3 * report.sequences * (forward.linear + forward.scores);
  report.model_flops_causal = 3 * report.sequences * (forward.linear + forward.causal);
  report.device_memory = job_.times.device().memory;
  for (std::uint32_t p = 0; p < shape_.ranks; ++p) {
    const RankMemory memory = memory_of_rank(setup, *schedule_, shape_, p);
    auto parts = lines_of(memory);
    parts.pop_back();  // their sum
    report.memory.push_back({std::move(parts), memory.sum()});
  }
  // Storage targets have no device.
  for (std::uint32_t target = 0; target < job_.events.targets(); ++target) {
    report.memory.push_back({report.memory.front().parts, 0});
    for (auto& [name, bytes] : report.memory.back().parts) bytes = 0;
  }
  if (shape_.ranks < 2) return report;
  const PipelineTimes times = pipeline_times(setup, shape_.ranks);
  if (const auto idle = schedule_->idle_time(shape_, times)) {
    const double busy = shape_.micro_batches * (times.forward + times.backward);
    report.bubble = *idle / (*idle + busy);
    report.bubble_formula =
        fmt::format("{}, {} ranks, {} micro-batches, F {:.3f} ms, B {:.3f} ms: {:.3f} ms idle of {:.3f} ms",
                    d.parallel.schedule, shape_.ranks, shape_.micro_batches, times.forward * 1e3, times.backward * 1e3,
                    *idle * 1e3, (*idle + busy) * 1e3);
  }
  return report;
}

}  // namespace weft
