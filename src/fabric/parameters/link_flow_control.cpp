// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/parameters/link_flow_control.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/basics/error.hpp"

namespace weft {
namespace {

// For each class: true if all of its links are inside servers, also where switches have units for reductions.
std::vector<bool> classes_inside_servers(const Topology& topology) {
  const ClusterGraph& graph = topology.graph;
  std::vector<bool> inside(topology.link_classes.size(), true);
  std::vector<bool> in_server(topology.link_classes.size(), false);
  for (std::uint32_t l = 0; l < graph.link_count(); ++l) {
    const std::uint8_t link_class = topology.link_class[l];
    for (const NodeId end : graph.link(LinkId(l)).ends) {
      if (graph.node(end).in_server)
        in_server[link_class] = true;
      else if (!graph.is_host(end))
        inside[link_class] = false;
    }
  }
  for (std::size_t c = 0; c < inside.size(); ++c) inside[c] = inside[c] && in_server[c];
  return inside;
}

}  // namespace

bool has_credits_inside_servers(const SwitchParameters& parameters) {
  const bool may_overflow = parameters.buffer.size || parameters.buffer.queue;
  return parameters.flow_control == FlowControl::pfc || (parameters.flow_control == FlowControl::none && may_overflow);
}

std::vector<FlowControl> flow_control_of_classes(const SwitchParameters& parameters, const Topology& topology) {
  std::vector<FlowControl> kinds(topology.link_classes.size(), parameters.flow_control);
  if (has_credits_inside_servers(parameters)) {
    const std::vector<bool> inside = classes_inside_servers(topology);
    for (std::size_t c = 0; c < kinds.size(); ++c)
      if (inside[c]) kinds[c] = FlowControl::credit;
  }
  for (const LinkClassParameters& wanted : parameters.link_classes) {
    const auto at = std::find(topology.link_classes.begin(), topology.link_classes.end(), wanted.name);
    if (at == topology.link_classes.end())
      throw InputError(wanted.place, fmt::format("there is no class of links '{}'; this machine has {}", wanted.name,
                                                 fmt::join(topology.link_classes, ", ")));
    if (wanted.flow_control) kinds[static_cast<std::size_t>(at - topology.link_classes.begin())] = *wanted.flow_control;
  }
  return kinds;
}

}  // namespace weft
