// SPDX-License-Identifier: GPL-2.0-only
// Writing a machine for other programs.
#include "graph/topology/graph_export.hpp"

#include <boost/graph/graphml.hpp>
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include "units/text.hpp"

namespace weft {
namespace {

struct NamedNode {
  std::string name;
  std::string kind;
  int tier = 0;
  std::int64_t group = -1;
};
struct NamedLink {
  std::int64_t rate_bps = 0;
  std::int64_t delay_ps = 0;
  std::string link_class;
};
using NamedGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, NamedNode, NamedLink>;

NamedNode named(const ClusterGraph& graph, std::uint32_t node) {
  const NodeProperties& properties = graph.node(NodeId(node));
  return {graph.plain_name(NodeId(node)), graph.is_host(NodeId(node)) ? "host" : "switch", properties.tier,
          properties.group == no_group ? -1 : std::int64_t{properties.group}};
}

NamedLink named(const Topology& topology, std::uint32_t link) {
  const LinkProperties& properties = topology.graph.link(LinkId(link));
  return {properties.rate.bps(), properties.delay.ps(), topology.link_classes[topology.link_class[link]]};
}

}  // namespace

void write_graphml(const Topology& topology, std::ostream& out) {
  const ClusterGraph& graph = topology.graph;
  NamedGraph copy(graph.node_count());
  for (std::uint32_t i = 0; i < graph.node_count(); ++i) copy[i] = named(graph, i);
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    const auto& ends = graph.link(LinkId(i)).ends;
    boost::add_edge(ends[0].value(), ends[1].value(), named(topology, i), copy);
  }
  boost::dynamic_properties properties;
  properties.property("name", boost::get(&NamedNode::name, copy));
  properties.property("kind", boost::get(&NamedNode::kind, copy));
  properties.property("tier", boost::get(&NamedNode::tier, copy));
  properties.property("group", boost::get(&NamedNode::group, copy));
  properties.property("rate_bps", boost::get(&NamedLink::rate_bps, copy));
  properties.property("delay_ps", boost::get(&NamedLink::delay_ps, copy));
  properties.property("class", boost::get(&NamedLink::link_class, copy));
  boost::write_graphml(out, copy, properties, true);
}

void write_dot(const Topology& topology, std::ostream& out) {
  const ClusterGraph& graph = topology.graph;
  fmt::print(out, "graph \"{}\" {{\n  node [shape=box];\n", topology.kind);
  for (std::uint32_t i = 0; i < graph.node_count(); ++i) {
    const NamedNode node = named(graph, i);
    fmt::print(out, "  {} [kind={}, tier={}, group=\"{}\"{}];\n", node.name, node.kind, node.tier, node.group,
               graph.is_host(NodeId(i)) ? ", shape=circle" : "");
  }
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    const auto& ends = graph.link(LinkId(i)).ends;
    const NamedLink link = named(topology, i);
    fmt::print(out, "  {} -- {} [class=\"{}\", rate_bps=\"{}\", delay_ps=\"{}\"];\n", graph.plain_name(ends[0]),
               graph.plain_name(ends[1]), link.link_class, link.rate_bps, link.delay_ps);
  }
  out << "}\n";
}

void write_yaml(const Topology& topology, std::ostream& out) {
  const ClusterGraph& graph = topology.graph;
  fmt::print(out, "kind: graph\nhosts: {}\nswitches: {}\nlinks:\n", graph.host_count(), graph.switch_count());
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    const LinkProperties& link = graph.link(LinkId(i));
    const LinkFraming& framing = link.framing;
    fmt::print(out, "  - {{from: {}, to: {}, rate: {}, delay: {}{}}}\n", graph.plain_name(link.ends[0]),
               graph.plain_name(link.ends[1]), to_text(link.rate), to_text(link.delay),
               framing.payload == 0 ? ""
                                    : fmt::format(", framing: {{payload: {} B, overhead: {} B, answer: {} B}}",
                                                  framing.payload, framing.overhead, framing.answer));
  }
  if (!topology.storage_hosts().empty())
    fmt::print(out, "storage_hosts: [{}]\n", fmt::join(topology.storage_hosts(), ", "));
}

}  // namespace weft
