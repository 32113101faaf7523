// SPDX-License-Identifier: GPL-2.0-only
// Groups and port numbers of a dragonfly and of a dragonfly+.
#pragma once

#include <cstdint>

#include "graph/shapes/group_wiring.hpp"
#include "graph/topology/topology_builder.hpp"

namespace weft {

/// p hosts per router, a routers per group, h global ports per router, g groups; the routers of a group are joined
/// pairwise. Router r of group G is node hosts + G a + r; host j hangs on router j / p. Ports of router r: 0..p-1
/// hosts, then the other routers of the group in ascending order, then global ports i = 0..h-1, which are ports r h + i
/// of the group in `wiring` (those beyond wiring.used_ports() do not exist).
class DragonflyShape final : public Shape {
 public:
  std::uint32_t p = 1;
  std::uint32_t a = 1;
  std::uint32_t h = 1;
  std::uint32_t g = 1;
  GroupWiring wiring;

  std::uint32_t hosts() const { return p * a * g; }
  std::uint32_t local_port(std::uint32_t from, std::uint32_t to) const { return p + (to < from ? to : to - 1); }
  std::uint32_t global_port(std::uint32_t i) const { return p + a - 1 + i; }
};

/// Groups of l leaves and s spines, completely joined; p hosts per leaf, h global ports per spine. Leaf i of group G is
/// node hosts + G (l + s) + i, spine i is node hosts + G (l + s) + l + i. Ports of a leaf: 0..p-1 hosts, then the
/// spines; of spine i: 0..l-1 the leaves, then global ports j = 0..h-1, which are ports i h + j of the group.
class DragonflyPlusShape final : public Shape {
 public:
  std::uint32_t p = 1;
  std::uint32_t leaves = 1;
  std::uint32_t spines = 1;
  std::uint32_t h = 1;
  std::uint32_t g = 1;
  GroupWiring wiring;

  std::uint32_t hosts() const { return p * leaves * g; }
};

}  // namespace weft
