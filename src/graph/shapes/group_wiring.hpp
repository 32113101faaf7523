// SPDX-License-Identifier: GPL-2.0-only
// Which global port of which group of a dragonfly is joined to which.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// How the groups of a dragonfly or dragonfly+ are joined to each other. Each group has global ports 0 .. ports-1.
/// Ports are used in rounds: in each round every group has one link to every other group, so that round m takes ports m
/// (g-1)
/// .. (m+1) (g-1) - 1 of each of the g groups; what is left over stays unused. Slot s = 0 .. g-2 of a round leads from
/// group G to group T, to slot s' of the same round:
/// - consecutive (BookSim's): T = s if s < G else s + 1; s' = G if G < T else G - 1.
/// - palmtree: T = G - (s + 1) mod g; s' = g - 2 - s (C. Camarero, E. Vallejo, R. Beivide, "Topological
///   characterization of Hamming and dragonfly networks", ACM TACO 11(4), 2014, doi:10.1145/2677038).
/// - relative: T = G + s + 1 mod g; s' = g - 2 - s (E. Hastings, D. Rincon-Cruz, M. Spehlmann, et al., "Comparing
/// global
///   link arrangements for dragonfly networks", IEEE CLUSTER 2015, doi:10.1109/CLUSTER.2015.57).
/// - circulant: T = G + s/2 + 1 for even s, G - (s-1)/2 - 1 for odd s, mod g; s' = s xor 1; g must be odd (Hastings et
///   al. 2015, "circulant-based").
class GroupWiring {
 public:
  enum class Arrangement : std::uint8_t { consecutive, palmtree, relative, circulant };
  static const std::vector<std::string>& names();  ///< in the order of Arrangement

  /// A place where a global link ends.
  struct End {
    std::uint32_t group;
    std::uint32_t port;
  };

  GroupWiring() = default;
  /// `links_per_pair` links between any two of `groups` groups.
  GroupWiring(std::uint32_t groups, std::uint32_t links_per_pair, Arrangement arrangement)
      : groups_(groups), rounds_(links_per_pair), arrangement_(arrangement) {}

  std::uint32_t groups() const { return groups_; }
  std::uint32_t links_per_pair() const { return rounds_; }
  Arrangement arrangement() const { return arrangement_; }
  /// Ports 0 .. used_ports()-1 of each group have a link.
  std::uint32_t used_ports() const { return rounds_ * (groups_ - 1); }
  /// The other end of a used port.
  End peer(End end) const;
  /// The port of `from` that leads to `to` in round 0; in round m it is m (g-1) further. from != to.
  std::uint32_t first_port(std::uint32_t from, std::uint32_t to) const {
    const std::uint32_t ahead = to > from ? to - from : to + groups_ - from;  // 1 .. g-1
    switch (arrangement_) {
      case Arrangement::consecutive:
        return to < from ? to : to - 1;
      case Arrangement::palmtree:
        return groups_ - 1 - ahead;
      case Arrangement::relative:
        return ahead - 1;
      default:
        return 2 * ahead <= groups_ ? 2 * (ahead - 1) : 2 * (groups_ - ahead - 1) + 1;
    }
  }

 private:
  std::uint32_t groups_ = 1;
  std::uint32_t rounds_ = 0;
  Arrangement arrangement_ = Arrangement::consecutive;
};

}  // namespace weft
