// SPDX-License-Identifier: GPL-2.0-only
// Networks side by side that meet only inside servers.
#pragma once

#include <memory>

#include "graph/topology/topology_builder.hpp"

namespace weft {

/// `rails` copies of one network. Hosts: those of rail 0, of rail 1, ...; switches likewise.
class RailsShape final : public Shape {
 public:
  std::uint32_t rails = 1;
  std::shared_ptr<const Topology> rail;
};

}  // namespace weft
