// SPDX-License-Identifier: GPL-2.0-only
#include "nccl/machine_channels.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace weft {
namespace {

using Kind = NcclNode::Kind;

double gigabytes(Bandwidth rate) { return static_cast<double>(rate.bps()) / 8e9; }
double rounded(double gbps) { return std::round(gbps * 10) / 10; }

/// NCCL counts less than the wire carries, generation by generation (src/graph/topo.h, SM80_NVLINK_BW and others): 20
/// of 25 GB/s of a link on Volta and Ampere, 20.6 on Hopper, 40.1 of 50 on Blackwell.
double nvlink_speed(Bandwidth rate, GpuArchitecture architecture) {
  const double share = architecture == GpuArchitecture::hopper      ? 20.6 / 25
                       : architecture == GpuArchitecture::blackwell ? 40.1 / 50
                                                                    : 20.0 / 25;
  return rounded(gigabytes(rate) * share);
}

/// src/graph/topo.cc, kvDictPciGen: 16 lanes of the fourth generation count 24 GB/s, of the fifth 48. PCI-SIG, Base
/// Specification 5.0: 128 of 130 bits of 32 GT/s.
double pci_speed(Bandwidth rate) { return rounded(gigabytes(rate) * 48 / (32.0 * 16 / 8 * 128 / 130)); }

/// What a node of a design is.
Kind kind_in(const ServerDesign& design, std::uint32_t node) {
  if (node < design.gpus) return Kind::gpu;
  if (std::find(design.cpus.begin(), design.cpus.end(), node) != design.cpus.end()) return Kind::cpu;
  if (std::find(design.nics.begin(), design.nics.end(), node) != design.nics.end()) return Kind::nic;
  for (const auto& link : design.links)
    if (link.link_class == "nvlink" && (link.a == node || link.b == node)) return Kind::nvswitch;
  return Kind::pci;
}

class SystemMaker {
 public:
  SystemMaker(const ServerDesign& design, const std::vector<std::uint32_t>& accelerators, bool several_servers)
      : design_(design), several_servers_(several_servers), system_(design.architecture), node_(design.nodes, none) {
    for (const std::uint32_t gpu : accelerators) node_[gpu] = system_.add(Kind::gpu, gpu);
  }

  NcclSystem make(Bandwidth nic_rate) {
    add_nodes();
    for (const auto& link : design_.links) add_link(link);
    if (several_servers_) add_networks(nic_rate);
    system_.find_paths(several_servers_ && system_.count(Kind::net) > 0, design_.pxn);
    return std::move(system_);
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffU;

  void add_nodes() {
    std::uint32_t all_switches = none;  // NVSwitches are one node to NCCL
    for (std::uint32_t node = design_.gpus; node < design_.nodes; ++node) {
      const Kind kind = kind_in(design_, node);
      if (kind == Kind::nvswitch) {
        if (all_switches == none) all_switches = system_.add(kind);
        node_[node] = all_switches;
      } else {
        node_[node] = system_.add(kind, node);
      }
    }
  }

  void add_link(const ServerDesign::Link& link) {
    const std::uint32_t a = node_[link.a];
    const std::uint32_t b = node_[link.b];
    if (a == none || b == none) return;
    if (link.link_class == "nvlink") {
      system_.connect(a, b, NcclLink::Kind::nvlink, nvlink_speed(link.link.rate, design_.architecture));
    } else if (link.link_class == "smp") {
      system_.connect(a, b, NcclLink::Kind::system, gigabytes(link.link.rate));
    } else if (kind_in(design_, link.a) == Kind::gpu && kind_in(design_, link.b) == Kind::nic) {
      add_behind_switch(a, b, pci_speed(link.link.rate));
    } else {
      system_.connect(a, b, NcclLink::Kind::pci, pci_speed(link.link.rate));
    }
  }

  /// Where a design leaves out the PCIe switch between a NIC and its GPUs, there is one for each NIC.
  void add_behind_switch(std::uint32_t gpu, std::uint32_t nic, double speed) {
    std::uint32_t& pci = switch_of_nic_.try_emplace(nic, none).first->second;
    if (pci == none) {
      pci = system_.add(Kind::pci);
      system_.connect(pci, nic, NcclLink::Kind::pci, speed);
    }
    system_.connect(gpu, pci, NcclLink::Kind::pci, speed);
  }

  void add_networks(Bandwidth nic_rate) {
    for (std::uint32_t nic = 0; nic < design_.nics.size(); ++nic)
      system_.connect(node_[design_.nics[nic]], system_.add(Kind::net, nic), NcclLink::Kind::net,
                      gigabytes(nic_rate) * design_.ports_per_nic);
  }

  const ServerDesign& design_;
  bool several_servers_;
  NcclSystem system_;
  std::vector<std::uint32_t> node_;  // of the design's
  std::map<std::uint32_t, std::uint32_t> switch_of_nic_;
};

/// What algorithms need of a search.
ServerChannels channels_of(const NcclSystem& system, const ServerGraphs& graphs) {
  ServerChannels result;
  for (std::uint32_t gpu = 0; gpu < system.count(Kind::gpu); ++gpu)
    result.accelerators.push_back(system.label(Kind::gpu, gpu));
  const auto nic = [&](std::uint32_t net) { return system.several_servers() ? system.label(Kind::net, net) : 0; };
  const auto copy = [&](const NcclSearchGraph& graph, std::vector<ServerChannels::Channel>& to) {
    for (const NcclSearchChannel& channel : graph.channels)
      to.push_back({channel.gpus, nic(channel.net_in), nic(channel.net_out)});
  };
  copy(graphs.ring, result.rings);
  copy(graphs.tree, result.trees);
  for (const NcclSearchChannel& channel : graphs.nvls.channels)
    if (std::find(result.heads.begin(), result.heads.end(), channel.gpus[0]) == result.heads.end())
      result.heads.push_back(channel.gpus[0]);
  result.swaps_pairs = graphs.ring.cross_nic == 2;
  result.first_child_at_second_place = graphs.tree.pattern != GraphPattern::tree && system.count(Kind::gpu) > 1;
  result.second_child_at_second_place = graphs.tree.pattern == GraphPattern::split_tree && system.count(Kind::gpu) > 1;
  return result;
}

}  // namespace

NcclSystem nccl_system(const ServerDesign& design, const std::vector<std::uint32_t>& accelerators, Bandwidth nic_rate,
                       bool several_servers) {
  return SystemMaker(design, accelerators, several_servers).make(nic_rate);
}

// src/init.cc: the tree has as many channels as the ring, NVLink SHARP a head for each GPU at most.
ServerGraphs search_server(const NcclSystem& system, const NcclSearchOptions& options) {
  ServerGraphs graphs;
  graphs.ring = search_nccl_graph(system, GraphPattern::ring, 1, most_nccl_channels / 2, options);
  const auto count = static_cast<std::uint32_t>(graphs.ring.channels.size());
  graphs.tree = search_nccl_graph(system, GraphPattern::balanced_tree, count, count, options);
  graphs.nvls = search_nccl_graph(system, GraphPattern::nvls, 1, most_nccl_channels, options);
  return graphs;
}

MachineChannels::MachineChannels(std::shared_ptr<const ServerShape> shape) : shape_(std::move(shape)) {
  if (!shape_->network) return;
  const ClusterGraph& network = shape_->network->graph;
  nic_rate_ = network.link(network.ports(NodeId(0))[0].link).rate;
}

MachineChannels::MachineChannels(std::shared_ptr<const ServerShape> shape, Bandwidth nic_rate)
    : shape_(std::move(shape)), nic_rate_(nic_rate) {}

const MachineChannels::Kind& MachineChannels::kind(const std::vector<std::uint32_t>& accelerators,
                                                   bool several_servers) {
  const auto [at, fresh] = kinds_.try_emplace({several_servers, accelerators});
  if (fresh) {
    const NcclSystem system = nccl_system(shape_->design, accelerators, nic_rate_, several_servers);
    at->second.graphs = search_server(system);
    at->second.channels = channels_of(system, at->second.graphs);
  }
  return at->second;
}

std::shared_ptr<const ChannelGraph> MachineChannels::graph(const std::vector<std::uint32_t>& hosts) {
  const std::uint32_t gpus = shape_->design.gpus;
  // Servers in the order of their first members, as NCCL numbers its nodes (src/init.cc).
  std::map<std::uint32_t, std::uint32_t> number_of;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> members;  // accelerator, index
  for (std::uint32_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i] >= shape_->hosts()) return nullptr;
    const auto [at, fresh] = number_of.try_emplace(hosts[i] / gpus, static_cast<std::uint32_t>(members.size()));
    if (fresh) members.emplace_back();
    members[at->second].emplace_back(hosts[i] % gpus, i);
  }
  const bool several = members.size() > 1;
  if (several && (shape_->network == nullptr || shape_->design.nics.empty())) return nullptr;
  std::vector<ChannelGraph::Server> servers;
  std::vector<const Kind*> kinds;
  for (auto& server : members) {
    std::sort(server.begin(), server.end());
    std::vector<std::uint32_t> accelerators;
    ChannelGraph::Server one;
    for (const auto& [accelerator, index] : server) {
      if (!accelerators.empty() && accelerators.back() == accelerator) return nullptr;
      accelerators.push_back(accelerator);
      one.members.push_back(index);
    }
    const Kind* found = &kind(accelerators, several);
    const auto known = std::find(kinds.begin(), kinds.end(), found);
    one.kind = static_cast<std::uint32_t>(known - kinds.begin());
    if (known == kinds.end()) kinds.push_back(found);
    servers.push_back(std::move(one));
  }
  // What all servers can do: src/init.cc, initTransportsRank.
  const ServerGraphs& first = kinds.front()->graphs;
  ChannelSpeeds speeds;
  speeds.generation = static_cast<ChannelSpeeds::Generation>(shape_->design.architecture);
  speeds.kernel = shape_->design.collective_kernel;
  speeds.ring_intra = first.ring.intra;
  speeds.ring_inter = first.ring.inter;
  speeds.tree_intra = first.tree.intra;
  speeds.tree_inter = first.tree.inter;
  speeds.nvls_intra = first.nvls.intra;
  speeds.nvls_inter = first.nvls.inter;
  speeds.nvls_heads = static_cast<std::uint32_t>(kinds.front()->channels.heads.size());
  speeds.nic = gigabytes(nic_rate_) * shape_->design.ports_per_nic;
  std::uint32_t count = most_nccl_channels / 2;
  speeds.same_rings = true;
  for (const Kind* one : kinds) {
    const ServerGraphs& graphs = one->graphs;
    count = std::min({count, static_cast<std::uint32_t>(graphs.ring.channels.size()),
                      static_cast<std::uint32_t>(graphs.tree.channels.size())});
    speeds.ring_intra = std::min(speeds.ring_intra, graphs.ring.intra);
    speeds.ring_inter = std::min(speeds.ring_inter, graphs.ring.inter);
    speeds.tree_intra = std::min(speeds.tree_intra, graphs.tree.intra);
    speeds.tree_inter = std::min(speeds.tree_inter, graphs.tree.inter);
    speeds.nvls_intra = std::min(speeds.nvls_intra, graphs.nvls.intra);
    speeds.nvls_inter = std::min(speeds.nvls_inter, graphs.nvls.inter);
    speeds.nvls_heads = std::min(speeds.nvls_heads, static_cast<std::uint32_t>(one->channels.heads.size()));
    speeds.nvlink &= graphs.ring.intra_type <= PathType::nvlink_relay;
    speeds.tree_is_simple |= graphs.tree.pattern == GraphPattern::tree;
    speeds.same_rings &= graphs.ring.same_channels;
  }
  // src/graph/connect.cc, ncclTopoPostset: a copy of each, and on fast servers another one.
  std::uint32_t channels = std::min(most_nccl_channels, 2 * count);
  if (several && shape_->design.architecture >= GpuArchitecture::hopper && speeds.ring_intra > 45 && channels < 16)
    channels *= 2;
  const bool uniform = kinds.size() == 1 && std::all_of(servers.begin(), servers.end(), [&](const auto& server) {
                         const auto begin =
                             static_cast<std::uint32_t>(&server - servers.data()) * server.members.size();
                         for (std::size_t place = 0; place < server.members.size(); ++place)
                           if (server.members[place] != begin + place) return false;
                         return true;
                       });
  if (uniform)
    return ChannelGraph::uniform(kinds.front()->channels, static_cast<std::uint32_t>(servers.size()), count, channels,
                                 speeds);
  std::vector<ServerChannels> all;
  for (const Kind* one : kinds) all.push_back(one->channels);
  return ChannelGraph::listed(std::move(all), servers, count, channels, speeds);
}

}  // namespace weft
