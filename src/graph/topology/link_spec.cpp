// SPDX-License-Identifier: GPL-2.0-only
// How topologies read the rates and delays of their links.
#include "graph/topology/link_spec.hpp"

#include <fmt/format.h>

#include "graph/topology/topology_builder.hpp"

namespace weft {

Time read_link_delay(const Spec& value) {
  const Time delay = value.wait();
  if (delay <= Time()) {
    throw value.error(
        "zero delay links cannot be simulated in parallel (the delay is how far one process may run ahead of another); "
        "write at least '1 ps', usually '500 ns' (about 100 m)");
  }
  return delay;
}

LinkFraming read_link_framing(const Spec& map) {
  const auto bytes = [&](const char* key, std::int64_t min) {
    const Spec value = map.at(key);
    const std::int64_t found = value.bytes().count();
    if (found < min || found > 4096) throw value.error(fmt::format("found {} B; expected {} to 4096 B", found, min));
    return static_cast<std::uint16_t>(found);
  };
  LinkFraming framing;
  framing.payload = bytes("payload", 1);
  framing.overhead = bytes("overhead", 0);
  if (map.has("answer")) framing.answer = bytes("answer", 0);
  map.finish();
  return framing;
}

LinkSpec read_link(const Spec& map) { return {map.at("link_rate").bandwidth(), read_link_delay(map.at("link_delay"))}; }

LinkSpec read_link(const Spec& map, const std::string& prefix, const LinkSpec& otherwise) {
  LinkSpec link = otherwise;
  if (const auto rate = map.find(prefix + "_rate")) link.rate = rate->bandwidth();
  if (const auto delay = map.find(prefix + "_delay")) link.delay = read_link_delay(*delay);
  return link;
}

std::vector<std::uint32_t> read_numbers(const Spec& value, std::size_t min, std::size_t max, std::uint32_t smallest,
                                        std::uint32_t largest) {
  const auto items = value.items();
  if (items.size() < min || items.size() > max) {
    const std::string due = min == max ? std::to_string(min) : fmt::format("{} to {}", min, max);
    throw value.error(fmt::format("found {} values; expected a list of {} whole numbers", items.size(), due));
  }
  std::vector<std::uint32_t> result;
  for (const Spec& item : items) result.push_back(static_cast<std::uint32_t>(item.integer(smallest, largest)));
  return result;
}

namespace {

/// Calls `take(i, spec)` with the value for the i-th of `count`: one value for all, or a list.
template <class Take>
void each_of(const Spec& value, std::size_t count, const Take& take) {
  if (value.is_sequence() && value.size() != count)
    throw value.error(fmt::format("found {} values; write one, or one for each of {}", value.size(), count));
  for (std::size_t i = 0; i < count; ++i) take(i, value.is_sequence() ? value[i] : value);
}

}  // namespace

std::vector<LinkSpec> read_links(const Spec& map, const std::string& prefix, std::size_t count,
                                 const std::optional<LinkSpec>& otherwise) {
  std::vector<LinkSpec> links(count, otherwise.value_or(LinkSpec{}));
  if (!otherwise || map.has(prefix + "_rate"))
    each_of(map.at(prefix + "_rate"), count,
            [&](std::size_t i, const Spec& value) { links[i].rate = value.bandwidth(); });
  if (!otherwise || map.has(prefix + "_delay"))
    each_of(map.at(prefix + "_delay"), count,
            [&](std::size_t i, const Spec& value) { links[i].delay = read_link_delay(value); });
  return links;
}

std::uint32_t require_nodes(const Spec& spec, std::uint64_t nodes) {
  if (nodes > max_nodes)
    throw spec.error(fmt::format("the machine would have {} nodes; at most {} can be simulated",
                                 nodes == UINT64_MAX ? "far too many" : std::to_string(nodes), max_nodes));
  return static_cast<std::uint32_t>(nodes);
}

void require_ports(const Spec& spec, std::uint64_t ports) {
  if (ports > ClusterGraph::max_ports)
    throw spec.error(
        fmt::format("a switch would need {} ports; at most {} are possible", ports, ClusterGraph::max_ports));
}

}  // namespace weft
