// SPDX-License-Identifier: GPL-2.0-only
// Servers of several accelerators as the endpoints of a network.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/machine/cluster_graph.hpp"
#include "graph/topology/link_spec.hpp"
#include "graph/topology/topology_builder.hpp"

namespace weft {

/// Generations of accelerators that NCCL tells apart, by what their links and thread blocks can do.
enum class GpuArchitecture : std::uint8_t { volta, ampere, hopper, blackwell };
inline constexpr std::array<std::string_view, 4> gpu_architecture_names = {"volta", "ampere", "hopper", "blackwell"};
constexpr std::string_view to_text(GpuArchitecture architecture) {
  return gpu_architecture_names[static_cast<std::size_t>(architecture)];
}

/// The processors of servers, as far as NCCL's estimates tell them apart.
enum class HostCpu : std::uint8_t { intel, amd, arm };
inline constexpr std::array<std::string_view, 3> host_cpu_names = {"intel", "amd", "arm"};

/// What is inside a server. Its nodes are numbered from 0: first the port of each GPU, which is the GPU's own crossbar:
/// the host that stands for the GPU hangs on it, and it forwards between NVLink and PCIe. Then NVSwitches, PCIe
/// switches and NICs in any order.
struct ServerDesign {
  enum class Wiring : std::uint8_t {
    packed,  ///< NIC j of server s is the network's endpoint s nics + j
    rail,    ///< the servers of a pod have NIC 0 on the first leaf, NIC 1 on the second, ...
  };
  struct Link {
    std::uint32_t a;
    std::uint32_t b;
    LinkSpec link;
    std::string link_class;  ///< "nvlink", "pcie", ...
    LinkFraming framing = {};
  };
  std::uint32_t gpus = 1;
  std::uint32_t nodes = 1;
  std::vector<Link> links;          ///< between nodes
  LinkSpec gpu_link;                ///< from a GPU to its port
  std::vector<std::uint32_t> nics;  ///< [NICs] nodes
  std::vector<std::uint32_t> cpus;  ///< nodes, if the design tells them from PCIe switches
  GpuArchitecture architecture = GpuArchitecture::hopper;
  HostCpu cpu = HostCpu::intel;
  std::vector<std::uint32_t> nic_of_gpu;  ///< [gpus] the NIC that a GPU uses
  std::uint32_t ports_per_nic = 1;
  Wiring wiring = Wiring::packed;
  /// To another server a GPU goes over NVLink to the NIC of the destination's number, and not over its own NIC and
  /// through the network (PXN: NCCL's graph/paths.cc).
  bool pxn = false;
  bool nvlink_sharp = false;      ///< its NVSwitches reduce, as NVLink SHARP does: NVIDIA's since Hopper
  std::string collective_kernel;  ///< how fast its GPUs run collectives: a file of collectives/kernels; or empty
  /// What NCCL has found in such a server, from its file (NCCL_GRAPH_DUMP_FILE), instead of a search.
  struct GivenGraph {
    struct Channel {
      std::vector<std::uint32_t> gpus;
      std::uint32_t net_in = 0;
      std::uint32_t net_out = 0;
    };
    std::uint32_t id = 0;       ///< 0: rings, 1: trees, 3: NVLink SHARP
    std::uint32_t pattern = 4;  ///< as in nccl/graph_search.hpp
    std::uint32_t cross_nic = 0;
    double intra = 0;  ///< GB/s of a channel
    double inter = 0;
    std::string intra_type;  ///< "NVL", "PIX", ...
    std::string inter_type;
    bool same_channels = false;
    std::vector<Channel> channels;
  };
  std::vector<GivenGraph> given_graphs;
  /// Rings through all accelerators of a server that are no result of a search, as RCCL has them for known servers.
  struct RingTable {
    std::uint32_t repeat = 1;                        ///< each ring occurs as often
    std::vector<std::vector<std::uint32_t>> orders;  ///< [rings][gpus]
    bool alternate = false;                          ///< backwards in every second server
    /// Of the last two servers where rings alternate among an odd number of them; or empty.
    std::vector<std::vector<std::uint32_t>> last_but_one;
    std::vector<std::vector<std::uint32_t>> last;
  };
  RingTable rings_of_one_server;
  RingTable rings_of_several_servers;  ///< in by the NIC of the first GPU, out by that of the last
  std::string collective_transport;    ///< how its NICs carry them: a file of collectives/transports; or empty
  std::string collective_tuner;        ///< by what algorithms are chosen: a file of collectives/tuners; or empty
  bool tuner_needs_rings = true;       ///< its numbers are for the rings of a table
  /// What a plugin of NCCL's sets for such servers, in bytes; 0: NCCL's own.
  struct NcclSettings {
    double net_latency_us = 0;         ///< that it tells of its NICs
    std::int64_t buffer = 0;           ///< of a channel's connection with Simple: NCCL_BUFFSIZE
    std::int64_t p2p_chunk = 0;        ///< NCCL_P2P_NET_CHUNKSIZE
    std::int64_t nvls_chunk = 0;       ///< NCCL_NVLS_CHUNKSIZE
    std::int64_t nvls_tree_chunk = 0;  ///< NCCL_NVLSTREE_MAX_CHUNKSIZE
  };
  NcclSettings nccl_settings;
  bool nics_behind_cpu = false;   ///< GPUs reach their NICs through a CPU
  bool gpudirect = true;          ///< NICs read and write the memory of GPUs, else that of the host
  std::optional<Time> host_read;  ///< of a GPU that reads the host's memory; none: that of the transport
  std::string network_routing;    ///< routing between NICs; empty: the network's own

  /// [nodes] equal for those between which links inside lead.
  std::vector<std::uint32_t> parts() const;
  std::uint32_t network_ports() const { return static_cast<std::uint32_t>(nics.size()) * ports_per_nic; }
};

/// Hosts are the GPUs, server by server. Then the nodes of each server, then the switches of the network, whose
/// endpoints are the ports of the NICs. A NIC's ports to the network are its last ones.
class ServerShape final : public Shape {
 public:
  ServerDesign design;
  std::uint32_t servers = 1;
  std::uint32_t rail_length = 1;  ///< servers of a pod, if the wiring is by rails: hosts of a leaf
  /// Between the NICs; its hosts are their ports. Nothing if there is one server without a network.
  std::shared_ptr<const Topology> network;

  std::uint32_t hosts() const { return servers * design.gpus; }
  NodeId node(std::uint32_t server, std::uint32_t inside) const {
    return NodeId(hosts() + server * design.nodes + inside);
  }
  /// The first node that is a switch of the network.
  std::uint32_t first_switch() const { return hosts() + servers * design.nodes; }
  /// The network's host that port `port` of NIC `nic` of a server is.
  NodeId endpoint(std::uint32_t server, std::uint32_t nic, std::uint32_t port) const {
    const std::uint32_t number = nic * design.ports_per_nic + port;
    if (design.wiring == ServerDesign::Wiring::packed) return NodeId(server * design.network_ports() + number);
    return NodeId((server / rail_length * design.network_ports() + number) * rail_length + server % rail_length);
  }
};

/// The network with servers in the place of its hosts. Throws InputError at `place` if their numbers do not fit.
Topology attach_servers(const ServerDesign& design, std::shared_ptr<const Topology> network, const Spec& place);

}  // namespace weft
