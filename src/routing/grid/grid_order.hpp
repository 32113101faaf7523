// SPDX-License-Identifier: GPL-2.0-only
// Dimension order on grids of routers: torus, mesh and HyperX.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "graph/shapes/hyperx_shape.hpp"
#include "graph/shapes/torus_shape.hpp"
#include "routing/algorithm/range_routing.hpp"
#include "routing/algorithm/reciprocal.hpp"

namespace weft {

/// Topologies of this family have at most 24 dimensions of more than one router.
constexpr std::size_t max_grid_dimensions = 24;

/// Digits of router numbers, without division.
struct RouterGrid {
  std::uint32_t dimensions = 0;
  std::array<std::uint32_t, max_grid_dimensions> size{};
  std::array<Reciprocal, max_grid_dimensions> by_size{};

  explicit RouterGrid(const std::vector<std::uint32_t>& dims) : dimensions(static_cast<std::uint32_t>(dims.size())) {
    for (std::size_t d = 0; d < dims.size(); ++d) {
      size[d] = dims[d];
      by_size[d] = Reciprocal(dims[d]);
    }
  }
  RouterGrid() = default;
};

/// Both ways round a ring are as short if the destination is opposite: the flow's hash decides then.
class TorusOrder {
 public:
  explicit TorusOrder(std::shared_ptr<const TorusShape> shape)
      : shape_(std::move(shape)), grid_(shape_->dims), by_hosts_(shape_->hosts_per_router) {
    for (std::size_t d = 0; d < shape_->dims.size(); ++d) wraps_[d] = shape_->wrap[d];
  }

  PortRange ports(std::uint32_t router, NodeId destination) const {
    std::uint32_t target = by_hosts_.quotient(destination.value());
    const std::uint32_t slot = destination.value() - target * shape_->hosts_per_router;
    std::uint32_t here = router;
    for (std::uint32_t d = 0; d < grid_.dimensions; ++d) {
      const std::uint32_t size = grid_.size[d];
      const std::uint32_t next_here = grid_.by_size[d].quotient(here);
      const std::uint32_t next_target = grid_.by_size[d].quotient(target);
      const std::uint32_t x = here - next_here * size;
      const std::uint32_t y = target - next_target * size;
      if (x != y) return towards(router, d, x, y, size);
      here = next_here;
      target = next_target;
    }
    return {slot, 1};
  }

 private:
  PortRange towards(std::uint32_t router, std::uint32_t d, std::uint32_t x, std::uint32_t y, std::uint32_t size) const {
    if (!wraps_[d]) return {shape_->port(router, d, y > x), 1};
    const std::uint32_t up = y > x ? y - x : y + size - x;
    // Downwards and upwards are neighbouring ports; a ring of two has only one.
    if (2 * up == size && size > 2) return {shape_->port(router, d, false), 2};
    return {shape_->port(router, d, 2 * up <= size), 1};
  }

  std::shared_ptr<const TorusShape> shape_;
  RouterGrid grid_;
  Reciprocal by_hosts_;
  std::array<bool, max_grid_dimensions> wraps_{};
};

class HyperxOrder {
 public:
  explicit HyperxOrder(std::shared_ptr<const HyperxShape> shape)
      : shape_(std::move(shape)), grid_(shape_->dims), by_hosts_(shape_->terminals) {
    for (std::size_t d = 0; d < shape_->dims.size(); ++d) first_[d] = shape_->first_port_of_dim(d);
  }

  PortRange ports(std::uint32_t here, NodeId destination) const {
    std::uint32_t target = by_hosts_.quotient(destination.value());
    const std::uint32_t slot = destination.value() - target * shape_->terminals;
    for (std::uint32_t d = 0; d < grid_.dimensions; ++d) {
      const std::uint32_t size = grid_.size[d];
      const std::uint32_t next_here = grid_.by_size[d].quotient(here);
      const std::uint32_t next_target = grid_.by_size[d].quotient(target);
      const std::uint32_t x = here - next_here * size;
      const std::uint32_t y = target - next_target * size;
      if (x != y) return {first_[d] + (y < x ? y : y - 1) * shape_->parallel[d], shape_->parallel[d]};
      here = next_here;
      target = next_target;
    }
    return {slot, 1};
  }

 private:
  std::shared_ptr<const HyperxShape> shape_;
  RouterGrid grid_;
  Reciprocal by_hosts_;
  std::array<std::uint32_t, max_grid_dimensions> first_{};
};

}  // namespace weft
