// SPDX-License-Identifier: GPL-2.0-only
// Pictures of machines.
#pragma once

#include <string>
#include <vector>

#include "app/pictures/drawing.hpp"
#include "graph/topology/topology_builder.hpp"

namespace weft {

/// Where each node of a machine is drawn, within 0..1 in both directions (y downwards), so that its structure shows:
/// grids for torus, mesh and HyperX, circles of groups for dragonflies, rows of tiers for trees, a circle otherwise.
struct Layout {
  std::vector<Point> points;  ///< [nodes]
  /// Links bend by this share of their length, so that those in one line do not cover each other.
  double bend = 0;
};
Layout lay_out(const Topology& topology);

/// The content of an SVG or PNG file, by the ending of `path`.
std::string draw_topology(const Topology& topology, const std::string& path);

}  // namespace weft
