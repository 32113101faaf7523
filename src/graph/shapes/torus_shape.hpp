// SPDX-License-Identifier: GPL-2.0-only
// Coordinates and port numbers of a torus or mesh.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/topology/topology_builder.hpp"

namespace weft {

/// Routers on a grid of any dimension, each joined to its neighbours, with `hosts_per_router` hosts each. Router i has
/// coordinates x_0, x_1, ... with i = x_0 + k_0 (x_1 + k_1 (x_2 + ...)); its node is hosts + i; host j hangs on router
/// j / hosts_per_router. A size of 2 has one link, with or without wrap.
class TorusShape final : public Shape {
 public:
  static constexpr std::uint16_t no_port = 0xffff;

  std::vector<std::uint32_t> dims;  ///< k_d >= 1
  std::vector<bool> wrap;           ///< [dims] a link from k_d - 1 to 0
  /// [dims]: shifts of all coordinates when the wrap of this dimension is crossed upwards; empty: not twisted.
  std::vector<std::vector<std::uint32_t>> twist;
  std::uint32_t hosts_per_router = 1;
  std::uint32_t routers = 1;           ///< product of dims
  std::vector<std::uint16_t> port_of;  ///< [routers][2 dims]: port downwards and upwards in each dimension, or no_port

  std::uint16_t port(std::uint32_t router, std::size_t dim, bool up) const {
    return port_of[(router * dims.size() + dim) * 2 + (up ? 1 : 0)];
  }
  std::vector<std::uint32_t> coordinates(std::uint32_t router) const;
  std::uint32_t router_at(const std::vector<std::uint32_t>& coordinates) const;
  bool twisted(std::size_t dim) const { return !twist.empty() && !twist[dim].empty(); }
  bool is_twisted() const { return !twist.empty(); }
};

}  // namespace weft
