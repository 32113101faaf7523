// SPDX-License-Identifier: GPL-2.0-only
// From the `topology:` map of an experiment to a checked machine.
#include "graph/topology/topology_builder.hpp"

#include <boost/graph/connected_components.hpp>
#include <fmt/format.h>

#include "graph/machine/boost_graph.hpp"
#include "support/basics/contract.hpp"

namespace weft {
namespace {

void check_size(const ClusterGraph& graph, const Spec& spec) {
  if (graph.host_count() == 0) throw spec.error("the machine has no host; at least 1 is needed");
  if (graph.node_count() > max_nodes)
    throw spec.error(
        fmt::format("the machine has {} nodes; at most {} can be simulated", graph.node_count(), max_nodes));
}

void check_hosts(const ClusterGraph& graph, const Spec& spec) {
  for (std::uint32_t i = 0; i < graph.host_count(); ++i) {
    const std::size_t ports = graph.ports(NodeId(i)).size();
    if (ports != 1)
      throw spec.error(fmt::format("{} has {} links; a host has exactly 1", graph.name(NodeId(i)), ports));
  }
}

void check_links(const ClusterGraph& graph, const Spec& spec) {
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    const LinkProperties& link = graph.link(LinkId(i));
    const auto between = [&] { return fmt::format("{} - {}", graph.name(link.ends[0]), graph.name(link.ends[1])); };
    if (link.rate <= Bandwidth()) throw spec.error(fmt::format("link {} has no rate; it must be above 0", between()));
    if (link.delay <= Time()) {
      throw spec.error(fmt::format(
          "link {} has no delay: zero delay links cannot be simulated in parallel; write at least '1 ps'", between()));
    }
  }
}

void check_ports(const ClusterGraph& graph) {
  for (std::uint32_t i = 0; i < graph.node_count(); ++i) {
    const auto ports = graph.ports(NodeId(i));
    for (std::size_t port = 0; port < ports.size(); ++port)
      WEFT_EXPECT(ports[port].link.valid(), "{} has {} ports, but nothing at port {}", graph.name(NodeId(i)),
                  ports.size(), port);
  }
}

void check_connected(const ClusterGraph& graph, const Spec& spec) {
  std::vector<std::uint32_t> component(graph.node_count());
  if (boost::connected_components(boost_graph(graph), component.data()) == 1) return;
  for (std::uint32_t i = 1; i < graph.node_count(); ++i) {
    if (component[i] == component[0]) continue;
    throw spec.error(fmt::format("the machine is not connected: {} cannot be reached from {}", graph.name(NodeId(i)),
                                 graph.name(NodeId(0))));
  }
}

}  // namespace

std::uint8_t Topology::add_class(const std::string& name) {
  WEFT_EXPECT(link_classes.size() < 255, "{} classes of links", link_classes.size());
  link_classes.push_back(name);
  return static_cast<std::uint8_t>(link_classes.size() - 1);
}

LinkId Topology::add(std::uint8_t of_class, NodeId a, NodeId b, Bandwidth rate, Time delay) {
  link_class.push_back(of_class);
  return graph.add_link(a, b, rate, delay);
}

LinkId Topology::connect(std::uint8_t of_class, NodeId a, std::uint32_t port_a, NodeId b, std::uint32_t port_b,
                         Bandwidth rate, Time delay) {
  link_class.push_back(of_class);
  return graph.connect(a, port_a, b, port_b, rate, delay);
}

Topology build_part(const Spec& spec) {
  const auto& registry = TopologyRegistry::instance();
  const std::string name = spec.at("kind").one_of(registry.names());
  // Read before the family finishes the map.
  std::vector<std::pair<const TopologyExtension*, Spec>> wanted;
  std::vector<std::unique_ptr<TopologyExtension>> extensions;
  for (const auto& [key, entry] : ExtensionRegistry::instance().entries()) {
    if (const auto value = spec.find(key)) {
      extensions.push_back(entry.make());
      wanted.emplace_back(extensions.back().get(), *value);
    }
  }
  Topology topology = registry.find(name)->make()->build(spec);
  topology.kind = name;
  for (const auto& [extension, value] : wanted) {
    topology = extension->extend(value, std::move(topology));
    topology.kind = name;
  }
  return topology;
}

Topology build_topology(const Spec& spec) {
  Topology topology = build_part(spec);
  const std::string name = topology.kind;
  for (const auto& [key, entry] : ExtensionRegistry::instance().entries())
    if (!spec.has(key)) topology = entry.make()->by_default(std::move(topology));
  topology.kind = name;
  check_size(topology.graph, spec);
  check_hosts(topology.graph, spec);
  check_ports(topology.graph);
  check_links(topology.graph, spec);
  check_connected(topology.graph, spec);
  WEFT_EXPECT(topology.link_class.size() == topology.graph.link_count(), "topology '{}': {} link classes for {} links",
              name, topology.link_class.size(), topology.graph.link_count());
  return topology;
}

}  // namespace weft
