// SPDX-License-Identifier: GPL-2.0-only
#include "nccl/machine_channels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "support/basics/error.hpp"

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

/// The kind of a node of a design.
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

  /// Where a design leaves out the PCIe switch between a NIC and its GPUs, there is one for each NIC; and one host
  /// bridge for all of them where it leaves out the processors: without a way from a NIC to the second GPU, however
  /// bad, NCCL finds no balanced tree, falls back to a single one, and takes as many rings
  /// (github.com/NVIDIA/nccl/issues/1876).
  void add_behind_switch(std::uint32_t gpu, std::uint32_t nic, double speed) {
    std::uint32_t& pci = switch_of_nic_.try_emplace(nic, none).first->second;
    if (pci == none) {
      pci = system_.add(Kind::pci);
      system_.connect(pci, nic, NcclLink::Kind::pci, speed);
      if (design_.cpus.empty()) system_.connect(pci, host_bridge(), NcclLink::Kind::pci, speed);
    }
    system_.connect(gpu, pci, NcclLink::Kind::pci, speed);
  }

  std::uint32_t host_bridge() {
    if (host_bridge_ == none) host_bridge_ = system_.add(Kind::cpu);
    return host_bridge_;
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
  std::uint32_t host_bridge_ = none;  // of a design without processors
};

/// GB/s of one link of NVLink as NCCL counts them.
double link_speed(GpuArchitecture architecture) {
  if (architecture == GpuArchitecture::hopper) return 20.6;
  return architecture == GpuArchitecture::blackwell ? 40.1 : 20.0;
}

/// `nic`: GB/s.
PeerChannels channels_to_a_peer(const NcclSystem& system, double nic) {
  const std::uint32_t gpus = system.count(Kind::gpu);
  PeerChannels result;
  for (std::uint32_t a = 0; a < gpus; ++a) {
    for (std::uint32_t b = 0; b < gpus; ++b) {
      if (a == b) continue;
      const NcclPath& path = system.path(Kind::gpu, a, Kind::gpu, b);
      const auto links = static_cast<std::uint32_t>(path.bandwidth / link_speed(system.architecture()));
      result.inside = std::min(result.inside, path.type == PathType::nvlink ? 2 * std::max(1U, links) : 2U);
    }
  }
  if (system.several_servers()) {
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu)
      result.nics = std::max(result.nics, static_cast<std::uint32_t>(system.local_nets(gpu).size()));
    result.by_rate = static_cast<std::uint32_t>(std::ceil(nic / 14));
  }
  return result;
}

/// The results of a search that algorithms need.
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

/// The share of the rings that an accelerator sends on over its links, of the one with the largest. The last one of a
/// ring in a server sends to its NIC, unless the way leads over the NIC of another one (PXN).
double rings_on_links(const NcclSystem& system, const NcclSearchGraph& ring) {
  if (!system.several_servers() || ring.channels.empty() || ring.inter_type >= PathType::peers_nic) return 1;
  std::vector<std::uint32_t> to_nic(system.count(Kind::gpu), 0);
  for (const NcclSearchChannel& channel : ring.channels) ++to_nic[channel.gpus.back()];
  return 1 - *std::min_element(to_nic.begin(), to_nic.end()) / static_cast<double>(ring.channels.size());
}

}  // namespace

NcclSystem nccl_system(const ServerDesign& design, const std::vector<std::uint32_t>& accelerators, Bandwidth nic_rate,
                       bool several_servers) {
  return SystemMaker(design, accelerators, several_servers).make(nic_rate);
}

// src/init.cc: the tree has as many channels as the ring, NVLink SHARP a head for each GPU at most.
ServerGraphs search_server(const NcclSystem& system, const NcclSearchOptions& options) {
  ServerGraphs graphs;
  graphs.ring = search_nccl_graph(system, GraphPattern::ring, 1, max_nccl_channels / 2, options);
  const auto count = static_cast<std::uint32_t>(graphs.ring.channels.size());
  graphs.tree = search_nccl_graph(system, GraphPattern::balanced_tree, count, count, options);
  graphs.nvls = search_nccl_graph(system, GraphPattern::nvls, 1, max_nccl_channels, options);
  return graphs;
}

namespace {

/// A graph's names and numbers in the file.
PathType path_type_of(const std::string& name) {
  for (auto type = PathType::local; type < PathType::none; type = static_cast<PathType>(static_cast<int>(type) + 1))
    if (to_text(type) == name) return type;
  return PathType::none;
}

/// Number in the system of a node of that kind with the user's number.
std::uint32_t number_of(const NcclSystem& system, Kind kind, std::uint32_t label) {
  for (std::uint32_t number = 0; number < system.count(kind); ++number)
    if (system.label(kind, number) == label) return number;
  throw InputError(SourceLine{},
                   fmt::format("nccl_graphs: a channel visits {} {}, which the communicator does not have; "
                               "the file is for all accelerators of a server",
                               kind == Kind::gpu ? "GPU" : "NIC", label));
}

NcclSearchGraph graph_of(const NcclSystem& system, const ServerDesign::GivenGraph& given) {
  NcclSearchGraph graph;
  graph.pattern = static_cast<GraphPattern>(given.pattern);
  graph.intra = given.intra;
  graph.inter = given.inter;
  graph.intra_type = path_type_of(given.intra_type);
  graph.inter_type = path_type_of(given.inter_type);
  graph.cross_nic = given.cross_nic;
  graph.same_channels = given.same_channels;
  const bool nets = system.several_servers();
  for (const auto& channel : given.channels) {
    NcclSearchChannel one;
    for (const std::uint32_t gpu : channel.gpus) one.gpus.push_back(number_of(system, Kind::gpu, gpu));
    one.net_in = nets ? number_of(system, Kind::net, channel.net_in) : 0;
    one.net_out = nets ? number_of(system, Kind::net, channel.net_out) : 0;
    if (graph.pattern != GraphPattern::nvls && one.gpus.size() != system.count(Kind::gpu))
      throw InputError(SourceLine{},
                       fmt::format("nccl_graphs: a channel visits {} accelerators, and the communicator has "
                                   "{} in the server",
                                   one.gpus.size(), system.count(Kind::gpu)));
    graph.channels.push_back(std::move(one));
  }
  return graph;
}

void write_graph(std::string& xml, const NcclSystem& system, int id, const NcclSearchGraph& graph) {
  xml += fmt::format(
      "  <graph id=\"{}\" pattern=\"{}\" crossnic=\"{}\" nchannels=\"{}\" speedintra=\"{:g}\" speedinter=\"{:g}\" "
      "latencyinter=\"0\" typeintra=\"{}\" typeinter=\"{}\" samechannels=\"{}\">\n",
      id, static_cast<int>(graph.pattern), graph.cross_nic, graph.channels.size(), graph.intra, graph.inter,
      to_text(graph.intra_type), to_text(graph.inter_type), graph.same_channels ? 1 : 0);
  const auto net = [&](std::uint32_t number) {
    if (system.several_servers()) xml += fmt::format("      <net dev=\"{}\"/>\n", system.label(Kind::net, number));
  };
  for (const NcclSearchChannel& channel : graph.channels) {
    xml += "    <channel>\n";
    net(channel.net_in);
    for (const std::uint32_t gpu : channel.gpus)
      xml += fmt::format("      <gpu dev=\"{}\"/>\n", system.label(Kind::gpu, gpu));
    net(channel.net_out);
    xml += "    </channel>\n";
  }
  xml += "  </graph>\n";
}

/// Whether members are numbered server by server, as many in each.
bool are_in_order(const std::vector<ChannelGraph::Server>& servers) {
  std::size_t next = 0;
  for (const ChannelGraph::Server& server : servers)
    for (const std::uint32_t member : server.members)
      if (member != next++) return false;
  return true;
}

}  // namespace

ServerGraphs given_server(const NcclSystem& system, const std::vector<ServerDesign::GivenGraph>& given) {
  ServerGraphs graphs = search_server(system);
  for (const auto& one : given) {
    if (one.channels.empty()) continue;
    if (one.id == 0) graphs.ring = graph_of(system, one);
    if (one.id == 1) graphs.tree = graph_of(system, one);
    if (one.id == 3) graphs.nvls = graph_of(system, one);
  }
  return graphs;
}

// RCCL, github.com/ROCm/rccl, src/graph/rome_models.cc: parseRome4P2H fills graphs of any pattern from the table, so
// that trees are chains along the rings. A channel's speed is its share of a link, and of a NIC.
std::optional<ServerGraphs> tabled_server(const NcclSystem& system, const ServerDesign& design) {
  const bool several = system.several_servers();
  const ServerDesign::RingTable& table = several ? design.rings_of_several_servers : design.rings_of_one_server;
  if (table.orders.empty() || system.count(Kind::gpu) != design.gpus) return std::nullopt;
  NcclSearchGraph ring;
  ring.same_channels = false;
  ring.cross_nic = 1;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> rings_on;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> rings_from;  // NIC, its GPU
  for (const auto& order : table.orders) {
    NcclSearchChannel channel;
    for (const std::uint32_t gpu : order) channel.gpus.push_back(number_of(system, Kind::gpu, gpu));
    if (several) {
      channel.net_in = number_of(system, Kind::net, design.nic_of_gpu[order.front()]);
      channel.net_out = number_of(system, Kind::net, design.nic_of_gpu[order.back()]);
      ++rings_from[{channel.net_in, channel.gpus.front()}];
    }
    for (std::size_t i = 0; i < channel.gpus.size() - (several ? 1 : 0); ++i)
      ++rings_on[{channel.gpus[i], channel.gpus[(i + 1) % channel.gpus.size()]}];
    ring.channels.push_back(std::move(channel));
  }
  // The whole table again, so that the first channels are on different links.
  const std::size_t count = ring.channels.size();
  for (std::size_t i = count; i < count * table.repeat; ++i) ring.channels.push_back(ring.channels[i - count]);
  ring.intra = std::numeric_limits<double>::max();
  for (const auto& [pair, rings] : rings_on) {
    const NcclPath& path = system.path(Kind::gpu, pair.first, Kind::gpu, pair.second);
    ring.intra = std::min(ring.intra, path.bandwidth / (rings * table.repeat));
    ring.intra_type = std::max(ring.intra_type, path.type);
  }
  ring.inter = ring.intra;
  for (const auto& [ends, rings] : rings_from) {
    const NcclPath& path = system.path(Kind::net, ends.first, Kind::gpu, ends.second);
    ring.inter = std::min(ring.inter, path.bandwidth / (rings * table.repeat));
    ring.inter_type = std::max(ring.inter_type, path.type);
  }
  ServerGraphs graphs{ring, ring, {}};
  graphs.tree.pattern = GraphPattern::balanced_tree;
  return graphs;
}

namespace {

/// Rings of a table that alternate (ServerDesign::RingTable), for all accelerators of a server.
void alternate(const ServerDesign& design, ServerChannels& channels) {
  const ServerDesign::RingTable& table = design.rings_of_several_servers;
  for (const ServerChannels::Channel& ring : channels.rings)
    channels.backward_rings.push_back({{ring.places.rbegin(), ring.places.rend()}, ring.nic_out, ring.nic_in});
  for (const auto& [orders, to] :
       {std::pair(&table.last_but_one, &channels.last_but_one), {&table.last, &channels.last}})
    for (std::uint32_t i = 0; !orders->empty() && i < channels.rings.size(); ++i) {
      const std::vector<std::uint32_t>& order = (*orders)[i % orders->size()];
      to->push_back({order, design.nic_of_gpu[order.front()], design.nic_of_gpu[order.back()]});
    }
}

}  // namespace

std::string nccl_graphs_xml(const NcclSystem& system, const ServerGraphs& graphs) {
  std::string xml = "<graphs version=\"1\">\n";
  write_graph(xml, system, 0, graphs.ring);
  write_graph(xml, system, 1, graphs.tree);
  if (!graphs.nvls.channels.empty()) write_graph(xml, system, 3, graphs.nvls);
  return xml + "</graphs>\n";
}

std::string MachineChannels::first_server_xml(const std::vector<std::uint32_t>& hosts) const {
  const std::uint32_t gpus = shape_->design.gpus;
  std::set<std::uint32_t> accelerators;
  bool several = false;
  for (const std::uint32_t host : hosts) {
    if (host / gpus == hosts.front() / gpus)
      accelerators.insert(host % gpus);
    else
      several = true;
  }
  const NcclSystem system = nccl_system(shape_->design, {accelerators.begin(), accelerators.end()}, nic_rate_, several);
  return nccl_graphs_xml(system, searched_or_given(system));
}

ServerGraphs MachineChannels::searched_or_given(const NcclSystem& system) const {
  const auto& given = shape_->design.given_graphs;
  if (!given.empty()) return given_server(system, given);
  if (auto tabled = tabled_server(system, shape_->design)) return *std::move(tabled);
  return search_server(system);
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
    at->second.graphs = searched_or_given(system);
    at->second.channels = channels_of(system, at->second.graphs);
    at->second.rings_on_links = rings_on_links(system, at->second.graphs.ring);
    if (several_servers && accelerators.size() == shape_->design.gpus && shape_->design.given_graphs.empty() &&
        shape_->design.rings_of_several_servers.alternate)
      alternate(shape_->design, at->second.channels);
    at->second.peer = channels_to_a_peer(system, gigabytes(nic_rate_) * shape_->design.ports_per_nic);
  }
  return at->second;
}

std::optional<MachineChannels::Servers> MachineChannels::servers_of(const std::vector<std::uint32_t>& hosts) {
  const std::uint32_t gpus = shape_->design.gpus;
  // Servers in the order of their first members, as NCCL numbers its nodes (src/init.cc).
  std::map<std::uint32_t, std::uint32_t> number_of;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> members;  // accelerator, index
  for (std::uint32_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i] >= shape_->hosts()) return std::nullopt;
    const auto [at, fresh] = number_of.try_emplace(hosts[i] / gpus, static_cast<std::uint32_t>(members.size()));
    if (fresh) members.emplace_back();
    members[at->second].emplace_back(hosts[i] % gpus, i);
  }
  const bool several = members.size() > 1;
  if (several && (shape_->network == nullptr || shape_->design.nics.empty())) return std::nullopt;
  Servers result;
  for (auto& server : members) {
    std::sort(server.begin(), server.end());
    std::vector<std::uint32_t> accelerators;
    ChannelGraph::Server one;
    for (const auto& [accelerator, index] : server) {
      if (!accelerators.empty() && accelerators.back() == accelerator) return std::nullopt;
      accelerators.push_back(accelerator);
      one.members.push_back(index);
    }
    const Kind* found = &kind(accelerators, several);
    const auto known = std::find(result.kinds.begin(), result.kinds.end(), found);
    one.kind = static_cast<std::uint32_t>(known - result.kinds.begin());
    if (known == result.kinds.end()) result.kinds.push_back(found);
    result.servers.push_back(std::move(one));
  }
  return result;
}

ChannelSpeeds MachineChannels::common_speeds(const std::vector<const Kind*>& kinds) const {
  const ServerGraphs& first = kinds.front()->graphs;
  ChannelSpeeds speeds;
  speeds.generation = static_cast<ChannelSpeeds::Generation>(shape_->design.architecture);
  speeds.cpu = static_cast<ChannelSpeeds::Cpu>(shape_->design.cpu);
  speeds.kernel = shape_->design.collective_kernel;
  speeds.transport = shape_->design.collective_transport;
  const ServerDesign::NcclSettings& settings = shape_->design.nccl_settings;
  speeds.settings = {settings.net_latency_us, settings.buffer, settings.p2p_chunk, settings.nvls_chunk,
                     settings.nvls_tree_chunk};
  speeds.gpudirect = shape_->design.gpudirect;
  speeds.host_read = shape_->design.host_read;
  speeds.nics_behind_cpu = shape_->design.nics_behind_cpu;
  speeds.ring_intra = first.ring.intra;
  speeds.ring_inter = first.ring.inter;
  speeds.tree_intra = first.tree.intra;
  speeds.tree_inter = first.tree.inter;
  speeds.nvls_intra = first.nvls.intra;
  speeds.nvls_inter = first.nvls.inter;
  speeds.nvls_heads = static_cast<std::uint32_t>(kinds.front()->channels.heads.size());
  speeds.nic = gigabytes(nic_rate_) * shape_->design.ports_per_nic;
  speeds.same_rings = true;
  speeds.rings_on_links = 0;
  for (const Kind* one : kinds) {
    speeds.rings_on_links = std::max(speeds.rings_on_links, one->rings_on_links);
    const ServerGraphs& graphs = one->graphs;
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
  // RCCL knows such servers only as a whole, and searches for parts of them. Regions are for so many of each server.
  const bool tabled = std::all_of(kinds.begin(), kinds.end(), [this](const Kind* one) {
    return one->channels.accelerators.size() == shape_->design.gpus;
  });
  const bool rings = !shape_->design.rings_of_several_servers.orders.empty() && shape_->design.given_graphs.empty();
  if (!shape_->design.tuner_needs_rings || (tabled && rings)) speeds.tuner = shape_->design.collective_tuner;
  return speeds;
}

std::uint32_t MachineChannels::common_rings(const std::vector<const Kind*>& kinds) {
  std::uint32_t count = max_nccl_channels / 2;
  for (const Kind* one : kinds)
    count = std::min({count, static_cast<std::uint32_t>(one->graphs.ring.channels.size()),
                      static_cast<std::uint32_t>(one->graphs.tree.channels.size())});
  return count;
}

std::uint32_t MachineChannels::peer_channels(const Servers& found, std::size_t members, std::uint32_t channels) {
  const std::uint32_t all = std::bit_ceil(channels);
  const bool several = found.servers.size() > 1;
  std::uint32_t result = all;
  for (const Kind* kind : found.kinds) {
    const PeerChannels& one = kind->peer;
    result =
        std::min(result, std::bit_ceil(several ? std::min(one.inside, std::max(one.nics, one.by_rate)) : one.inside));
  }
  while (several && result > 1 && result * ((members + 7) / 8) > all) result /= 2;
  return result;
}

// src/graph/paths.cc at 178b6b75 (2.22.3), ncclTopoGetNchannels: two, or one where four messages would share a channel,
// whatever the NIC carries.
std::uint32_t MachineChannels::early_peer_channels(const Servers& found, std::size_t members, std::uint32_t channels) {
  std::uint32_t result = std::bit_ceil(channels);
  const std::uint32_t scaled = 2 * members > std::size_t{4} * channels ? 1 : 2;
  for (const Kind* kind : found.kinds) {
    const PeerChannels& one = kind->peer;
    const std::uint32_t between = std::max(one.nics, scaled);
    result = std::min(result, std::bit_ceil(found.servers.size() > 1 ? std::min(one.inside, between) : one.inside));
  }
  return result;
}

std::shared_ptr<const ChannelGraph> MachineChannels::graph(const std::vector<std::uint32_t>& hosts) {
  const auto found = servers_of(hosts);
  if (!found) return nullptr;
  const auto& [servers, kinds] = *found;
  // The speeds and rings that all servers support: src/init.cc, initTransportsRank.
  ChannelSpeeds speeds = common_speeds(kinds);
  const std::uint32_t rings = common_rings(kinds);
  // src/graph/connect.cc, ncclTopoPostset: a copy of each, and on fast servers another one.
  std::uint32_t channels = std::min(max_nccl_channels, 2 * rings);
  if (servers.size() > 1 && shape_->design.architecture >= GpuArchitecture::hopper && speeds.ring_intra > 45 &&
      channels < 16)
    channels *= 2;
  speeds.peer_channels = peer_channels(*found, hosts.size(), channels);
  speeds.early_peer_channels = early_peer_channels(*found, hosts.size(), channels);
  if (kinds.size() == 1 && are_in_order(servers))
    return ChannelGraph::uniform(kinds.front()->channels, static_cast<std::uint32_t>(servers.size()), rings, channels,
                                 speeds);
  std::vector<ServerChannels> all;
  for (const Kind* one : kinds) all.push_back(one->channels);
  return ChannelGraph::listed(std::move(all), servers, rings, channels, speeds);
}

}  // namespace weft
