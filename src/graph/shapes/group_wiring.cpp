// SPDX-License-Identifier: GPL-2.0-only
// Which global port of which group of a dragonfly is joined to which.
#include "graph/shapes/group_wiring.hpp"

namespace weft {

const std::vector<std::string>& GroupWiring::names() {
  static const std::vector<std::string> all = {"consecutive", "palmtree", "relative", "circulant"};
  return all;
}

GroupWiring::End GroupWiring::peer(End end) const {
  const std::uint32_t others = groups_ - 1;
  const std::uint32_t round = end.port / others;
  const std::uint32_t slot = end.port % others;
  std::uint32_t target = 0;
  switch (arrangement_) {
    case Arrangement::consecutive:
      target = slot < end.group ? slot : slot + 1;
      break;
    case Arrangement::palmtree:
      target = (end.group + groups_ - slot - 1) % groups_;
      break;
    case Arrangement::relative:
      target = (end.group + slot + 1) % groups_;
      break;
    case Arrangement::circulant: {
      const std::uint32_t distance = slot / 2 + 1;
      target = (slot % 2 == 0 ? end.group + distance : end.group + groups_ - distance) % groups_;
      break;
    }
  }
  return {target, round * others + first_port(target, end.group)};
}

}  // namespace weft
