// SPDX-License-Identifier: GPL-2.0-only
#include "routing/algorithm/routing_algorithm.hpp"

#include "support/basics/error.hpp"

namespace weft {

void RoutingAlgorithm::prepare_without(const Topology&, std::uint64_t, const std::vector<bool>&) {
  throw InputError(SourceLine{}, "this routing algorithm has no way around failed links; 'shortest_path' has");
}

}  // namespace weft
