// SPDX-License-Identifier: GPL-2.0-only
// Where the aggregators of collectives are in a machine.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/collective/collective.hpp"
#include "support/documents/spec.hpp"

namespace weft {

class Placement;
class Workload;

/// Units in switches that reduce. To the network each unit is a host, numbered after the accelerators.
struct ReductionUnits {
  /// Above each accelerator, on one level: a list of units, in ascending order.
  struct Level {
    PerNode<std::vector<std::uint32_t>> list_of_host;  ///< [accelerators] into lists
    std::vector<std::vector<std::uint32_t>> lists;     ///< list 0 is empty
    const std::vector<std::uint32_t>& above(NodeId host) const { return lists[list_of_host[host]]; }
  };
  std::uint32_t first_host = 0;
  std::uint32_t count = 0;
  Level server;
  Level leaf;
  Level top;
  const Level& level(AggregatorSite::Level which) const;
};

/// The rank of a member, or of an aggregator: aggregators are numbered after the ranks, AggregatorSite::max_units for
/// each reduction unit.
std::uint32_t rank_of(const CollectiveAlgorithm& algorithm, const CollectiveCall& call, std::uint32_t index,
                      std::uint32_t channel, const Placement& placement);

/// On a machine with such switches: throws InputError at `where` if a call needs an aggregator where there is none, or
/// for ranks that are not below the same switches.
void require_aggregators(const Spec& where, const Workload& workload, const Placement& placement);

}  // namespace weft
