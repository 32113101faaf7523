// SPDX-License-Identifier: GPL-2.0-only
#include "nccl/machine_channels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "nccl/server_system.hpp"

namespace weft {
namespace {

using Kind = NcclNode::Kind;

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

/// Whether members are numbered server by server, as many in each.
bool are_in_order(const std::vector<ChannelGraph::Server>& servers) {
  std::size_t next = 0;
  for (const ChannelGraph::Server& server : servers)
    for (const std::uint32_t member : server.members)
      if (member != next++) return false;
  return true;
}

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
