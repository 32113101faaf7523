// SPDX-License-Identifier: GPL-2.0-only
// The facts about a machine that `weft topology` prints.
#include "app/analysis/topology_report.hpp"

#include <algorithm>
#include <tuple>

#include "fabric/parameters/network_parameters.hpp"
#include "graph/shapes/reduction_shape.hpp"
#include "graph/shapes/server_shape.hpp"
#include "routing/algorithm/deadlock_check.hpp"
#include "routing/algorithm/path.hpp"
#include "support/basics/random.hpp"

namespace weft {
namespace {

/// Light takes 5 ns for a metre of fibre (refractive index 1.468: 4.9 ns) and copper is much the same, so that lengths
/// follow from delays. Passive copper reaches 3 m, multimode fibre 100 m (IEEE 802.3db).
std::string length_class(Time delay) {
  const std::int64_t metres = (delay.ps() + 4999) / 5000;
  return metres <= 3 ? "up to 3 m" : metres <= 30 ? "up to 30 m" : metres <= 100 ? "up to 100 m" : "longer";
}

void count_links(const Topology& topology, TopologyReport& report) {
  struct Count {
    std::uint64_t links = 0;
    std::uint64_t network_ends = 0;
  };
  std::map<std::tuple<std::uint8_t, Bandwidth, Time>, Count> classes;
  const ClusterGraph& graph = topology.graph;
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    const LinkProperties& link = graph.link(LinkId(i));
    Count& count = classes[{topology.link_class[i], link.rate, link.delay}];
    ++count.links;
    for (const NodeId end : link.ends)
      if (!graph.is_host(end) && !graph.node(end).in_server) ++count.network_ends;
    ++report.cables[length_class(link.delay)];
    if (!graph.is_host(link.ends[0]) && !graph.is_host(link.ends[1])) ++report.switch_links;
  }
  for (const auto& [key, count] : classes)
    report.classes.push_back(
        {topology.link_classes[std::get<0>(key)], std::get<1>(key), std::get<2>(key), count.links, count.network_ends});
  for (std::uint32_t i = graph.host_count(); i < graph.node_count(); ++i)
    ++report.switch_ports[static_cast<std::uint32_t>(graph.ports(NodeId(i)).size())];
}

/// A NIC is a node of a server with a link to a switch of the network; a host without a server has one at each link.
void count_materials(const Topology& topology, BillOfMaterials& bill) {
  const ClusterGraph& graph = topology.graph;
  if (const auto* shape = shape_of<ServerShape>(topology)) bill.servers = shape->servers;
  const auto of_network = [&](NodeId node) { return !graph.is_host(node) && !graph.node(node).in_server; };
  for (std::uint32_t i = 0; i < graph.node_count(); ++i) {
    const auto ports = graph.ports(NodeId(i));
    const auto outwards = static_cast<std::uint64_t>(
        std::count_if(ports.begin(), ports.end(), [&](const PortEnd& port) { return of_network(port.peer); }));
    if (of_network(NodeId(i)))
      ++bill.switch_ports[static_cast<std::uint32_t>(ports.size())];
    else
      bill.nics += graph.is_host(NodeId(i)) ? outwards : outwards > 0 ? 1 : 0;
  }
}

/// A few pairs of different switches that have hosts.
void count_disjoint_paths(const ClusterGraph& graph, TopologyReport& report) {
  std::vector<NodeId> edges;
  for (std::uint32_t i = graph.host_count(); i < graph.node_count(); ++i) {
    const auto ports = graph.ports(NodeId(i));
    if (std::any_of(ports.begin(), ports.end(), [&](const PortEnd& port) { return graph.is_host(port.peer); }))
      edges.emplace_back(i);
  }
  if (edges.size() < 2) return;
  const std::uint32_t pairs = graph.link_count() < 20'000 ? 16 : 2;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    const auto a = static_cast<std::size_t>(random_below(edges.size(), 1, i, 0));
    const auto b = (a + 1 + static_cast<std::size_t>(random_below(edges.size() - 1, 1, i, 1))) % edges.size();
    const std::uint32_t paths = edge_disjoint_paths(graph, edges[a], edges[b]);
    report.fewest_disjoint = i == 0 ? paths : std::min(report.fewest_disjoint, paths);
    report.max_disjoint = std::max(report.max_disjoint, paths);
  }
}

/// Lengths of the ways: all pairs of a small machine, else a sample.
void trace_routes(const Topology& topology, const RoutingAlgorithm& routing, TopologyReport& report) {
  const std::uint32_t hosts = topology.graph.host_count();
  const auto trace = [&](std::uint32_t source, std::uint32_t destination) {
    ++report.routed[static_cast<std::uint32_t>(
        trace_path(topology, routing, {NodeId(source), NodeId(destination), 0}).size())];
  };
  constexpr std::uint64_t max_pairs = 200'000;
  if (std::uint64_t{hosts} * (hosts - 1) <= max_pairs) {
    for (std::uint32_t source = 0; source < hosts; ++source)
      for (std::uint32_t destination = 0; destination < hosts; ++destination)
        if (source != destination) trace(source, destination);
    return;
  }
  for (std::uint64_t i = 0; i < max_pairs / 10; ++i) {
    const auto source = static_cast<std::uint32_t>(random_below(hosts, 2, i, 0));
    trace(source, static_cast<std::uint32_t>((source + 1 + random_below(hosts - 1, 2, i, 1)) % hosts));
  }
}

void examine_routing(const Topology& topology, TopologyReport& report) {
  const auto routing = RoutingRegistry::instance().find(report.routing)->make();
  routing->prepare(topology, 1);
  report.lanes = routing->lanes();
  if (topology.graph.host_count() < 2) return;
  trace_routes(topology, *routing, report);
  constexpr std::uint32_t max_links = 5'000;  // some seconds
  if (topology.graph.link_count() > max_links) return;
  const DeadlockReport deadlock = check_deadlock(topology, *routing);
  report.deadlock_searched = true;
  report.deadlock_possible = !deadlock.free_of_deadlock();
  report.deadlock_cycle = to_text(topology, deadlock.cycle);
}

}  // namespace

std::int64_t TopologyReport::bisection_bps() const {
  const std::int64_t found = estimate.flow_bps >= 0 ? estimate.flow_bps : estimate.cut_bps;
  return formula_bps > 0 ? std::min(formula_bps, found) : found;
}

TopologyReport report_topology(const Topology& whole, const std::vector<std::uint32_t>& processes,
                               const std::string& routing) {
  const Topology& topology = machine_of(whole);
  const ClusterGraph& graph = topology.graph;
  TopologyReport report;
  report.kind = topology.kind;
  report.routing = routing.empty() ? topology.routing : routing;
  report.hosts = graph.host_count();
  report.reduction_units = whole.graph.host_count() - graph.host_count();
  report.storage_hosts = topology.storage_hosts().size();
  report.switches = graph.switch_count();
  report.links = graph.link_count();
  count_links(topology, report);
  count_materials(topology, report.bill);
  report.distances = measure_distances(graph);
  examine_routing(topology, report);
  report.formula_bps = topology.bisection_bps;
  if (graph.host_count() >= 2) report.estimate = estimate_bisection(graph);
  count_disjoint_paths(graph, report);
  for (const std::uint32_t parts : processes)
    report.partitions.push_back(make_partition(whole, parts, "auto", NetworkParameters().min_wire(), 1));
  return report;
}

}  // namespace weft
