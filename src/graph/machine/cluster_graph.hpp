// SPDX-License-Identifier: GPL-2.0-only
// The machine as a graph: hosts, switches, and links between their ports.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/machine/node_roles.hpp"
#include "units/bandwidth.hpp"
#include "units/id.hpp"
#include "units/time.hpp"

namespace weft {

enum class NodeKind : std::uint8_t { host, network_switch };

/// `group` of nodes that belong to no group (core switches).
constexpr std::uint32_t no_group = 0xffffffffU;
/// `block` of nodes that may be simulated by any MPI rank.
constexpr std::uint32_t no_block = 0xffffffffU;

struct NodeProperties {
  NodeKind kind = NodeKind::host;
  std::uint8_t tier = 0;           ///< 0 hosts, 1 edge, 2 aggregation, 3 core
  std::uint32_t group = no_group;  ///< pod, dragonfly group, slab: what a structured partition keeps together
  std::uint32_t block = no_block;  ///< a server: its short links are never cut
  bool in_server = false;  ///< a crossbar, NVSwitch, PCIe switch, CPU or NIC: no switch of the network between servers
};

/// How a link cuts what it carries, where that is not the network's framing of packets: frames of up to `payload` bytes
/// with `overhead` bytes each, each answered by `answer` bytes in the other direction. NVLink's flits, PCIe's TLPs.
struct LinkFraming {
  std::uint16_t payload = 0;  ///< 0: none of its own
  std::uint16_t overhead = 0;
  std::uint16_t answer = 0;
  friend bool operator==(const LinkFraming&, const LinkFraming&) = default;
};

struct LinkProperties {
  Bandwidth rate;                   ///< of each direction
  Time delay;                       ///< propagation, > 0
  NodeId ends[2];                   ///< direction 0 goes from ends[0] to ends[1]
  std::uint16_t ports[2] = {0, 0};  ///< port number at each end
  LinkFraming framing = {};
};

/// What a port of a node leads to.
struct PortEnd {
  LinkId link;
  std::uint8_t direction = 0;  ///< of the link when leaving through this port
  NodeId peer;
  std::uint16_t peer_port = 0;
};

/// Undirected multigraph. Nodes 0..host_count()-1 are the hosts, then the switches; ports of a node are numbered from 0
/// in the order in which its links were added, unless connect() names them. The directed link 2 * link + direction is
/// `directed(link, direction)`.
class ClusterGraph {
 public:
  /// A node has at most so many ports (port numbers are 16 bit).
  static constexpr std::uint32_t max_ports = 65535;

  NodeId add_host(std::uint32_t group = no_group,
                  std::uint32_t block = no_block);  ///< all hosts before the first switch
  NodeId add_switch(std::uint8_t tier, std::uint32_t group = no_group, std::uint32_t block = no_block);
  /// Two different nodes with a free port each. Parallel links are allowed.
  LinkId add_link(NodeId a, NodeId b, Bandwidth rate, Time delay);
  /// The same between given ports, which must be free. In the end the ports of a node are to be 0, 1, ... without gaps
  /// (build_topology() checks that).
  LinkId connect(NodeId a, std::uint32_t port_a, NodeId b, std::uint32_t port_b, Bandwidth rate, Time delay);

  void set_in_server(NodeId node, bool in_server) { nodes_[node.value()].in_server = in_server; }
  void set_speed(LinkId link, Bandwidth rate, Time delay) {
    links_[link.value()].rate = rate;
    links_[link.value()].delay = delay;
  }
  void set_framing(LinkId link, const LinkFraming& framing) { links_[link.value()].framing = framing; }

  std::uint32_t node_count() const;
  std::uint32_t host_count() const { return hosts_; }
  IdRange<NodeTag> nodes() const { return {0, node_count()}; }
  IdRange<NodeTag> hosts() const { return {0, hosts_}; }
  IdRange<NodeTag> switches() const { return {hosts_, node_count()}; }
  std::uint32_t switch_count() const { return node_count() - hosts_; }
  std::uint32_t link_count() const { return static_cast<std::uint32_t>(links_.size()); }
  const NodeProperties& node(NodeId node) const;
  const LinkProperties& link(LinkId link) const;
  std::span<const PortEnd> ports(NodeId node) const;
  bool is_host(NodeId node) const { return node.value() < hosts_; }
  /// By its role, such as "leaf2" or "server3/gpu1", if it has one; else the plain one.
  std::string name(NodeId node) const;
  /// "host3", "switch7" (switches count from 0).
  std::string plain_name(NodeId node) const;
  void set_roles(std::shared_ptr<const NodeRoles> roles) { roles_ = std::move(roles); }
  bool has_roles() const { return roles_ != nullptr; }

 private:
  NodeId add_node(const NodeProperties& properties);

  std::vector<NodeProperties> nodes_;
  std::vector<LinkProperties> links_;
  std::vector<std::vector<PortEnd>> ports_;
  std::uint32_t hosts_ = 0;
  std::shared_ptr<const NodeRoles> roles_;
};

constexpr std::uint32_t directed(LinkId link, unsigned direction) { return 2 * link.value() + direction; }

}  // namespace weft
