// SPDX-License-Identifier: GPL-2.0-only
// Hosts that are storage instead of accelerators: `storage_hosts:` beside the parameters of a family.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "graph/shapes/server_shape.hpp"
#include "graph/topology/topology_builder.hpp"

namespace weft {
namespace {

using Hosts = std::vector<std::uint32_t>;

Hosts last_hosts(std::uint32_t count, std::uint32_t hosts) {
  Hosts result(count);
  std::iota(result.begin(), result.end(), hosts - count);
  return result;
}

Hosts listed_hosts(const Spec& list, std::uint32_t hosts) {
  Hosts result;
  for (const Spec& item : list.items()) {
    const std::int64_t host = item.integer();
    if (host < 0 || host >= hosts)
      throw item.error(fmt::format("there is no host {}; this machine has hosts 0 to {}", host, hosts - 1));
    if (std::find(result.begin(), result.end(), host) != result.end())
      throw item.error(fmt::format("host {} is listed twice", host));
    result.push_back(static_cast<std::uint32_t>(host));
  }
  std::sort(result.begin(), result.end());
  return result;
}

/// {every: n} or {servers: n}
Hosts hosts_by_map(const Spec& map, const Topology& machine) {
  const std::uint32_t hosts = machine.graph.host_count();
  const auto every = map.find("every");
  const auto servers = map.find("servers");
  map.finish();
  if (every && servers) throw servers->error("found with 'every'; say it in one way");
  if (servers) {
    const auto* shape = shape_of<ServerShape>(machine);
    if (shape == nullptr)
      throw servers->error("this machine has no servers ('server:'); give a number of hosts, a list, or 'every'");
    if (shape->servers < 2) throw servers->error("this machine is a single server, and its accelerators are its hosts");
    return last_hosts(static_cast<std::uint32_t>(servers->integer(1, shape->servers - 1)) * shape->design.gpus, hosts);
  }
  if (!every) throw map.error("expected a number of hosts, a list of hosts, {every: 16} or {servers: 2}");
  const auto step = static_cast<std::uint32_t>(every->integer(2, hosts));
  Hosts result;
  for (std::uint32_t host = step - 1; host < hosts; host += step) result.push_back(host);
  return result;
}

class StorageHosts final : public TopologyExtension {
 public:
  Topology extend(const Spec& value, Topology machine) const override {
    const std::uint32_t hosts = machine.graph.host_count();
    if (value.is_sequence())
      machine.storage = listed_hosts(value, hosts);
    else if (value.is_map())
      machine.storage = hosts_by_map(value, machine);
    else if (hosts > 1)
      machine.storage = last_hosts(static_cast<std::uint32_t>(value.integer(1, hosts - 1)), hosts);
    if (machine.storage.size() >= hosts)
      throw value.error(fmt::format("all {} hosts would be storage; at least 1 has to compute", hosts));
    return machine;
  }
};

const Registration<TopologyExtension, StorageHosts> storage_hosts_registration(
    "storage_hosts", "hosts that are storage and no accelerators");

}  // namespace
}  // namespace weft
