// SPDX-License-Identifier: GPL-2.0-only
#include "graph/machine/node_name.hpp"

#include <charconv>
#include <cstdint>

#include <fmt/format.h>

namespace weft {
namespace {

/// The number of a name like "host3" after `prefix`, without leading zeros.
std::optional<std::uint32_t> number_after(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::uint32_t number = 0;
  const auto [stop, status] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (status != std::errc() || stop != name.data() + name.size() || std::to_string(number) != name) return std::nullopt;
  return number;
}

/// Nodes [first, end): "host0" or "host0..host7", by their roles if they have such; "no host" if there are none.
std::string range(const ClusterGraph& graph, std::string_view prefix, std::uint32_t first, std::uint32_t end) {
  if (first == end) return fmt::format("no {}", prefix);
  const std::string plain =
      graph.plain_name(NodeId(first)) + (end - first > 1 ? ".." + graph.plain_name(NodeId(end - 1)) : std::string());
  const std::string role = graph.name(NodeId(first));
  if (role == graph.plain_name(NodeId(first))) return plain;
  return fmt::format("{} ({}{})", plain, role, end - first > 1 ? ".." + graph.name(NodeId(end - 1)) : "");
}

}  // namespace

std::optional<NodeId> node_named(const ClusterGraph& graph, std::string_view name) {
  if (const auto host = number_after("host", name); host && *host < graph.host_count()) return NodeId(*host);
  if (const auto number = number_after("switch", name); number && *number < graph.switch_count())
    return NodeId(graph.host_count() + *number);
  // Names by role are formulas; few are looked up, and never while packets travel.
  if (graph.has_roles())
    for (std::uint32_t node = 0; node < graph.node_count(); ++node)
      if (graph.name(NodeId(node)) == name) return NodeId(node);
  return std::nullopt;
}

std::string names_of_nodes(const ClusterGraph& graph) {
  return fmt::format("{} and {}", range(graph, "host", 0, graph.host_count()),
                     range(graph, "switch", graph.host_count(), graph.node_count()));
}

}  // namespace weft
