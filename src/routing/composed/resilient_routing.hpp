// SPDX-License-Identifier: GPL-2.0-only
// Resilient hashing: when links have failed, only flows move whose own port leads nowhere.
#pragma once

#include <memory>

#include "routing/algorithm/routing_algorithm.hpp"

namespace weft {

/// Switches with plain ECMP hash over the ports that are left, so that a port less moves most flows of a group of
/// ports. Resilient switches have a table of hash values whose entries of dead ports alone are filled anew (Dell OS10
/// User Guide, "Resilient hashing"; Extreme SLX-OS, "Resilient Hashing"). Both keep to the shortest paths over links
/// that work, so that no packet goes round in circles. `usual`: of the machine without failures, prepared, and alive as
/// long as the result. `detour`: prepare_without() the dead links.
std::unique_ptr<RoutingAlgorithm> resilient_routing(const RoutingAlgorithm& usual,
                                                    std::unique_ptr<RoutingAlgorithm> detour);

}  // namespace weft
