// SPDX-License-Identifier: GPL-2.0-only
// What if links were faster, or nearer: `what_if:` beside the parameters of a family.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/topology/topology_builder.hpp"
#include "topologies/files/node_names.hpp"

namespace weft {
namespace {

constexpr double max_factor = 1e6;

/// True for each link of the classes that `name` lists, or of all.
std::vector<bool> links_of(const Spec& name, const Topology& machine) {
  std::vector<bool> wanted(machine.link_classes.size());
  const std::vector<Spec> names = name.is_sequence() ? name.items() : std::vector<Spec>{name};
  for (const Spec& one : names) {
    if (one.text() == "all") {
      wanted.assign(wanted.size(), true);
      continue;
    }
    const auto found = std::find(machine.link_classes.begin(), machine.link_classes.end(), one.text());
    if (found == machine.link_classes.end())
      throw one.error(fmt::format("found '{}'; expected 'all' or a class of this machine's links: {}", one.text(),
                                  fmt::join(machine.link_classes, ", ")));
    wanted[static_cast<std::size_t>(found - machine.link_classes.begin())] = true;
  }
  std::vector<bool> links(machine.graph.link_count());
  for (std::size_t link = 0; link < links.size(); ++link) links[link] = wanted[machine.link_class[link]];
  return links;
}

/// True for the links between two nodes.
std::vector<bool> links_between(const Spec& pair, const ClusterGraph& graph) {
  const std::vector<Spec> ends = pair.items();
  if (ends.size() != 2) throw pair.error("expected the two ends of a link: [leaf0, spine0]");
  const NodeId a = read_node(ends[0], graph), b = read_node(ends[1], graph);
  std::vector<bool> links(graph.link_count());
  bool any = false;
  for (const PortEnd& port : graph.ports(a)) {
    if (port.peer != b) continue;
    any = links[port.link.value()] = true;
  }
  if (!any) throw ends[1].error(fmt::format("{} has no link to {}", graph.name(a), graph.name(b)));
  return links;
}

std::int64_t scaled(std::int64_t value, double factor) {
  const double result = static_cast<double>(value) * factor;
  constexpr auto limit = static_cast<double>(std::numeric_limits<std::int64_t>::max() / 2);
  return std::max<std::int64_t>(1, std::llround(std::min(result, limit)));
}

class WhatIf final : public TopologyExtension {
 public:
  /// Rates and delays of the chosen links become so many times as large, rounded to 1 b/s and 1 ps. What was chosen for
  /// the machine as it is, such as channels and algorithms of collectives, remains.
  Topology extend(const Spec& value, Topology machine) const override {
    for (const Spec& change : value.items()) apply(change, machine);
    return machine;
  }

 private:
  static void apply(const Spec& change, Topology& machine) {
    const auto of_class = change.find("links"), between = change.find("link");
    if (of_class && between) throw between->error("found with 'links'; expected one of the two");
    const std::vector<bool> chosen = of_class  ? links_of(*of_class, machine)
                                     : between ? links_between(*between, machine.graph)
                                               : std::vector<bool>(machine.graph.link_count(), true);
    const auto factor = [&](const char* key) {
      const auto given = change.find(key);
      return given ? given->number(1 / max_factor, max_factor) : 1.0;
    };
    const double rate = factor("rate"), delay = factor("delay");
    if (!change.has("rate") && !change.has("delay"))
      throw change.error("expected 'rate' or 'delay', such as {links: all, rate: 2}: twice as fast");
    change.finish();
    ClusterGraph& graph = machine.graph;
    for (std::uint32_t i = 0; i < chosen.size(); ++i) {
      if (!chosen[i]) continue;
      const LinkProperties& link = graph.link(LinkId(i));
      graph.set_speed(LinkId(i), Bandwidth::from_bps(scaled(link.rate.bps(), rate)),
                      Time::from_ps(scaled(link.delay.ps(), delay)));
    }
    if (std::find(chosen.begin(), chosen.end(), false) == chosen.end())
      machine.bisection_bps = machine.bisection_bps == 0 ? 0 : scaled(machine.bisection_bps, rate);
    else if (rate != 1)
      machine.bisection_bps = 0;  // the family's formula does not hold any more
  }
};

const Registration<TopologyExtension, WhatIf> what_if_registration("what_if", "what if links were faster, or nearer");

}  // namespace
}  // namespace weft
