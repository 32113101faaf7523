// SPDX-License-Identifier: GPL-2.0-only
#include "internet/background.hpp"

#include <set>

namespace weft {

std::vector<std::shared_ptr<const BackgroundTraffic>> read_background(const Spec& list,
                                                                      const BackgroundContext& context) {
  std::vector<std::shared_ptr<const BackgroundTraffic>> entries;
  if (list.is_sequence() && list.size() == 0) return entries;
  if (context.network->fidelity != Fidelity::packet)
    throw list.error("found with a fidelity that has no packets; expected fidelity: packet, or []");
  if (!context.network->acks)
    throw list.error(
        "found with network.ack: none; ports have queues by class beside background traffic, and connections rest on "
        "ACKs then");
  const auto& registry = BackgroundRegistry::instance();
  for (const Spec& item : list.items()) {
    const std::string kind = item.at("kind").one_of(registry.names());
    entries.push_back(registry.find(kind)->make()->read(item, context));
  }
  return entries;
}

void install_background(const std::vector<std::shared_ptr<const BackgroundTraffic>>& entries, Internet& internet,
                        TransferLog& log) {
  std::set<NodeId> hosts;
  for (const auto& entry : entries)
    for (const NodeId host : entry->hosts()) hosts.insert(host);
  for (const NodeId host : hosts) internet.install(host);
  for (const auto& entry : entries) entry->install(internet, log);
}

}  // namespace weft
