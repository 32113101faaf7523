// SPDX-License-Identifier: GPL-2.0-only
// Bandwidth that the channels of a search have left: NCCL src/graph/search.cc, ncclTopoFollowPath, v2.30.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nccl/system.hpp"

namespace weft {

/// GB/s that no channel has taken yet, of links and of the ports of networks.
class FreeBandwidth {
 public:
  explicit FreeBandwidth(const NcclSystem& system) : system_(system) {
    for (const NcclLink& link : system.links()) links_.push_back(link.bandwidth);
    for (std::uint32_t net = 0; net < system.count(NcclNode::Kind::net); ++net)
      ports_.push_back(system.port_bandwidth(net));
  }

  double& at_port(std::uint32_t net) { return ports_[net]; }

  /// From all links of a path, or from none if one has too little.
  bool take(const NcclPath& way, double speed) {
    std::size_t taken = 0;
    while (taken < way.links.size() && charge(way, taken, speed)) ++taken;
    if (taken == way.links.size()) return true;
    while (taken > 0) charge(way, --taken, -speed);
    return false;
  }
  void give_back(const NcclPath& way, double speed) {
    for (std::size_t link = 0; link < way.links.size(); ++link) charge(way, link, -speed);
  }

 private:
  bool charge(const NcclPath& way, std::size_t at, double speed) {
    const NcclLink& link = system_.links()[way.links[at]];
    // INTEL_P2P_OVERHEAD: packets between two GPUs over an Intel host bridge are small.
    const bool over_bridge = system_.intel() && way.type == PathType::host_bridge &&
                             system_.node(system_.links()[way.links.front()].from).kind == NcclNode::Kind::gpu;
    const double wanted = over_bridge && link.kind == NcclLink::Kind::pci ? speed * 6 / 5 : speed;
    double& free = links_[way.links[at]];
    if (free < wanted) return false;
    free = std::round((free - wanted) * 1000) / 1000;  // SUB_ROUND
    return true;
  }

  const NcclSystem& system_;
  std::vector<double> links_;
  std::vector<double> ports_;
};

}  // namespace weft
