// SPDX-License-Identifier: GPL-2.0-only
// Routing of machines whose endpoints are servers: inside a server by its own shortest paths, of equally short ones by
// those with the most NVLinks, between the NICs by the network's routing. After failures in the network flows keep
// their NICs, because it is NCCL that has chosen them, and take the shortest of the ways that are left between these.
#include <array>
#include <limits>
#include <string_view>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <fmt/format.h>

#include "graph/shapes/server_shape.hpp"
#include "routing/algorithm/range_routing.hpp"
#include "routing/algorithm/reciprocal.hpp"
#include "support/documents/spec.hpp"

namespace weft {
namespace {

class ServerRouting final : public RoutingAlgorithm {
 public:
  void prepare(const Topology& topology, std::uint64_t seed) override {
    prepare_servers(topology, seed);
    if (!shape_->network) return;
    const Topology& network = *shape_->network;
    const std::string& name = shape_->design.network_routing.empty() ? network.routing : shape_->design.network_routing;
    const auto* entry = RoutingRegistry::instance().find(name);
    if (entry == nullptr) {
      const std::vector<std::string> known = RoutingRegistry::instance().names();
      throw InputError(SourceLine{}, fmt::format("unknown network_routing '{}'{}; known here: {}", name,
                                                 did_you_mean(name, known), fmt::join(known, ", ")));
    }
    inner_ = entry->make();
    inner_->prepare(network, seed);
  }

  void prepare_without(const Topology& topology, std::uint64_t seed, const std::vector<bool>& dead) override {
    prepare_servers(topology, seed);
    anywhere_ = RoutingRegistry::instance().find("shortest_path")->make();
    anywhere_->prepare_without(topology, seed, dead);
    broken_.assign(shape_->servers, false);
    for (std::uint32_t node = hosts_; node < shape_->first_switch(); ++node)
      for (const PortEnd& end : topology.graph.ports(NodeId(node)))
        if (dead[end.link.value()] && end.peer.value() < shape_->first_switch())
          broken_[place(NodeId(node)).server] = true;
    if (!shape_->network) return;
    inner_ = RoutingRegistry::instance().find("shortest_path")->make();
    inner_->prepare_without(*shape_->network, seed, dead_between_nics(topology.graph, dead));
  }
  std::string_view after_failures() const override { return "server"; }

  void prepare_servers(const Topology& topology, std::uint64_t seed) {
    shape_ = require_shape<ServerShape>(topology, "server", "server, or any with servers");
    seed_ = seed;
    hosts_ = topology.graph.host_count();
    by_gpus_ = Reciprocal(shape_->design.gpus);
    by_nodes_ = Reciprocal(shape_->design.nodes);
    part_ = shape_->design.parts();
    find_ways(topology);
  }

  unsigned lanes() const override { return inner_ ? inner_->lanes() : 1; }
  bool per_packet() const override { return inner_ && inner_->per_packet(); }
  bool reorders() const override { return inner_ && inner_->reorders(); }

  std::uint32_t max_reported() const override { return inner_ ? inner_->max_reported() : 0; }
  QueueReports reports(NodeId at) const override {
    return inner_ && at.value() >= shape_->first_switch() ? inner_->reports(inner_node(at)) : QueueReports();
  }

  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    if (anywhere_ == nullptr) return route_by_nics(at, requests, ports);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (keeps_nics(requests[i]))
        route_by_nics(at, requests.subspan(i, 1), ports + i);
      else
        anywhere_->route(at, requests.subspan(i, 1), ports + i);
    }
  }

  void route_by_nics(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const {
    if (at.value() < hosts_) {
      std::fill_n(ports, requests.size(), std::uint16_t{0});
    } else if (at.value() < shape_->first_switch()) {
      for (std::size_t i = 0; i < requests.size(); ++i) ports[i] = port_in_server(at, requests[i]);
    } else {
      std::array<RouteRequest, 32> translated;
      for (std::size_t first = 0; first < requests.size(); first += translated.size()) {
        const std::size_t count = std::min(translated.size(), requests.size() - first);
        for (std::size_t i = 0; i < count; ++i) translated[i] = between_nics(requests[first + i]);
        inner_->route(inner_node(at), {translated.data(), count}, ports + first);
      }
    }
  }

  RouteChoice choose(NodeId at, const AdaptiveRequest& request, std::span<const Bytes> queued) const override {
    if (at.value() >= shape_->first_switch()) {
      AdaptiveRequest translated = request;
      translated.flow = between_nics(request.flow);
      return inner_->choose(inner_node(at), translated, queued);
    }
    RouteChoice choice;
    route(at, {&request.flow, 1}, &choice.port);
    return choice;
  }

  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    if (at.value() < hosts_) return {0};
    if (at.value() < shape_->first_switch()) {
      const Place here = place(at);
      const Target target = target_at(here, source_unknown, destination);
      if (!target.outside) return ways(here.inside, target.node, target.at_gpu);
      // Any port of the NIC that a flow may take.
      std::vector<std::uint16_t> ports;
      for (std::uint32_t port = 0; port < shape_->design.ports_per_nic; ++port)
        ports.push_back(static_cast<std::uint16_t>(network_port(here.inside) + port));
      return ports;
    }
    std::vector<std::uint16_t> ports;
    const std::uint32_t server = by_gpus_.quotient(destination.value());
    const std::uint32_t nic = shape_->design.nic_of_gpu[destination.value() - server * shape_->design.gpus];
    for (std::uint32_t port = 0; port < shape_->design.ports_per_nic; ++port)
      for (const std::uint16_t one : inner_->candidates(inner_node(at), shape_->endpoint(server, nic, port)))
        if (std::find(ports.begin(), ports.end(), one) == ports.end()) ports.push_back(one);
    std::sort(ports.begin(), ports.end());
    return ports;
  }

  std::vector<std::uint16_t> candidates_of(NodeId at, const RouteRequest& flow) const override {
    if (anywhere_ != nullptr && !keeps_nics(flow)) return anywhere_->candidates_of(at, flow);
    if (at.value() < shape_->first_switch()) return candidates(at, flow.destination);
    // The port of the NIC that the flow uses, as in route(), or the next one that is reachable in this network, or in
    // the rest of it after failures.
    RouteRequest translated = between_nics(flow);
    const std::uint32_t server = by_gpus_.quotient(flow.destination.value());
    const std::uint32_t nic = shape_->design.nic_of_gpu[gpu_of(flow.destination)];
    const std::uint32_t count = shape_->design.ports_per_nic;
    const std::uint32_t first = port_out(flow);
    for (std::uint32_t i = 0; i < count; ++i) {
      translated.destination = shape_->endpoint(server, nic, (first + i) % count);
      std::vector<std::uint16_t> ports = inner_->candidates_of(inner_node(at), translated);
      if (!ports.empty()) return ports;
    }
    return {};
  }

 private:
  static constexpr NodeId source_unknown = NodeId::none();
  static constexpr std::uint32_t unreachable = std::numeric_limits<std::uint32_t>::max();  // boost's distance
  struct Place {
    std::uint32_t server;
    std::uint32_t inside;
  };
  /// Where a packet is going within a server, or out of it if it has reached its NIC.
  struct Target {
    std::uint32_t node = 0;
    bool at_gpu = false;   ///< it is there: the host is next
    bool outside = false;  ///< it is at its NIC: the network is next
  };

  Place place(NodeId at) const {
    const std::uint32_t number = at.value() - hosts_;
    const std::uint32_t server = by_nodes_.quotient(number);
    return {server, number - server * shape_->design.nodes};
  }
  NodeId inner_node(NodeId at) const {
    return NodeId(at.value() - shape_->first_switch() + shape_->network->graph.host_count());
  }
  std::uint32_t gpu_of(NodeId host) const {
    return host.value() - by_gpus_.quotient(host.value()) * shape_->design.gpus;
  }
  std::uint32_t nic_out(NodeId source, NodeId destination) const {
    return shape_->design.nic_of_gpu[gpu_of(shape_->design.pxn ? destination : source)];
  }
  std::uint32_t port_out(const RouteRequest& flow) const {
    const std::uint32_t count = shape_->design.ports_per_nic;
    if (count == 1) return 0;
    constexpr NodeId no_node(0xfffffffeU);  // the same at both ends
    const std::uint32_t first = ecmp_choice(ecmp_hash(flow, no_node, seed_), count);
    for (std::uint32_t i = 0; anywhere_ != nullptr && i < count; ++i)
      if (joined(flow, (first + i) % count)) return (first + i) % count;
    return first;
  }

  /// After failures: whether the flow still reaches its destination over the NICs at its ends.
  bool keeps_nics(const RouteRequest& flow) const {
    const std::uint32_t source = by_gpus_.quotient(flow.source.value());
    const std::uint32_t destination = by_gpus_.quotient(flow.destination.value());
    if (broken_[source] || broken_[destination]) return false;
    if (source == destination && part_[gpu_of(flow.source)] == part_[gpu_of(flow.destination)]) return true;
    return joined(flow, port_out(flow));
  }
  /// The network joins these ports of the NICs at the flow's ends.
  bool joined(const RouteRequest& flow, std::uint32_t port) const {
    const RouteRequest ends = between_nics(flow, port);
    const ClusterGraph& network = shape_->network->graph;
    const PortEnd& out = network.ports(ends.source).front();
    const PortEnd& in = network.ports(ends.destination).front();
    if (dead_[out.link.value()] || dead_[in.link.value()]) return false;
    if (out.peer == in.peer || network.is_host(out.peer)) return true;
    std::uint16_t way = no_route;
    inner_->route(out.peer, {&ends, 1}, &way);
    return way != no_route;
  }
  /// [links of the network]
  const std::vector<bool>& dead_between_nics(const ClusterGraph& machine, const std::vector<bool>& dead) {
    const ClusterGraph& network = shape_->network->graph;
    dead_.assign(network.link_count(), false);
    for (std::uint32_t node = shape_->first_switch(); node < hosts_ + machine.switch_count(); ++node) {
      const auto ports = machine.ports(NodeId(node));
      const auto inner = network.ports(inner_node(NodeId(node)));
      for (std::size_t port = 0; port < ports.size(); ++port)
        if (dead[ports[port].link.value()]) dead_[inner[port].link.value()] = true;
    }
    const ServerDesign& design = shape_->design;
    for (std::uint32_t server = 0; server < shape_->servers; ++server) {
      for (std::uint32_t nic = 0; nic < design.nics.size(); ++nic) {
        const auto ports = machine.ports(shape_->node(server, design.nics[nic]));
        for (std::uint32_t port = 0; port < design.ports_per_nic; ++port) {
          const auto inner = network.ports(shape_->endpoint(server, nic, port));
          if (dead[ports[network_port(design.nics[nic]) + port].link.value()]) dead_[inner.front().link.value()] = true;
        }
      }
    }
    return dead_;
  }

  /// Flows of different GPUs that share two NICs stay different flows.
  RouteRequest between_nics(const RouteRequest& flow) const { return between_nics(flow, port_out(flow)); }
  RouteRequest between_nics(const RouteRequest& flow, std::uint32_t port) const {
    RouteRequest result;
    result.source =
        shape_->endpoint(by_gpus_.quotient(flow.source.value()), nic_out(flow.source, flow.destination), port);
    result.destination = shape_->endpoint(by_gpus_.quotient(flow.destination.value()),
                                          shape_->design.nic_of_gpu[gpu_of(flow.destination)], port);
    const std::uint64_t ends = std::uint64_t{flow.source.value()} << 32 | flow.destination.value();
    result.queue_pair = static_cast<std::uint32_t>(mix64(mix64(ends) + flow.queue_pair));
    return result;
  }

  Target target_at(const Place& here, NodeId source, NodeId destination) const {
    Target target;
    // GPUs of a server that nothing inside joins reach each other as those of different servers do.
    if (by_gpus_.quotient(destination.value()) == here.server && part_[here.inside] == part_[gpu_of(destination)]) {
      target.node = gpu_of(destination);
      target.at_gpu = target.node == here.inside;
      return target;
    }
    // Without the source (only for candidates()) a GPU's own port determines it; a NIC is the one to leave by.
    const std::uint32_t nics = static_cast<std::uint32_t>(shape_->design.nics.size());
    std::uint32_t nic = 0;
    if (source != source_unknown || shape_->design.pxn) {
      nic = nic_out(source, destination);
    } else if (here.inside < shape_->design.gpus) {
      nic = shape_->design.nic_of_gpu[here.inside];
    } else {
      while (nic + 1 < nics && shape_->design.nics[nic] != here.inside) ++nic;
    }
    target.node = shape_->design.nics[nic];
    target.outside = target.node == here.inside;
    return target;
  }

  std::uint16_t port_in_server(NodeId at, const RouteRequest& flow) const {
    const Place here = place(at);
    const Target target = target_at(here, flow.source, flow.destination);
    if (target.outside) return static_cast<std::uint16_t>(network_port(here.inside) + port_out(flow));
    if (target.at_gpu) return 0;
    const auto& choices = ways_[here.inside * shape_->design.nodes + target.node];
    const std::uint32_t which =
        choices.size() == 1 ? 0 : ecmp_choice(ecmp_hash(flow, at, seed_), static_cast<std::uint32_t>(choices.size()));
    return choices[which];
  }
  std::vector<std::uint16_t> ways(std::uint32_t from, std::uint32_t to, bool at_gpu) const {
    if (at_gpu) return {0};
    return ways_[from * shape_->design.nodes + to];
  }
  /// The first of a NIC's ports to the network.
  std::uint32_t network_port(std::uint32_t nic) const { return first_network_port_[nic]; }

  /// Shortest paths inside a server, the same for all servers. Two GPUs at one PCIe switch or NIC are as near over it
  /// as over NVLink, but CUDA and NCCL use NVLink (NCCL src/graph/paths.cc: PATH_NVL is nearer than PATH_PIX).
  void find_ways(const Topology& topology) {
    const ClusterGraph& graph = topology.graph;
    const std::uint32_t nodes = shape_->design.nodes;
    const auto length = [nodes](std::string_view link_class) { return link_class == "nvlink" ? nodes : nodes + 1; };
    using Inside = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property,
                                         boost::property<boost::edge_weight_t, std::uint32_t>>;
    Inside inside(nodes);
    for (const auto& link : shape_->design.links) boost::add_edge(link.a, link.b, length(link.link_class), inside);
    ways_.assign(std::size_t{nodes} * nodes, {});
    first_network_port_.assign(nodes, 0);
    std::vector<std::uint32_t> distance(nodes);
    for (std::uint32_t target = 0; target < nodes; ++target) {
      boost::dijkstra_shortest_paths(inside, target, boost::distance_map(distance.data()));
      for (std::uint32_t from = 0; from < nodes; ++from) {
        const auto ports = graph.ports(shape_->node(0, from));
        for (std::size_t port = 0; port < ports.size(); ++port) {
          const std::uint32_t peer = ports[port].peer.value();
          if (peer < hosts_ || peer >= hosts_ + nodes) continue;
          first_network_port_[from] = static_cast<std::uint32_t>(port) + 1;
          const std::string& link_class = topology.link_classes[topology.link_class[ports[port].link.value()]];
          if (distance[from] != unreachable && distance[peer - hosts_] + length(link_class) == distance[from])
            ways_[from * nodes + target].push_back(static_cast<std::uint16_t>(port));
        }
      }
    }
  }

  std::shared_ptr<const ServerShape> shape_;
  std::unique_ptr<RoutingAlgorithm> inner_;
  std::unique_ptr<RoutingAlgorithm> anywhere_;    ///< after failures: the whole machine as a graph
  std::vector<bool> dead_;                        ///< [links of the network] after failures
  std::vector<bool> broken_;                      ///< [servers] after failures: links inside do not work
  std::vector<std::uint32_t> part_;               ///< ServerDesign::parts()
  std::vector<std::vector<std::uint16_t>> ways_;  ///< [from][to] ports that lead closer
  std::vector<std::uint32_t> first_network_port_;
  Reciprocal by_gpus_;
  Reciprocal by_nodes_;
  std::uint32_t hosts_ = 0;
  std::uint64_t seed_ = 0;
};

const Registration<RoutingAlgorithm, ServerRouting> server_routing_registration(
    "server", "machines of servers: NVLink and PCIe by shortest paths, between NICs as the network is routed");

}  // namespace
}  // namespace weft
