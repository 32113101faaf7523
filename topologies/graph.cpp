// SPDX-License-Identifier: GPL-2.0-only
// Any machine, written down link by link.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "graph/link_spec.hpp"
#include "graph/topology_builder.hpp"

namespace weft {
namespace {

enum LinkClass : std::uint8_t { host_link, switch_link };

/// The number of a name like "host3" after `prefix`, without leading zeros.
std::optional<std::uint32_t> number_after(const std::string& prefix, const std::string& name) {
  if (name.size() <= prefix.size() || name.compare(0, prefix.size(), prefix) != 0) return std::nullopt;
  std::uint32_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, status] = std::from_chars(name.data() + prefix.size(), end, number);
  if (status != std::errc() || stop != end || prefix + std::to_string(number) != name) return std::nullopt;
  return number;
}

/// "host0" or "host0..host7"; "none" for 0.
std::string name_range(const std::string& prefix, std::uint32_t count) {
  if (count == 0) return "no " + prefix;
  return count == 1 ? prefix + "0" : fmt::format("{0}0..{0}{1}", prefix, count - 1);
}

NodeId read_node(const Spec& spec, const ClusterGraph& graph) {
  const std::string name = spec.text();
  if (const auto host = number_after("host", name); host && *host < graph.host_count()) return NodeId(*host);
  if (const auto number = number_after("switch", name); number && *number < graph.switch_count())
    return NodeId(graph.host_count() + *number);
  std::vector<std::string> known;
  constexpr std::uint32_t enough = 1000;
  for (std::uint32_t i = 0; i < std::min(graph.node_count(), enough); ++i) known.push_back(graph.name(NodeId(i)));
  throw spec.error(fmt::format("unknown node '{}'{}; the nodes are {} and {}", name, did_you_mean(name, known),
                               name_range("host", graph.host_count()), name_range("switch", graph.switch_count())));
}

/// Rates and delays of links that do not say their own.
struct LinkDefaults {
  std::optional<Bandwidth> rate;
  std::optional<Time> delay;
};

class LinkListReader {
 public:
  LinkListReader(Topology& topology, LinkDefaults defaults) : topology_(topology), defaults_(defaults) {
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
    spec.finish();
    if (a == b) throw spec.error(fmt::format("{} is linked to itself; 'from' and 'to' must differ", graph.name(a)));
    take_port(a, from);
    take_port(b, to);
    graph.add_link(a, b, rate, delay);
    topology_.link_class.push_back(graph.is_host(a) || graph.is_host(b) ? host_link : switch_link);
  }

 private:
  void take_port(NodeId node, const Spec& spec) {
    const ClusterGraph& graph = topology_.graph;
    if (graph.ports(node).size() >= ClusterGraph::most_ports)
      throw spec.error(
          fmt::format("{} has {} links already, the most a node can have", graph.name(node), ClusterGraph::most_ports));
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
  std::vector<std::string> line_of_host_;  ///< where the one link of each host stands, "" if none so far
};

class AnyGraph final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    const Spec hosts = spec.at("hosts");
    const std::int64_t host_count = hosts.integer(1, most_nodes);
    const auto switches = spec.find("switches");
    const std::int64_t switch_count = switches ? switches->integer(0, most_nodes) : 0;
    Topology topology;
    for (std::int64_t i = 0; i < host_count; ++i) topology.graph.add_host();
    for (std::int64_t i = 0; i < switch_count; ++i) topology.graph.add_switch(1);
    topology.routing = "shortest_path";
    topology.link_classes = {"host", "switch"};

    LinkDefaults defaults;
    if (const auto rate = spec.find("link_rate")) defaults.rate = rate->bandwidth();
    if (const auto delay = spec.find("link_delay")) defaults.delay = read_link_delay(*delay);
    LinkListReader reader(topology, defaults);
    for (const Spec& link : spec.at("links").items()) reader.add(link);
    spec.finish();
    for (std::uint32_t i = 0; i < topology.graph.host_count(); ++i) {
      if (topology.graph.ports(NodeId(i)).empty())
        throw hosts.error(fmt::format("{} has no link; a host has exactly 1", topology.graph.name(NodeId(i))));
    }
    return topology;
  }
};

const Registration<TopologyBuilder, AnyGraph> registration(
    "graph", "any machine: {hosts, switches, links: [{from, to, rate, delay}, ...], [link_rate, link_delay]}");

}  // namespace
}  // namespace weft
