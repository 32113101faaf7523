// SPDX-License-Identifier: GPL-2.0-only
// Code shared by pipeline schedules whose ranks have one model chunk each: stage s is on rank s.
#pragma once

#include <string>

#include <fmt/format.h>

#include "workloads/pipeline/pipeline_schedule.hpp"

namespace weft {

class OneChunkSchedule : public PipelineSchedule {
 public:
  std::string refuses(const PipelineShape& shape) const override {
    if (shape.virtual_stages == 1) return {};
    return fmt::format("{} virtual stages: it has 1 on each rank; 'interleaved' has any number from 2",
                       shape.virtual_stages);
  }
  std::uint32_t chunks(const PipelineShape&) const override { return 1; }
  std::uint32_t stages(const PipelineShape& shape) const override { return shape.ranks; }
  std::uint32_t stage_of(const PipelineShape&, std::uint32_t rank, std::uint32_t) const override { return rank; }
  Place place_of(const PipelineShape&, std::uint32_t stage, std::uint32_t) const override { return {stage, 0}; }
};

}  // namespace weft
