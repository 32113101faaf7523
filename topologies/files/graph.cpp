// SPDX-License-Identifier: GPL-2.0-only
// Any machine, written down link by link.
#include <fmt/format.h>

#include "graph/topology/link_spec.hpp"
#include "graph/topology/topology_builder.hpp"
#include "topologies/files/node_names.hpp"

namespace weft {
namespace {

enum GraphLinkClass : std::uint8_t { graph_host_link, graph_switch_link };

/// Rates and delays of links without their own values.
struct LinkDefaults {
  std::optional<Bandwidth> rate;
  std::optional<Time> delay;
};

class GraphLinksReader {
 public:
  GraphLinksReader(Topology& topology, LinkDefaults defaults) : topology_(topology), defaults_(defaults) {
    line_of_host_.resize(topology.graph.host_count());
  }

  void add(const Spec& spec) {
    ClusterGraph& graph = topology_.graph;
    const Spec from = spec.at("from");
    const Spec to = spec.at("to");
    const NodeId a = read_node(from, graph);
    const NodeId b = read_node(to, graph);
    const Bandwidth rate = defaults_.rate && !spec.has("rate") ? *defaults_.rate : spec.at("rate").bandwidth();
    const Time delay = defaults_.delay && !spec.has("delay") ? *defaults_.delay : read_link_delay(spec.at("delay"));
    const auto framing = spec.find("framing");
    spec.finish();
    if (a == b) throw spec.error(fmt::format("{} is linked to itself; 'from' and 'to' must differ", graph.name(a)));
    take_port(a, from);
    take_port(b, to);
    const LinkId link = graph.add_link(a, b, rate, delay);
    if (framing) graph.set_framing(link, read_link_framing(*framing));
    topology_.link_class.push_back(graph.is_host(a) || graph.is_host(b) ? graph_host_link : graph_switch_link);
  }

 private:
  void take_port(NodeId node, const Spec& spec) {
    const ClusterGraph& graph = topology_.graph;
    if (graph.ports(node).size() >= ClusterGraph::max_ports)
      throw spec.error(
          fmt::format("{} has {} links already, the most a node can have", graph.name(node), ClusterGraph::max_ports));
    if (!graph.is_host(node)) return;
    std::string& taken = line_of_host_[node.value()];
    if (!taken.empty()) {
      throw spec.error(fmt::format("{} has a link already (at {}); a host has exactly 1, so attach it to a switch",
                                   graph.name(node), taken));
    }
    taken = spec.where().text();
  }

  Topology& topology_;
  LinkDefaults defaults_;
  std::vector<std::string> line_of_host_;  ///< the place of the one link of each host in the file, "" if none so far
};

class AnyGraph final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    const Spec hosts = spec.at("hosts");
    const std::int64_t host_count = hosts.integer(1, max_nodes);
    const auto switches = spec.find("switches");
    const std::int64_t switch_count = switches ? switches->integer(0, max_nodes) : 0;
    Topology topology;
    for (std::int64_t i = 0; i < host_count; ++i) topology.graph.add_host();
    for (std::int64_t i = 0; i < switch_count; ++i) topology.graph.add_switch(1);
    topology.routing = "shortest_path";
    topology.link_classes = {"host", "switch"};

    LinkDefaults defaults;
    if (const auto rate = spec.find("link_rate")) defaults.rate = rate->bandwidth();
    if (const auto delay = spec.find("link_delay")) defaults.delay = read_link_delay(*delay);
    GraphLinksReader reader(topology, defaults);
    for (const Spec& link : spec.at("links").items()) reader.add(link);
    spec.finish();
    for (std::uint32_t i = 0; i < topology.graph.host_count(); ++i) {
      if (topology.graph.ports(NodeId(i)).empty())
        throw hosts.error(fmt::format("{} has no link; a host has exactly 1", topology.graph.name(NodeId(i))));
    }
    return topology;
  }
};

const Registration<TopologyBuilder, AnyGraph> graph_registration(
    "graph", "any machine: {hosts, switches, links: [{from, to, rate, delay}, ...], [link_rate, link_delay]}");

}  // namespace
}  // namespace weft
