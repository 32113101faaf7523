// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/selection.hpp"

#include <map>

namespace weft {

std::shared_ptr<const CollectiveSelector> find_selector(const std::string& name) {
  static std::map<std::string, std::shared_ptr<const CollectiveSelector>> made;
  if (const auto known = made.find(name); known != made.end()) return known->second;
  const auto* entry = SelectorRegistry::instance().find(name);
  if (entry == nullptr) return nullptr;
  return made[name] = entry->make();
}

std::string apply_selection(CollectiveCall& call, const SelectionContext& context) {
  const auto selector = find_selector(call.algorithm);
  if (!selector) return {};
  const Selection choice = selector->select(call, context);
  call.algorithm = choice.algorithm;
  call.tuning.protocol = choice.protocol;
  if (choice.channels != 0) call.tuning.channels = choice.channels;
  if (choice.chunk.count() != 0) call.tuning.chunk = choice.chunk;
  return choice.reason;
}

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names = CollectiveRegistry::instance().names();
  for (const std::string& name : SelectorRegistry::instance().names()) names.push_back(name);
  return names;
}

}  // namespace weft
