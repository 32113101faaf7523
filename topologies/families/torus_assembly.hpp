// SPDX-License-Identifier: GPL-2.0-only
// Building any torus or mesh.
#pragma once

#include <memory>
#include <vector>

#include "graph/shapes/torus_shape.hpp"
#include "graph/topology/link_spec.hpp"

namespace weft {

/// The machine of a shape whose dims, wrap, twist and hosts_per_router are set (the rest is filled in); links[d] are
/// those of dimension d. Link classes: "host", then "dimension 0", "dimension 1", ... Groups are the slabs of the
/// longest dimension.
Topology assemble_torus(TorusShape shape, const std::vector<LinkSpec>& links, const LinkSpec& host_link);

/// All routers' links together: what a host link has to carry if the router's links are all to be kept busy.
LinkSpec injection_link(const TorusShape& shape, const std::vector<LinkSpec>& links);

}  // namespace weft
