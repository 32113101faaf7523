// SPDX-License-Identifier: GPL-2.0-only
#include "app/running/ns3_settings.hpp"

#include <fmt/format.h>

#include "app/processes/prepare.hpp"
#include "fabric/ns3/ns3_attributes.hpp"
#include "fabric/ns3/ns3_view.hpp"

namespace weft {

// One after another and known to all processes before the next, so that the last one wins also where they overlap.
void apply_ns3_attributes(const Experiment& experiment, Simulation& simulation) {
  if (experiment.ns3_attributes.empty()) return;
  ProcessGroup& group = simulation.group();
  const Ns3View view(simulation.fabric(), *experiment.topology);
  for (const auto& attribute : experiment.ns3_attributes) {
    std::size_t objects = 0;
    prepare(group, [&] { objects = set_ns3_attribute(attribute.first, attribute.second); });
    const bool none = group.sum(objects) == 0;
    prepare(group, [&] {
      if (!none) return;
      throw attribute.second.error(fmt::format(
          "nothing has the ns-3 config path '{}'; this machine has {} hosts and {} switches, whose ports are such as "
          "/Names/host0/DeviceList/0 and /Names/switch0/DeviceList/1, and its links such as "
          "/Names/host0/DeviceList/0/Channel",
          attribute.first, experiment.topology->graph.host_count(), experiment.topology->graph.switch_count()));
    });
    simulation.fabric().settle_links(group);
  }
}

}  // namespace weft
