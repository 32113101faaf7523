// SPDX-License-Identifier: GPL-2.0-only
// Servers of several accelerators as the endpoints of a network.
#include "graph/shapes/server_shape.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "support/basics/contract.hpp"

namespace weft {
std::vector<std::uint32_t> ServerDesign::parts() const {
  std::vector<std::uint32_t> part(nodes);
  for (std::uint32_t i = 0; i < nodes; ++i) part[i] = i;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Link& link : links) {
      const std::uint32_t min = std::min(part[link.a], part[link.b]);
      changed |= part[link.a] != min || part[link.b] != min;
      part[link.a] = part[link.b] = min;
    }
  }
  return part;
}

namespace {

/// server3/gpu1 and its port server3/gpu1/port, server3/nic0, server3/nvswitch2; switches of the network by their roles
/// there.
class ServerRoles final : public NodeRoles {
 public:
  explicit ServerRoles(std::shared_ptr<const ServerShape> shape) : shape_(std::move(shape)) {
    const ServerDesign& design = shape_->design;
    for (std::uint32_t gpu = 0; gpu < design.gpus; ++gpu) inside_.push_back(fmt::format("gpu{}/port", gpu));
    inside_.resize(design.nodes);
    number(design.nics, "nic");
    number(design.cpus, "cpu");
    std::vector<std::uint32_t> switches[2];  // PCIe, NVLink
    for (std::uint32_t node = 0; node < design.nodes; ++node)
      if (inside_[node].empty()) switches[has_nvlink(node)].push_back(node);
    number(switches[0], "pcie");
    number(switches[1], "nvswitch");
  }

  std::string name(NodeId node) const override {
    const ServerDesign& design = shape_->design;
    const std::uint32_t number = node.value();
    if (number < shape_->hosts()) return fmt::format("server{}/gpu{}", number / design.gpus, number % design.gpus);
    if (number >= shape_->first_switch()) {
      const ClusterGraph& network = shape_->network->graph;
      return network.name(NodeId(network.host_count() + number - shape_->first_switch()));
    }
    const std::uint32_t inside = number - shape_->hosts();
    return fmt::format("server{}/{}", inside / design.nodes, inside_[inside % design.nodes]);
  }

 private:
  void number(const std::vector<std::uint32_t>& nodes, std::string_view word) {
    for (std::size_t i = 0; i < nodes.size(); ++i) inside_[nodes[i]] = fmt::format("{}{}", word, i);
  }
  bool has_nvlink(std::uint32_t node) const {
    return std::any_of(shape_->design.links.begin(), shape_->design.links.end(),
                       [node](const ServerDesign::Link& link) {
                         return (link.a == node || link.b == node) && link.link_class.starts_with("nvlink");
                       });
  }

  std::shared_ptr<const ServerShape> shape_;
  std::vector<std::string> inside_;  ///< [nodes of a server]
};

/// Hosts on each leaf, which have to be equal and numbered leaf by leaf.
std::uint32_t hosts_per_leaf(const Topology& network, const Spec& place) {
  const ClusterGraph& graph = network.graph;
  const auto leaf_of = [&](std::uint32_t host) { return graph.ports(NodeId(host)).front().peer; };
  std::uint32_t count = 1;
  while (count < graph.host_count() && leaf_of(count) == leaf_of(0)) ++count;
  for (std::uint32_t host = 0; host < graph.host_count(); ++host)
    if (leaf_of(host) != leaf_of(host - host % count))
      throw place.error(
          fmt::format("wiring by rails needs the same number of endpoints on each leaf of the network, "
                      "but {} of kind {} has not {} on each",
                      graph.name(leaf_of(host)), network.kind, count));
  return count;
}

class ServerAssembler {
 public:
  ServerAssembler(const ServerDesign& design, std::shared_ptr<const Topology> network, const Spec& place)
      : shape_(std::make_shared<ServerShape>()), place_(place) {
    shape_->design = design;
    shape_->network = std::move(network);
    require_ways();
    if (shape_->network) count_servers();
  }

  Topology assemble() {
    const std::uint64_t own = std::uint64_t{shape_->servers} * (shape_->design.gpus + shape_->design.nodes);
    require_nodes(place_, own + (shape_->network ? shape_->network->graph.switch_count() : 0));
    add_nodes();
    add_links();
    if (shape_->network) add_network();
    topology_.routing = "server";
    topology_.shape = shape_;
    return std::move(topology_);
  }

 private:
  const ServerDesign& design() const { return shape_->design; }
  const ClusterGraph& inner() const { return shape_->network->graph; }

  /// GPUs that nothing inside joins reach each other through their NICs and the network, if that joins these.
  void require_ways() const {
    const auto part = design().parts();
    const bool outside = shape_->network && !design().nics.empty();
    for (std::uint32_t gpu = 0; gpu < design().gpus; ++gpu) {
      if (outside && part[gpu] != part[design().nics[design().nic_of_gpu[gpu]]])
        throw place_.error(fmt::format("nothing inside this server leads from GPU {} to NIC {}, which it is to use",
                                       gpu, design().nic_of_gpu[gpu]));
      if (part[gpu] == part[0] || (outside && shape_->network->kind != "rails")) continue;
      throw place_.error(fmt::format(
          "there is no way from GPU 0 of this server to GPU {}: nothing inside joins them, and {}; expected "
          "links that join all GPUs (inside: nvswitch, mesh, links or pcie), or a network between all NICs",
          gpu, outside ? "each of their NICs is on a rail of its own" : "there is no network"));
    }
  }

  void count_servers() {
    const std::uint32_t endpoints = inner().host_count();
    if (!shape_->network->storage_hosts().empty())
      throw place_.error(
          "the network has storage hosts of its own; servers take the place of all of its hosts, so write "
          "storage_hosts beside 'server'");
    const std::uint32_t each = design().network_ports();
    if (each == 0) throw place_.error("found a server without NICs in a network; expected 1 or more");
    if (design().wiring == ServerDesign::Wiring::rail) {
      const std::uint32_t rails = shape_->network->radix;
      shape_->rail_length =
          shape_->network->kind == "rails" ? endpoints / rails : hosts_per_leaf(*shape_->network, place_);
      if (shape_->network->kind == "rails" && rails != each)
        throw place_.error(
            fmt::format("the network has {} rails, but a server has {} NIC port{}; both numbers have to be "
                        "the same",
                        rails, each, each == 1 ? "" : "s"));
    }
    if (!by_rails() && shape_->network->kind == "rails" && shape_->network->radix > 1)
      throw place_.error(
          "'wiring: packed' puts the NICs of a server side by side on one rail, and only servers with a NIC on each "
          "rail join them; expected wiring: rail");
    const std::uint32_t unit = each * shape_->rail_length;
    if (endpoints % unit != 0) {
      const std::string by_rails =
          shape_->rail_length > 1 ? fmt::format(" for pods of {} leaves with {} each", each, shape_->rail_length) : "";
      const std::uint32_t fewer = endpoints / unit * unit;
      throw place_.error(fmt::format(
          "the network has {} endpoints, which servers with {} NIC port{} each do not fill{}; use {}{}", endpoints,
          each, each == 1 ? "" : "s", by_rails, fewer == 0 ? "" : fmt::format("{} or ", fewer), fewer + unit));
    }
    shape_->servers = endpoints / each;
  }

  bool by_rails() const { return design().wiring == ServerDesign::Wiring::rail; }
  std::uint32_t group_of_server(std::uint32_t server) const {
    if (!shape_->network) return no_group;
    if (by_rails()) return shape_->servers > shape_->rail_length ? server / shape_->rail_length : no_group;
    return inner().node(shape_->endpoint(server, 0, 0)).group;
  }

  void add_nodes() {
    ClusterGraph& graph = topology_.graph;
    for (std::uint32_t server = 0; server < shape_->servers; ++server)
      for (std::uint32_t gpu = 0; gpu < design().gpus; ++gpu) graph.add_host(group_of_server(server), server);
    const auto& nics = design().nics;
    for (std::uint32_t server = 0; server < shape_->servers; ++server) {
      for (std::uint32_t i = 0; i < design().nodes; ++i) {
        const bool nic = std::find(nics.begin(), nics.end(), i) != nics.end();
        graph.set_in_server(graph.add_switch(i < design().gpus ? 1
                                             : nic             ? 3
                                                               : 2,
                                             group_of_server(server), server),
                            true);
      }
    }
    graph.set_roles(std::make_shared<ServerRoles>(shape_));
    if (!shape_->network) return;
    for (std::uint32_t i = inner().host_count(); i < inner().node_count(); ++i) {
      const NodeProperties& node = inner().node(NodeId(i));
      graph.add_switch(static_cast<std::uint8_t>(node.tier + 3), by_rails() ? pod_of(NodeId(i)) : node.group);
    }
  }
  /// Leaves belong to the pod of their servers.
  std::uint32_t pod_of(NodeId leaf) const {
    for (const PortEnd& port : inner().ports(leaf))
      if (inner().is_host(port.peer) && shape_->servers > shape_->rail_length)
        return port.peer.value() / shape_->rail_length / design().network_ports();
    return no_group;
  }

  std::uint8_t class_number(const std::string& name) {
    const auto& names = topology_.link_classes;
    const auto at = std::find(names.begin(), names.end(), name);
    return at == names.end() ? topology_.add_class(name) : static_cast<std::uint8_t>(at - names.begin());
  }

  void add_links() {
    const std::uint8_t gpu_class = class_number("gpu");
    const LinkSpec& gpu_link = design().gpu_link;
    for (std::uint32_t host = 0; host < shape_->hosts(); ++host)
      topology_.add(gpu_class, NodeId(host), shape_->node(host / design().gpus, host % design().gpus), gpu_link.rate,
                    gpu_link.delay);
    for (const ServerDesign::Link& link : design().links) {
      const std::uint8_t link_class = class_number(link.link_class);
      for (std::uint32_t server = 0; server < shape_->servers; ++server)
        topology_.graph.set_framing(topology_.add(link_class, shape_->node(server, link.a),
                                                  shape_->node(server, link.b), link.link.rate, link.link.delay),
                                    link.framing);
    }
  }

  /// Switches keep their port numbers, on which the network's routing relies.
  void add_network() {
    const Topology& network = *shape_->network;
    PerNode<std::vector<NodeId>> nic_of_endpoint(inner().host_count());
    for (std::uint32_t server = 0; server < shape_->servers; ++server)
      for (std::uint32_t nic = 0; nic < design().nics.size(); ++nic)
        for (std::uint32_t port = 0; port < design().ports_per_nic; ++port)
          nic_of_endpoint[shape_->endpoint(server, nic, port)] = shape_->node(server, design().nics[nic]);
    std::map<std::uint32_t, std::uint32_t> ports_inside;  // of a NIC, without those to the network
    for (const NodeId nic : nic_of_endpoint)
      ports_inside[nic.value()] = static_cast<std::uint32_t>(topology_.graph.ports(nic).size());
    const auto end_of = [&](NodeId node, std::uint16_t port) -> std::pair<NodeId, std::uint32_t> {
      if (!inner().is_host(node)) return {NodeId(shape_->first_switch() + node.value() - inner().host_count()), port};
      const NodeId nic = nic_of_endpoint[node];
      return {nic, ports_inside[nic.value()] + port_of_nic(node.value())};
    };
    for (std::uint32_t i = 0; i < inner().link_count(); ++i) {
      const LinkProperties& link = inner().link(LinkId(i));
      const auto [a, port_a] = end_of(link.ends[0], link.ports[0]);
      const auto [b, port_b] = end_of(link.ends[1], link.ports[1]);
      const std::string& name = network.link_classes[network.link_class[i]];
      topology_.graph.set_framing(
          topology_.connect(class_number(name == "host" ? "nic" : name), a, port_a, b, port_b, link.rate, link.delay),
          link.framing);
    }
  }
  std::uint32_t port_of_nic(std::uint32_t endpoint) const {
    const std::uint32_t number = by_rails() ? endpoint / shape_->rail_length : endpoint;
    return number % design().ports_per_nic;
  }

  std::shared_ptr<ServerShape> shape_;
  const Spec& place_;
  Topology topology_;
};

}  // namespace

Topology attach_servers(const ServerDesign& design, std::shared_ptr<const Topology> network, const Spec& place) {
  return ServerAssembler(design, std::move(network), place).assemble();
}

}  // namespace weft
