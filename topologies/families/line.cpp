// SPDX-License-Identifier: GPL-2.0-only
// Two hosts at the ends of a chain of switches.
#include <algorithm>

#include <fmt/format.h>

#include "graph/topology/link_spec.hpp"
#include "graph/topology/topology_builder.hpp"

namespace weft {
namespace {

enum LineLinkClass : std::uint8_t { line_host_link, line_switch_link };

constexpr std::int64_t max_links = 1'000'000;

Bandwidth read_rate(const Spec& value) { return value.bandwidth(); }

/// One value for all links or a list of one per link, each read by `read`.
template <class Value>
std::vector<Value> read_each(const Spec& spec, std::size_t links, Value (*read)(const Spec&)) {
  if (!spec.is_sequence()) return std::vector<Value>(links, read(spec));
  if (spec.size() != links)
    throw spec.error(fmt::format("{} values for {} links; write one value, or one for each link", spec.size(), links));
  std::vector<Value> values;
  for (const Spec& item : spec.items()) values.push_back(read(item));
  return values;
}

/// host0 - switch0 - switch1 - ... - host1; link i is the i-th from host0, direction 0 leads towards host1.
class Line final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    if (const auto hosts = spec.find("hosts")) hosts->integer(2, 2);
    const auto links = static_cast<std::size_t>(spec.at("links").integer(1, max_links));
    const auto rates = read_each(spec.at("link_rate"), links, read_rate);
    const auto delays = read_each(spec.at("link_delay"), links, read_link_delay);
    spec.finish();

    Topology topology;
    NodeId here = topology.graph.add_host();
    const NodeId last = topology.graph.add_host();
    for (std::size_t i = 0; i < links; ++i) {
      const bool at_end = i == 0 || i + 1 == links;
      const NodeId next = i + 1 == links ? last : topology.graph.add_switch(1);
      topology.graph.add_link(here, next, rates[i], delays[i]);
      topology.link_class.push_back(at_end ? line_host_link : line_switch_link);
      here = next;
    }
    topology.routing = "shortest_path";
    topology.link_classes = {"host", "switch"};
    topology.bisection_bps = std::min_element(rates.begin(), rates.end())->bps();
    return topology;
  }
};

const Registration<TopologyBuilder, Line> line_registration(
    "line", "two hosts at the ends of a chain of links: {links, link_rate, link_delay}, one value each or a list");

}  // namespace
}  // namespace weft
