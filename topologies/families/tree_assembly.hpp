// SPDX-License-Identifier: GPL-2.0-only
// Building any extended generalized fat-tree.
#pragma once

#include <string>
#include <vector>

#include "graph/shapes/tree_shape.hpp"
#include "graph/topology/link_spec.hpp"

namespace weft {

/// links[l] and classes[l] are those between levels l and l + 1, roles[l] what switches of level l + 1 are called.
/// Groups are the subtrees below the highest level; the highest switches belong to none. Direction 0 of a link is up.
Topology assemble_tree(TreeShape shape, const std::vector<LinkSpec>& links, const std::vector<std::string>& classes,
                       const std::vector<std::string>& roles);

/// Throws InputError at `place` if a switch or the machine would be too large.
void check_tree(const Spec& place, const TreeShape& shape);

}  // namespace weft
