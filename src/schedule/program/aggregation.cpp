// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/program/aggregation.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "schedule/program/placement.hpp"
#include "schedule/program/workload.hpp"
#include "support/basics/contract.hpp"

namespace weft {
namespace {

std::string_view name(AggregatorSite::Level level) {
  switch (level) {
    case AggregatorSite::Level::server:
      return "NVSwitch (or first switch)";
    case AggregatorSite::Level::leaf:
      return "leaf switch";
    case AggregatorSite::Level::top:
      return "switch of the highest level";
  }
  return {};
}

void require_site(const Spec& where, const CollectiveCall& call, const AggregatorSite& site,
                  const Placement& placement) {
  const auto host = [&](std::uint32_t number) {
    return placement.host(call.communicator->rank(site.member + number * site.stride).value());
  };
  const std::string what = fmt::format("{} by {}", to_text(call.kind), call.algorithm);
  const ReductionUnits::Level& level = placement.units()->level(site.level);
  if (level.above(host(0)).empty())
    throw where.error(
        fmt::format("{} needs a {} that reduces above host {}, and there is none; see `switch_reduction` "
                    "of the topology (docs/reference/topologies.md)",
                    what, name(site.level), host(0).value()));
  for (std::uint32_t i = 1; i < site.count; ++i)
    if (level.list_of_host[host(i)] != level.list_of_host[host(0)])
      throw where.error(fmt::format(
          "{}: ranks {} and {} are to be below the same {}, but hosts {} and {} are not; ranks_per_server and "
          "ranks_per_leaf have to be what the machine and the placement are",
          what, call.communicator->rank(site.member).value(),
          call.communicator->rank(site.member + i * site.stride).value(), name(site.level), host(0).value(),
          host(i).value()));
}

/// Leaf switches send to switches above them, and no switch sends to itself.
void require_levels(const Spec& where, const CollectiveCall& call, const std::vector<AggregatorSite>& sites,
                    const Placement& placement) {
  const auto host = [&](const AggregatorSite& site) {
    return placement.host(call.communicator->rank(site.member).value());
  };
  const auto units = [&](const AggregatorSite& site) -> const std::vector<std::uint32_t>& {
    return placement.units()->level(site.level).above(host(site));
  };
  const auto top = std::find_if(sites.begin(), sites.end(),
                                [](const AggregatorSite& site) { return site.level == AggregatorSite::Level::top; });
  if (top == sites.end()) return;
  for (const AggregatorSite& site : sites)
    if (site.level == AggregatorSite::Level::leaf && units(site) == units(*top))
      throw where.error(fmt::format(
          "{} by {} over several leaf switches needs a switch above them, and that of host {} is of the highest level; "
          "ranks_per_leaf has to be what the machine and the placement are",
          to_text(call.kind), call.algorithm, host(site).value()));
}

}  // namespace

const ReductionUnits::Level& ReductionUnits::level(AggregatorSite::Level which) const {
  return which == AggregatorSite::Level::server ? server : which == AggregatorSite::Level::leaf ? leaf : top;
}

std::uint32_t rank_of(const CollectiveAlgorithm& algorithm, const CollectiveCall& call, std::uint32_t index,
                      std::uint32_t channel, const Placement& placement) {
  const std::uint32_t members = call.communicator->size();
  if (index < members) [[likely]]
    return call.communicator->rank(index).value();
  const AggregatorSite site = algorithm.aggregator_site(call, index - members);
  WEFT_EXPECT(placement.units() != nullptr && site.unit < AggregatorSite::max_units, "{} needs an aggregator",
              call.algorithm);
  const auto& above =
      placement.units()->level(site.level).above(placement.host(call.communicator->rank(site.member).value()));
  WEFT_EXPECT(!above.empty(), "{} has no switch for an aggregator", call.algorithm);
  // Channels that share a memory are in one switch.
  const std::uint32_t share = algorithm.memory_of(call, channel);
  return placement.ranks() + above[share % above.size()] * AggregatorSite::max_units + site.unit;
}

void require_aggregators(const Spec& where, const Workload& workload, const Placement& placement) {
  if (placement.units() == nullptr) return;  // readers of workloads refuse such calls (settle_call)
  for (std::uint64_t id = 0; id < workload.call_count(); ++id) {
    const CollectiveCall call = workload.call(static_cast<std::uint32_t>(id));
    const auto algorithm = find_collective(call.algorithm);
    const std::uint32_t count = algorithm ? algorithm->aggregators(call) : 0;
    std::vector<AggregatorSite> sites;
    for (std::uint32_t number = 0; number < count; ++number) {
      sites.push_back(algorithm->aggregator_site(call, number));
      require_site(where, call, sites.back(), placement);
    }
    require_levels(where, call, sites, placement);
  }
}

}  // namespace weft
