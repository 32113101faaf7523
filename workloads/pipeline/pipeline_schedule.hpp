// SPDX-License-Identifier: GPL-2.0-only
// Pipeline schedules: in which order a pipeline rank works on which micro-batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "support/basics/registry.hpp"

namespace weft {

/// Sizes of a pipeline.
struct PipelineShape {
  std::uint32_t ranks = 1;           ///< [p]
  std::uint32_t virtual_stages = 1;  ///< [v] as the user says it
  std::uint32_t micro_batches = 1;   ///< [m]
};

/// One pass of one micro-batch through one model chunk of a pipeline rank.
struct PipelineSlot {
  enum class Pass : std::uint8_t {
    forward,
    backward,         ///< gradients of inputs and of weights
    input_gradient,   ///< the first half of a split backward pass: what the stage before waits for
    weight_gradient,  ///< the second half, at any later time
  };
  Pass pass = Pass::forward;
  std::uint32_t chunk = 0;  ///< model chunk of this rank, below chunks()
  std::uint32_t micro_batch = 0;
  /// The next slot of the rank is worked on at the same time, block by block in turn, so that the communication of one
  /// hides behind the computation of the other (DualPipe's F&B).
  bool with_next = false;
};

/// Times of the passes of one micro-batch through what one rank has of the model, in any unit.
struct PipelineTimes {
  double forward = 0;          ///< [F]
  double input_gradient = 0;   ///< [I]
  double weight_gradient = 0;  ///< [W]
  double backward = 0;         ///< [B]; I + W, or less where both share work
};

/// The slots of one rank in order, made one by one.
class SlotStream {
 public:
  virtual ~SlotStream() = default;
  virtual bool next(PipelineSlot& slot) = 0;
};

/// A stage is a part of the model: stage 0 has the embedding, stage stages()-1 the head. A micro-batch passes all
/// stages in order, and back. Which rank and chunk has a stage may depend on the micro-batch (DualPipe keeps two
/// copies).
class PipelineSchedule {
 public:
  virtual ~PipelineSchedule() = default;
  /// Why it cannot do this shape ("8 micro-batches are no multiple of 3 ranks"), or an empty text.
  virtual std::string refuses(const PipelineShape& shape) const = 0;
  /// Model chunks of each rank.
  virtual std::uint32_t chunks(const PipelineShape& shape) const = 0;
  virtual std::uint32_t stages(const PipelineShape& shape) const = 0;
  /// The stage that chunk `chunk` of rank `rank` is.
  virtual std::uint32_t stage_of(const PipelineShape& shape, std::uint32_t rank, std::uint32_t chunk) const = 0;
  struct Place {
    std::uint32_t rank = 0;
    std::uint32_t chunk = 0;
  };
  /// The rank that works on a stage of a micro-batch.
  virtual Place place_of(const PipelineShape& shape, std::uint32_t stage, std::uint32_t micro_batch) const = 0;
  virtual std::unique_ptr<SlotStream> slots(const PipelineShape& shape, std::uint32_t rank) const = 0;
  /// Micro-batches whose activations a rank holds at most at once, in units of one chunk (1/(p * chunks) of the model),
  /// by the published formula or by count of the slots.
  virtual std::uint32_t peak_activations(const PipelineShape& shape, std::uint32_t rank) const = 0;
  /// Idle time of the worst rank in a step without any communication, by the closed form of
  /// docs/concepts/pipeline_schedules.md; nothing where none holds. In the unit of `times`.
  virtual std::optional<double> idle_time(const PipelineShape& shape, const PipelineTimes& times) const = 0;
};
using PipelineScheduleRegistry = Registry<PipelineSchedule>;

}  // namespace weft
