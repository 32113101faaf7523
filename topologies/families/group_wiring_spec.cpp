// SPDX-License-Identifier: GPL-2.0-only
// How dragonfly families read the wiring of their groups.
#include "topologies/families/group_wiring_spec.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "graph/topology/link_spec.hpp"
#include "graph/topology/topology_builder.hpp"

namespace weft {

GroupWiring read_group_wiring(const Spec& spec, std::uint64_t ports, const std::string& max_groups_text) {
  std::uint64_t groups = ports + 1;
  const auto g = spec.find("g");
  if (g) {
    groups = static_cast<std::uint64_t>(g->integer(1, max_nodes));
    if (groups > ports + 1)
      throw g->error(fmt::format("found {} groups; every group needs a link to every other, so at most {} are possible",
                                 groups, max_groups_text));
  }
  auto arrangement = GroupWiring::Arrangement::consecutive;
  if (const auto named = spec.find("arrangement")) {
    const auto& names = GroupWiring::names();
    const std::string name = named->one_of(names);
    arrangement = static_cast<GroupWiring::Arrangement>(std::find(names.begin(), names.end(), name) - names.begin());
    if (arrangement == GroupWiring::Arrangement::circulant && groups % 2 == 0)
      throw named->error(fmt::format(
          "circulant wiring pairs the groups ahead with those behind, so their number must be odd; found {}; use {} "
          "or {}",
          groups, groups - 1, groups + 1));
  }
  const std::uint64_t fit = groups > 1 ? ports / (groups - 1) : 0;
  std::uint64_t links = fit;
  if (const auto between = spec.find("links_between_groups")) {
    links = static_cast<std::uint64_t>(between->integer(groups > 1 ? 1 : 0, static_cast<std::int64_t>(fit)));
  }
  return GroupWiring(static_cast<std::uint32_t>(groups), static_cast<std::uint32_t>(links), arrangement);
}

}  // namespace weft
