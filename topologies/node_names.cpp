// SPDX-License-Identifier: GPL-2.0-only
// Nodes as users name them: host3, switch7.
#include "topologies/node_names.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace weft {
namespace {

/// The number of a name like "host3" after `prefix`, without leading zeros.
std::optional<std::uint32_t> number_after(const std::string& prefix, const std::string& name) {
  if (name.size() <= prefix.size() || name.compare(0, prefix.size(), prefix) != 0) return std::nullopt;
  std::uint32_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, status] = std::from_chars(name.data() + prefix.size(), end, number);
  if (status != std::errc() || stop != end || prefix + std::to_string(number) != name) return std::nullopt;
  return number;
}

/// "host0" or "host0..host7"; "none" for 0.
std::string name_range(const std::string& prefix, std::uint32_t count) {
  if (count == 0) return "no " + prefix;
  return count == 1 ? prefix + "0" : fmt::format("{0}0..{0}{1}", prefix, count - 1);
}

}  // namespace

NodeId read_node(const Spec& spec, const ClusterGraph& graph) {
  const std::string name = spec.text();
  if (const auto host = number_after("host", name); host && *host < graph.host_count()) return NodeId(*host);
  if (const auto number = number_after("switch", name); number && *number < graph.switch_count())
    return NodeId(graph.host_count() + *number);
  std::vector<std::string> known;
  constexpr std::uint32_t enough = 1000;
  for (std::uint32_t i = 0; i < std::min(graph.node_count(), enough); ++i) known.push_back(graph.name(NodeId(i)));
  throw spec.error(fmt::format("unknown node '{}'{}; the nodes are {} and {}", name, did_you_mean(name, known),
                               name_range("host", graph.host_count()), name_range("switch", graph.switch_count())));
}

}  // namespace weft
