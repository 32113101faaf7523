// SPDX-License-Identifier: GPL-2.0-only
// How dragonfly families read the wiring of their groups.
#pragma once

#include "graph/shapes/group_wiring.hpp"
#include "support/documents/spec.hpp"

namespace weft {

/// Reads `g` (default: as many groups as the `ports` global ports of a group allow with one link per pair, `ports` +
/// 1), `arrangement` (default consecutive) and `links_between_groups` (default: as many as fit). `ports_text` says how
/// many global ports there are, such as "a h + 1 = 9".
GroupWiring read_group_wiring(const Spec& spec, std::uint64_t ports, const std::string& max_groups_text);

}  // namespace weft
