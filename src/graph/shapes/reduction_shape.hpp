// SPDX-License-Identifier: GPL-2.0-only
// Machines some of whose switches reduce.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/topology/topology_builder.hpp"

namespace weft {

/// A machine with a unit for reductions in each of some switches. A unit is a host on a link of its own, numbered
/// behind the accelerators; the switches follow, with the port numbers that they have without it and the unit's port
/// behind.
class ReductionShape final : public Shape {
 public:
  struct Unit {
    NodeId at;                 ///< its switch
    std::uint32_t port = 0;    ///< of that switch
    std::uint32_t below = 0;   ///< an accelerator below that switch
    std::uint32_t radius = 0;  ///< links from the switch to the farthest accelerator below it
  };
  std::shared_ptr<const Topology> machine;  ///< without units
  std::string routing;                      ///< of that machine
  std::vector<Unit> units;
  /// Units above each accelerator: on its server's NVSwitches (without such: as `leaf`), on the first switches of the
  /// network, and on the highest ones. Lists are numbered; list 0 is empty.
  struct Level {
    PerNode<std::vector<std::uint32_t>> list_of_host;
    std::vector<std::vector<std::uint32_t>> lists = {{}};
  };
  Level server;
  Level leaf;
  Level top;

  std::uint32_t hosts() const { return machine->graph.host_count(); }
  std::uint32_t count() const { return static_cast<std::uint32_t>(units.size()); }
};

/// The machine as accelerators and workloads see it: without units for reductions.
inline const Topology& machine_of(const Topology& topology) {
  const auto* shape = shape_of<ReductionShape>(topology);
  return shape == nullptr ? topology : *shape->machine;
}

}  // namespace weft
