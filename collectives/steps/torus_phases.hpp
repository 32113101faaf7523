// SPDX-License-Identifier: GPL-2.0-only
// Rings along one dimension after another: what bucket and hierarchical algorithms are made of.
#pragma once

#include <array>
#include <cstdint>

#include "collectives/steps/exchange.hpp"
#include "schedule/collective/step_generator.hpp"

namespace weft {

/// Members as nodes of a grid: member = x0 + k0 (x1 + k1 (x2 + ...)).
struct Grid {
  static constexpr std::uint32_t max_dimensions = 8;
  std::array<std::uint32_t, max_dimensions> sizes{};
  std::uint32_t count = 0;

  explicit Grid(const std::vector<std::uint32_t>& dimensions);
  std::uint32_t stride(std::uint32_t dimension) const;
  std::uint32_t coordinate(std::uint32_t member, std::uint32_t dimension) const;
  std::uint32_t moved(std::uint32_t member, std::uint32_t dimension, std::uint32_t steps) const;
};

/// The dimensions in the order in which a reduce-scatter takes them; an all-gather takes them backwards.
struct PhaseOrder {
  std::array<std::uint32_t, Grid::max_dimensions> dimensions{};
  bool mirrored = false;  ///< rings run downwards

  /// From `first` on, cyclically.
  static PhaseOrder from(const Grid& grid, std::uint32_t first, bool mirrored);
};

/// Ring reduce-scatter of `part` along phases `begin` to `end` - 1 of the order, after those before. The result stands
/// in output if the last phase is among them, else in scratch. The input is `first`.
StepGenerator vector_reduce_scatter(Grid grid, PhaseOrder order, std::uint32_t index, MessageSizes sizes, Piece part,
                                    std::uint32_t begin, std::uint32_t end);
/// The mirror image, in output.
StepGenerator vector_all_gather(Grid grid, PhaseOrder order, std::uint32_t index, MessageSizes sizes, Piece part,
                                std::uint32_t begin, std::uint32_t end);

/// all_gather and reduce_scatter of blocks that belong to ranks.
StepGenerator block_all_gather(CollectiveCall call, Grid grid, PhaseOrder order, std::uint32_t index,
                               MessageSizes sizes, ChannelShare share);
StepGenerator block_reduce_scatter(CollectiveCall call, Grid grid, PhaseOrder order, std::uint32_t index,
                                   MessageSizes sizes, ChannelShare share);

}  // namespace weft
