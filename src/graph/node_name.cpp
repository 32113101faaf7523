// SPDX-License-Identifier: GPL-2.0-only
#include "graph/node_name.hpp"

#include <charconv>
#include <cstdint>

namespace weft {

std::optional<NodeId> node_named(const ClusterGraph& graph, std::string_view name) {
  const bool host = name.starts_with("host");
  if (!host && !name.starts_with("switch")) return std::nullopt;
  const std::string_view digits = name.substr(host ? 4 : 6);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (number >= (host ? graph.host_count() : graph.switch_count())) return std::nullopt;
  return NodeId(host ? number : graph.host_count() + number);
}

}  // namespace weft
