// SPDX-License-Identifier: GPL-2.0-only
// Building and reading the graph of a machine.
#include "graph/machine/cluster_graph.hpp"

#include "support/basics/contract.hpp"

namespace weft {

NodeId ClusterGraph::add_host(std::uint32_t group, std::uint32_t block) {
  WEFT_EXPECT(hosts_ == node_count(), "host {} added after {} switches", hosts_, switch_count());
  ++hosts_;
  return add_node({NodeKind::host, 0, group, block});
}

NodeId ClusterGraph::add_switch(std::uint8_t tier, std::uint32_t group, std::uint32_t block) {
  return add_node({NodeKind::network_switch, tier, group, block});
}

NodeId ClusterGraph::add_node(const NodeProperties& properties) {
  nodes_.push_back(properties);
  ports_.emplace_back();
  return NodeId(node_count() - 1);
}

LinkId ClusterGraph::add_link(NodeId a, NodeId b, Bandwidth rate, Time delay) {
  const auto next_port = [this](NodeId node) { return static_cast<std::uint32_t>(ports(node).size()); };
  return connect(a, next_port(a), b, next_port(b), rate, delay);
}

LinkId ClusterGraph::connect(NodeId a, std::uint32_t port_a, NodeId b, std::uint32_t port_b, Bandwidth rate,
                             Time delay) {
  WEFT_EXPECT(a != b, "node {} linked to itself", a.value());
  const LinkId link(link_count());
  const auto take = [&](NodeId node, std::uint32_t port, const PortEnd& end) {
    WEFT_EXPECT(node.value() < node_count(), "node {} of {}", node.value(), node_count());
    WEFT_EXPECT(port < max_ports, "{} has {} ports already", name(node), max_ports);
    auto& ports_of_node = ports_[node.value()];
    if (port >= ports_of_node.size()) ports_of_node.resize(port + 1);
    WEFT_EXPECT(!ports_of_node[port].link.valid(), "port {} of {} is taken", port, name(node));
    ports_of_node[port] = end;
  };
  const auto small_a = static_cast<std::uint16_t>(port_a);
  const auto small_b = static_cast<std::uint16_t>(port_b);
  take(a, port_a, {link, 0, b, small_b});
  take(b, port_b, {link, 1, a, small_a});
  links_.push_back({rate, delay, {a, b}, {small_a, small_b}});
  return link;
}

std::uint32_t ClusterGraph::node_count() const { return static_cast<std::uint32_t>(ports_.size()); }

const NodeProperties& ClusterGraph::node(NodeId node) const {
  WEFT_EXPECT(node.value() < node_count(), "node {} of {}", node.value(), node_count());
  return nodes_[node.value()];
}

const LinkProperties& ClusterGraph::link(LinkId link) const {
  WEFT_EXPECT(link.value() < link_count(), "link {} of {}", link.value(), link_count());
  return links_[link.value()];
}

std::span<const PortEnd> ClusterGraph::ports(NodeId node) const {
  WEFT_EXPECT(node.value() < node_count(), "node {} of {}", node.value(), node_count());
  return ports_[node.value()];
}

std::string ClusterGraph::name(NodeId node) const {
  std::string role = roles_ != nullptr ? roles_->name(node) : std::string();
  return role.empty() ? plain_name(node) : role;
}

std::string ClusterGraph::plain_name(NodeId node) const {
  return is_host(node) ? "host" + std::to_string(node.value()) : "switch" + std::to_string(node.value() - hosts_);
}

}  // namespace weft
