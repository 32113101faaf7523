// SPDX-License-Identifier: GPL-2.0-only
// Routing of machines whose endpoints are servers: inside a server by its own shortest paths, between the NICs by the
// network's routing.
#include <array>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
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
    shape_ = require_shape<ServerShape>(topology, "server", "server, or any with servers");
    seed_ = seed;
    hosts_ = topology.graph.host_count();
    by_gpus_ = Reciprocal(shape_->design.gpus);
    by_nodes_ = Reciprocal(shape_->design.nodes);
    part_ = shape_->design.parts();
    find_ways(topology.graph);
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

  unsigned lanes() const override { return inner_ ? inner_->lanes() : 1; }
  bool per_packet() const override { return inner_ && inner_->per_packet(); }
  bool reorders() const override { return inner_ && inner_->reorders(); }

  std::uint32_t max_reported() const override { return inner_ ? inner_->max_reported() : 0; }
  QueueReports reports(NodeId at) const override {
    return inner_ && at.value() >= shape_->first_switch() ? inner_->reports(inner_node(at)) : QueueReports();
  }

  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
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
    constexpr NodeId no_node(0xfffffffeU);  // the same at both ends
    return shape_->design.ports_per_nic == 1
               ? 0
               : ecmp_choice(ecmp_hash(flow, no_node, seed_), shape_->design.ports_per_nic);
  }

  /// Flows of different GPUs that share two NICs stay different flows.
  RouteRequest between_nics(const RouteRequest& flow) const {
    const std::uint32_t port = port_out(flow);
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

  /// Shortest paths inside a server, the same for all servers.
  void find_ways(const ClusterGraph& graph) {
    const std::uint32_t nodes = shape_->design.nodes;
    using Inside = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;
    Inside inside(nodes);
    for (const auto& link : shape_->design.links) boost::add_edge(link.a, link.b, inside);
    ways_.assign(std::size_t{nodes} * nodes, {});
    first_network_port_.assign(nodes, 0);
    constexpr std::uint32_t far = 0xffffffffU;
    for (std::uint32_t target = 0; target < nodes; ++target) {
      std::vector<std::uint32_t> hops(nodes, far);
      hops[target] = 0;
      boost::breadth_first_search(
          inside, target,
          boost::visitor(boost::make_bfs_visitor(boost::record_distances(hops.data(), boost::on_tree_edge()))));
      for (std::uint32_t from = 0; from < nodes; ++from) {
        const auto ports = graph.ports(shape_->node(0, from));
        for (std::size_t port = 0; port < ports.size(); ++port) {
          const std::uint32_t peer = ports[port].peer.value();
          if (peer < hosts_ || peer >= hosts_ + nodes) continue;
          first_network_port_[from] = static_cast<std::uint32_t>(port) + 1;
          if (hops[from] != far && hops[peer - hosts_] + 1 == hops[from])
            ways_[from * nodes + target].push_back(static_cast<std::uint16_t>(port));
        }
      }
    }
  }

  std::shared_ptr<const ServerShape> shape_;
  std::unique_ptr<RoutingAlgorithm> inner_;
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
