// SPDX-License-Identifier: GPL-2.0-only
#include "graph/machine/node_roles.hpp"

#include <algorithm>

namespace weft {

std::string TierRoles::name(NodeId node) const {
  const auto behind = std::upper_bound(tiers_.begin(), tiers_.end(), node.value(),
                                       [](std::uint32_t value, const Tier& tier) { return value < tier.first; });
  if (behind == tiers_.begin()) return {};
  const Tier& tier = *(behind - 1);
  std::uint32_t whole = 0;
  for (const Part& part : tier.parts) whole += part.count;
  std::uint32_t number = node.value() - tier.first;
  std::string text;
  if (!tier.group.empty()) text = tier.group + std::to_string(number / whole) + '/';
  number %= whole;
  for (const Part& part : tier.parts) {
    if (number < part.count) return text + part.word + std::to_string(number);
    number -= part.count;
  }
  return {};
}

std::string GridRoles::name(NodeId node) const {
  if (node.value() < first_) return {};
  std::uint32_t rest = node.value() - first_;
  std::string text = "router";
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    if (d > 0) text += '.';
    text += std::to_string(rest % dims_[d]);
    rest /= dims_[d];
  }
  return text;
}

}  // namespace weft
