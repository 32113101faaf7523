// SPDX-License-Identifier: GPL-2.0-only
// Levels and port numbers of an extended generalized fat-tree with parallel links.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/topology/topology_builder.hpp"

namespace weft {

/// PGFT(h; m_1..m_h; w_1..w_h; p_1..p_h) (E. Zahavi, "D-Mod-K routing providing non-blocking traffic for shift
/// permutations on real life fat trees", CCIT report 776, Technion 2010; XGFT: S. Ohring, M. Ibel, S. Das, M. Kumar,
/// IPPS 1995, doi:10.1109/IPPS.1995.395911): level 0 are the hosts; a node of level l has m_l children, and w_{l+1}
/// parents with p_{l+1} parallel links to each. w_1 = p_1 = 1: a host has one link.
///
/// A switch of level l stands over one subtree of prod_{i<=l} m_i hosts, which it shares with prod_{i<=l} w_i - 1
/// others: its number within the level is subtree * copies(l) + copy. Levels follow one another, nodes hosts, level 1,
/// level 2, ... Parent u of copy b of level l is copy b + copies(l) u of level l + 1. Ports: m_l p_l downwards (child c
/// by ports c p_l .. c p_l + p_l - 1), then upwards: port k = 0 .. w_{l+1} p_{l+1} - 1 of these leads to parent k mod
/// w_{l+1} by the parallel link k / w_{l+1}.
class TreeShape final : public Shape {
 public:
  std::vector<std::uint32_t> m;  ///< [h] m_1 first
  std::vector<std::uint32_t> w;  ///< [h]
  std::vector<std::uint32_t> p;  ///< [h]

  std::uint32_t levels() const { return static_cast<std::uint32_t>(m.size()); }
  /// Hosts below a switch of level l: prod_{i<=l} m_i.
  std::uint64_t below(std::uint32_t level) const {
    std::uint64_t result = 1;
    for (std::uint32_t i = 0; i < level; ++i) result *= m[i];
    return result;
  }
  /// Switches of level l over the same hosts: prod_{i<=l} w_i.
  std::uint64_t copies(std::uint32_t level) const {
    std::uint64_t result = 1;
    for (std::uint32_t i = 0; i < level; ++i) result *= w[i];
    return result;
  }
  std::uint64_t hosts() const { return below(levels()); }
  std::uint64_t switches(std::uint32_t level) const { return hosts() / below(level) * copies(level); }
};

}  // namespace weft
