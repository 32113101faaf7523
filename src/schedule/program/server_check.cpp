// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/program/server_check.hpp"

#include <set>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

void require_servers_of(const Spec& where, const CollectiveCall& call, const Placement& placement,
                        const ServerGrid& grid) {
  const std::uint32_t together = call.tuning.ranks_per_server;
  const auto server = [&](std::uint32_t index) {
    return grid.server_of(placement.host(call.communicator->rank(index).value()));
  };
  for (std::uint32_t i = 1; i < call.communicator->size(); ++i) {
    const bool same = server(i - 1) == server(i);
    if (i % together == 0 || same) continue;
    throw where.error(fmt::format(
        "ranks {} and {} are placed on servers {} and {}, but ranks_per_server: {} of the {} says that they share one; "
        "place each {} ranks on one server, as packed and random_servers do, or leave ranks_per_server out",
        call.communicator->rank(i - 1).value(), call.communicator->rank(i).value(), server(i - 1), server(i), together,
        to_text(call.kind), together));
  }
}

}  // namespace

void require_servers(const Spec& where, const Workload& workload, const Placement& placement, const ServerGrid& grid) {
  if (grid.gpus == 0) return;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;  // communicator, ranks per server
  for (std::uint64_t id = 0; id < workload.call_count(); ++id) {
    const CollectiveCall call = workload.call(static_cast<std::uint32_t>(id));
    if (call.tuning.ranks_per_server > 1 && seen.emplace(call.communicator->id(), call.tuning.ranks_per_server).second)
      require_servers_of(where, call, placement, grid);
  }
}

}  // namespace weft
