// SPDX-License-Identifier: GPL-2.0-only
// One server as NCCL sees it: GPUs, PCIe switches, CPUs, NVSwitches and networks, and the best path between each two.
//
// NCCL src/graph/topo.cc (nodes, links and their speeds), src/graph/paths.cc (ncclTopoSetPaths, ncclTopoComputePaths),
// v2.30. Bandwidths are NCCL's model values in GB/s: they decide which GPUs communicate with which, and are not rates
// of this simulator.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/shapes/server_shape.hpp"

namespace weft {

/// Order of quality, best first: src/graph/topo.h, PATH_*.
enum class PathType : std::uint8_t {
  local,
  nvlink,        ///< NVL
  nvlink_relay,  ///< NVB: NVLink through one other GPU
  c2c,
  one_switch,     ///< PIX: one PCIe switch
  many_switches,  ///< PXB
  c2c_then_pci,   ///< P2C
  peers_nic,      ///< PXN: a NIC of another GPU over NVLink
  host_bridge,    ///< PHB: through a CPU
  between_cpus,   ///< SYS
  network,        ///< NET
  none,           ///< DIS
};
/// NCCL's name: "NVL", "PIX", ...
std::string_view to_text(PathType type);

struct NcclNode {
  enum class Kind : std::uint8_t { gpu, pci, nvswitch, cpu, nic, net };
  static constexpr std::size_t kinds = 6;
  Kind kind = Kind::gpu;
  std::uint32_t number = 0;  ///< among its kind, from 0
  std::uint32_t label = 0;   ///< gpu, net: the caller's number, for results
};

struct NcclLink {
  enum class Kind : std::uint8_t { nvlink, pci, system, net };
  Kind kind = Kind::pci;
  std::uint32_t from = 0;  ///< node
  std::uint32_t to = 0;
  double bandwidth = 0;  ///< GB/s that are left, in this direction
};

/// From one node to another: links in order.
struct NcclPath {
  PathType type = PathType::none;
  double bandwidth = 0;  ///< GB/s of its slowest link
  std::vector<std::uint32_t> links;
};

class NcclSystem {
 public:
  using Kind = NcclNode::Kind;

  explicit NcclSystem(GpuArchitecture architecture) : architecture_(architecture) {}

  // Building
  // -----------------------------------------------------------------------------------------------------------
  /// Returns the node. `label`: the caller's number of a GPU or network.
  std::uint32_t add(Kind kind, std::uint32_t label = 0);
  /// Both directions. Several of a kind between two nodes add up.
  void connect(std::uint32_t a, std::uint32_t b, NcclLink::Kind kind, double bandwidth);
  /// The CPUs are Intel's: packets between GPUs over their host bridge cost a fifth more (INTEL_P2P_OVERHEAD).
  void set_intel(bool intel) { intel_ = intel; }
  /// Finds all paths. `several_servers`: the networks are used, with NICs of other GPUs over NVLink if `pxn`. Without
  /// a network of its own a server cannot be one of several: requires networks then.
  void find_paths(bool several_servers, bool pxn);

  // Asking
  // -------------------------------------------------------------------------------------------------------------
  GpuArchitecture architecture() const { return architecture_; }
  bool several_servers() const { return several_servers_; }
  bool intel() const { return intel_; }
  std::uint32_t count(Kind kind) const { return static_cast<std::uint32_t>(of_kind(kind).size()); }
  const NcclNode& node(std::uint32_t id) const { return nodes_[id]; }
  std::uint32_t id(Kind kind, std::uint32_t number) const { return of_kind(kind)[number]; }
  std::uint32_t label(Kind kind, std::uint32_t number) const { return nodes_[id(kind, number)].label; }
  const NcclPath& path(Kind from, std::uint32_t a, Kind to, std::uint32_t b) const {
    return paths_[std::size_t{id(from, a)} * nodes_.size() + id(to, b)];
  }
  const std::vector<NcclLink>& links() const { return links_; }
  /// Links that start at a node, fastest first, those upwards of PCIe last.
  const std::vector<std::uint32_t>& links_of(std::uint32_t node) const { return links_of_[node]; }
  /// GB/s of a network's port.
  double port_bandwidth(std::uint32_t net) const;
  /// GB/s of a GPU's PCIe link.
  double pci_bandwidth(std::uint32_t gpu) const;

  /// Fastest path that a channel may need, and what the busiest GPU can move: src/graph/search.cc,
  /// ncclTopoSearchInit.
  double max_of_a_channel() const { return max_of_a_channel_; }
  double max_of_a_gpu() const { return max_of_a_gpu_; }

  /// The networks local to a GPU, in the order in which channels take them (ncclTopoGetLocalNet).
  std::vector<std::uint32_t> local_nets(std::uint32_t gpu) const;
  /// The first GPU that has the network as a local one, or count(gpu) (ncclTopoGetLocalGpu).
  std::uint32_t local_gpu(std::uint32_t net) const;
  /// All GPUs of the best path to a network.
  std::vector<std::uint32_t> nearest_gpus(std::uint32_t net) const { return nearest(Kind::net, net, Kind::gpu); }

 private:
  const std::vector<std::uint32_t>& of_kind(Kind kind) const { return of_kind_[static_cast<std::size_t>(kind)]; }
  NcclPath& path_of(std::uint32_t from, std::uint32_t to) { return paths_[std::size_t{from} * nodes_.size() + to]; }
  void find_paths_to(std::uint32_t base);
  void use_nics_of_peers();
  void find_limits();
  std::vector<std::uint32_t> nearest(Kind from, std::uint32_t number, Kind to) const;

  GpuArchitecture architecture_;
  bool intel_ = false;
  bool several_servers_ = false;
  double max_of_a_channel_ = 0;
  double max_of_a_gpu_ = 0;
  std::vector<NcclNode> nodes_;
  std::array<std::vector<std::uint32_t>, NcclNode::kinds> of_kind_;
  std::vector<NcclLink> links_;
  std::vector<std::vector<std::uint32_t>> links_of_;
  std::vector<NcclPath> paths_;  // [from][to]
};

}  // namespace weft
