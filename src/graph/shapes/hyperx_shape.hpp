// SPDX-License-Identifier: GPL-2.0-only
// Coordinates and port numbers of a HyperX.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/topology/topology_builder.hpp"

namespace weft {

/// Switches on a grid; in each dimension d all S_d switches of a line are joined pairwise by K_d links. Switch i has
/// coordinates x_0, x_1, ... with i = x_0 + S_0 (x_1 + S_1 (x_2 + ...)); its node is hosts + i; host j hangs on switch
/// j / terminals. Ports: 0..T-1 hosts, then dimension by dimension, for each other coordinate in ascending order its
/// K_d links.
class HyperxShape final : public Shape {
 public:
  std::vector<std::uint32_t> dims;      ///< S_d >= 1
  std::vector<std::uint32_t> parallel;  ///< [dims] K_d >= 1
  std::uint32_t terminals = 1;          ///< T, hosts per switch
  std::uint32_t switches = 1;           ///< product of dims

  /// The first of the K_d ports that lead from coordinate `from` to coordinate `to` != from of dimension d.
  std::uint32_t first_port(std::size_t dim, std::uint32_t from, std::uint32_t to) const {
    return first_port_of_dim(dim) + (to < from ? to : to - 1) * parallel[dim];
  }
  std::uint32_t first_port_of_dim(std::size_t dim) const {
    std::uint32_t port = terminals;
    for (std::size_t d = 0; d < dim; ++d) port += (dims[d] - 1) * parallel[d];
    return port;
  }
};

}  // namespace weft
