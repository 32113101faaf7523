// SPDX-License-Identifier: GPL-2.0-only
// Coordinates of a torus or mesh.
#include "graph/shapes/torus_shape.hpp"

namespace weft {

std::vector<std::uint32_t> TorusShape::coordinates(std::uint32_t router) const {
  std::vector<std::uint32_t> result;
  for (const std::uint32_t k : dims) {
    result.push_back(router % k);
    router /= k;
  }
  return result;
}

std::uint32_t TorusShape::router_at(const std::vector<std::uint32_t>& coordinates) const {
  std::uint32_t router = 0;
  for (std::size_t d = dims.size(); d-- > 0;) router = router * dims[d] + coordinates[d];
  return router;
}

}  // namespace weft
