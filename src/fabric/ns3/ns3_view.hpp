// SPDX-License-Identifier: GPL-2.0-only
// The machine as ns-3 objects: nodes, net devices and channels with names.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ns3/net-device-container.h>
#include <ns3/node-container.h>
#include <ns3/node.h>
#include <ns3/ptr.h>

#include "fabric/frames/frame_table.hpp"
#include "fabric/network/fabric.hpp"
#include "fabric/ns3/ns3_channel.hpp"
#include "fabric/ns3/ns3_port_device.hpp"
#include "graph/topology/topology_builder.hpp"

namespace weft {

/// Built on request only, since a large machine has many ports. One ns3::Node for each host and switch that this
/// process owns, named "host3", "switch7" in ns3::Names; port p of a node is its device number p. ns-3's own node
/// numbers depend on the partition: use the names.
///
/// One at a time, after the engine has been chosen and before the run; must be destroyed before the fabric. Its
/// destructor clears all ns3::Names; objects that others still hold have no effect then. Its objects live until
/// ns3::Simulator::Destroy().
class Ns3View {
 public:
  Ns3View(Fabric& fabric, const Topology& topology);
  ~Ns3View();
  Ns3View(const Ns3View&) = delete;
  Ns3View& operator=(const Ns3View&) = delete;

  /// From here on hosts send packets of ns-3 to any host, through the fabric's switches: Fabric::carry_frames(). What
  /// comes to a host by any of its ports is given to its device 0, as an event of its node that comes before others of
  /// the same time. On all processes.
  void carry_packets();
  /// nullptr if another process owns it.
  ns3::Ptr<ns3::Node> node(NodeId node) const { return nodes_[node.value()]; }
  ns3::Ptr<FabricPortDevice> device(NodeId node, std::uint32_t port) const;
  /// The owned ends of a link, direction 0's sender first: what ns-3's address helpers take.
  ns3::NetDeviceContainer ends(LinkId link) const;
  /// Of the machine.
  std::uint32_t host_count() const { return hosts_; }
  /// Owned ones, in the order of their numbers.
  ns3::NodeContainer hosts() const { return between(0, hosts_); }
  ns3::NodeContainer switches() const { return between(hosts_, static_cast<std::uint32_t>(nodes_.size())); }

 private:
  void add_node(Fabric& fabric, NodeId node);
  void connect(Fabric& fabric, LinkId link);
  ns3::Ptr<FabricPortDevice> end_of(LinkId link, unsigned i) const;
  ns3::NodeContainer between(std::uint32_t first, std::uint32_t end) const;

  void expect(FrameTable::Arrival arrival);

  Fabric& fabric_;
  FrameTable* frames_ = nullptr;
  std::unique_ptr<Ns3TraceQueue> traces_;
  const ClusterGraph& graph_;
  std::uint32_t hosts_ = 0;
  std::vector<ns3::Ptr<ns3::Node>> nodes_;           // [nodes]
  std::vector<std::uint32_t> first_device_;          // [nodes]
  std::vector<ns3::Ptr<FabricPortDevice>> devices_;  // of owned nodes, by port
  std::vector<ns3::Ptr<FabricChannel>> channels_;
};

}  // namespace weft
