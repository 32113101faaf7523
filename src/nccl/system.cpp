// SPDX-License-Identifier: GPL-2.0-only
#include "nccl/system.hpp"

#include <algorithm>
#include <bit>

#include "support/basics/contract.hpp"

namespace weft {
namespace {

constexpr double within_a_node = 5000;  // LOC_BW

bool better(PathType type, double bandwidth, std::size_t hops, const NcclPath& than) {
  if (than.type == PathType::none) return true;
  if (type != than.type) return type < than.type;
  if (bandwidth != than.bandwidth) return bandwidth > than.bandwidth;
  return hops < than.links.size();
}

/// Bits of `value` below `power` (a power of two) the other way round.
std::uint32_t mirrored(std::uint32_t value, std::uint32_t power) {
  std::uint32_t result = 0;
  for (std::uint32_t bit = 1; bit < power; bit <<= 1) result = (result << 1) | ((value & bit) != 0 ? 1U : 0U);
  return result;
}

}  // namespace

std::string_view to_text(PathType type) {
  static constexpr std::array<std::string_view, 12> names = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                             "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
  return names[static_cast<std::size_t>(type)];
}

std::uint32_t NcclSystem::add(Kind kind, std::uint32_t label) {
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  auto& same = of_kind_[static_cast<std::size_t>(kind)];
  nodes_.push_back({kind, static_cast<std::uint32_t>(same.size()), label});
  same.push_back(id);
  links_of_.emplace_back();
  return id;
}

void NcclSystem::connect(std::uint32_t a, std::uint32_t b, NcclLink::Kind kind, double bandwidth) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    auto& own = links_of_[from];
    const auto same = std::find_if(own.begin(), own.end(), [&, to = to](std::uint32_t link) {
      return links_[link].to == to && links_[link].kind == kind;
    });
    if (same != own.end()) {
      links_[*same].bandwidth += bandwidth;
    } else {
      own.push_back(static_cast<std::uint32_t>(links_.size()));
      links_.push_back({kind, from, to, bandwidth});
    }
    std::stable_sort(own.begin(), own.end(),
                     [&](std::uint32_t x, std::uint32_t y) { return links_[x].bandwidth > links_[y].bandwidth; });
  }
}

double NcclSystem::port_bandwidth(std::uint32_t net) const {
  return links_[links_of_[id(Kind::net, net)].front()].bandwidth;
}

double NcclSystem::pci_bandwidth(std::uint32_t gpu) const {
  for (const std::uint32_t link : links_of_[id(Kind::gpu, gpu)])
    if (links_[link].kind == NcclLink::Kind::pci) return links_[link].bandwidth;
  return 0;
}

// Breadth first from `base`; the paths to it are stored. A GPU forwards only between two others over NVLink.
void NcclSystem::find_paths_to(std::uint32_t base) {
  NcclPath& own = path_of(base, base);
  own = {PathType::local, within_a_node, {}};
  std::vector<std::uint32_t> now{base};
  while (!now.empty()) {
    std::vector<std::uint32_t> next;
    for (const std::uint32_t here : now) {
      for (const std::uint32_t l : links_of_[here]) {
        const NcclLink& link = links_[l];
        const std::uint32_t there = link.to;
        const NcclPath path = path_of(here, base);
        if (there == base) continue;
        const bool both_gpus = nodes_[here].kind == Kind::gpu && nodes_[there].kind == Kind::gpu;
        if (here != base && nodes_[here].kind == Kind::gpu &&
            (!both_gpus || link.kind != NcclLink::Kind::nvlink || path.links.size() > 1))
          continue;
        PathType type = link.kind == NcclLink::Kind::nvlink   ? PathType::nvlink
                        : link.kind == NcclLink::Kind::system ? PathType::between_cpus
                        : link.kind == NcclLink::Kind::net    ? PathType::local
                                                              : PathType::one_switch;
        const bool at_cpu = nodes_[here].kind == Kind::cpu || nodes_[there].kind == Kind::cpu;
        if (nodes_[here].kind == Kind::pci && nodes_[there].kind == Kind::pci) type = PathType::many_switches;
        if (link.kind == NcclLink::Kind::pci && at_cpu) type = PathType::host_bridge;
        if (nodes_[here].kind == Kind::gpu && path.type == PathType::nvlink && type == PathType::nvlink)
          type = PathType::nvlink_relay;
        type = std::max(type, path.type);
        const double bandwidth = std::min(path.bandwidth, link.bandwidth);
        NcclPath& found = path_of(there, base);
        if (!better(type, bandwidth, path.links.size() + 1, found)) continue;
        // The link back, which is the first one of the path to the base.
        const auto back = std::find_if(links_of_[there].begin(), links_of_[there].end(), [&](std::uint32_t other) {
          return links_[other].to == here && links_[other].kind == link.kind;
        });
        found.type = type;
        found.bandwidth = bandwidth;
        found.links = {*back};
        found.links.insert(found.links.end(), path.links.begin(), path.links.end());
        if (std::find(next.begin(), next.end(), there) == next.end()) next.push_back(there);
      }
    }
    now = std::move(next);
  }
}

// ncclTopoComputePaths: only towards the NIC, so that arriving data are received at the NIC's own GPU.
void NcclSystem::use_nics_of_peers() {
  for (std::uint32_t net = 0; net < count(Kind::net); ++net) {
    const std::uint32_t relay = local_gpu(net);
    if (relay == count(Kind::gpu)) continue;
    const NcclPath last = path(Kind::gpu, relay, Kind::net, net);
    if (last.type > PathType::c2c_then_pci) continue;
    for (std::uint32_t gpu = 0; gpu < count(Kind::gpu); ++gpu) {
      const NcclPath& first = path(Kind::gpu, gpu, Kind::gpu, relay);
      NcclPath& own = path_of(id(Kind::gpu, gpu), id(Kind::net, net));
      if (gpu == relay || first.type > PathType::nvlink) continue;
      if (last.bandwidth <= own.bandwidth && own.type <= PathType::peers_nic) continue;
      NcclPath relayed = first;
      relayed.links.insert(relayed.links.end(), last.links.begin(), last.links.end());
      relayed.bandwidth = std::min(first.bandwidth, last.bandwidth);
      relayed.type = PathType::peers_nic;
      own = std::move(relayed);
    }
  }
}

void NcclSystem::find_paths(bool several_servers, bool pxn) {
  WEFT_EXPECT(!several_servers || count(Kind::net) > 0, "several servers without networks");
  several_servers_ = several_servers;
  paths_.assign(nodes_.size() * nodes_.size(), {});
  for (std::uint32_t base = 0; base < nodes_.size(); ++base) find_paths_to(base);
  if (several_servers && pxn) use_nics_of_peers();
  find_limits();
}

void NcclSystem::find_limits() {
  const std::uint32_t gpus = count(Kind::gpu);
  if (!several_servers_ && gpus == 1) {
    max_of_a_channel_ = max_of_a_gpu_ = within_a_node;
    return;
  }
  const Kind peers = several_servers_ ? Kind::net : Kind::gpu;
  max_of_a_channel_ = max_of_a_gpu_ = 0;
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
    for (std::uint32_t peer = 0; peer < count(peers); ++peer) {
      const NcclPath& one = path(Kind::gpu, gpu, peers, peer);
      if (!one.links.empty()) max_of_a_channel_ = std::max(max_of_a_channel_, one.bandwidth);
    }
    double nvlink = 0;
    for (const std::uint32_t link : links_of_[id(Kind::gpu, gpu)])
      if (links_[link].kind == NcclLink::Kind::nvlink) nvlink += links_[link].bandwidth;
    max_of_a_gpu_ = std::max({max_of_a_gpu_, nvlink, pci_bandwidth(gpu)});
  }
}

// ncclTopoGetLocal: the widest, and of these the best type.
std::vector<std::uint32_t> NcclSystem::nearest(Kind from, std::uint32_t number, Kind to) const {
  std::vector<std::uint32_t> found;
  double bandwidth = 0;
  PathType type = PathType::none;
  for (std::uint32_t i = 0; i < count(to); ++i) {
    const NcclPath& one = path(from, number, to, i);
    if (one.type == PathType::none) continue;
    if (one.bandwidth > bandwidth || (one.bandwidth == bandwidth && one.type < type)) {
      bandwidth = one.bandwidth;
      type = one.type;
      found.clear();
    }
    if (one.bandwidth == bandwidth && one.type == type) found.push_back(i);
  }
  return found;
}

std::vector<std::uint32_t> NcclSystem::local_nets(std::uint32_t gpu) const {
  const std::vector<std::uint32_t> nets = nearest(Kind::gpu, gpu, Kind::net);
  if (nets.empty()) return {};
  const auto sharing = static_cast<std::uint32_t>(nearest(Kind::net, nets.front(), Kind::gpu).size());
  const auto number = static_cast<std::uint32_t>(nets.size());
  const std::uint32_t turns = (number + sharing - 1) / std::max(1U, sharing);
  const std::uint32_t turn = label(Kind::gpu, gpu) % std::max(1U, sharing);
  const std::uint32_t first = std::has_single_bit(number) ? mirrored(turn, number) : turn;
  std::vector<std::uint32_t> result;
  for (std::uint32_t channel = 0; channel < turns; ++channel) result.push_back(nets[(first + channel) % number]);
  return result;
}

std::uint32_t NcclSystem::local_gpu(std::uint32_t net) const {
  const std::vector<std::uint32_t> gpus = nearest_gpus(net);
  const std::uint32_t max = count(Kind::net);
  for (std::uint32_t channel = 0; channel < max; ++channel) {
    for (const std::uint32_t gpu : gpus) {
      const std::vector<std::uint32_t> own = local_nets(gpu);
      if (channel < own.size() && own[channel] == net) return gpu;
    }
  }
  return count(Kind::gpu);
}

}  // namespace weft
