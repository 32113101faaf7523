// SPDX-License-Identifier: GPL-2.0-only
#include "nccl/channel_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include <boost/container/small_vector.hpp>

namespace weft {
namespace {

using Kind = NcclNode::Kind;

constexpr int steps_of_number_order = 1 << 10;  // of the search that tries GPUs by number

constexpr std::uint32_t nowhere = 0xffffffffU;

/// GPUs to try next: of a server, without an allocation in each of half a million steps.
using NextGpus = boost::container::small_vector<std::uint32_t, 16>;

/// How the next GPU of a channel is chosen.
enum class Order { best_first, by_number, as_last_channel };

/// The place to which a channel returns, the network or its first GPU, and at which step.
struct Return {
  std::uint32_t to_net = nowhere;
  std::uint32_t to_first = nowhere;
};

/// GB/s that no channel has taken yet, of links and of the ports of networks.
class FreeBandwidth {
 public:
  explicit FreeBandwidth(const NcclSystem& system) : system_(system) {
    for (const NcclLink& link : system.links()) links_.push_back(link.bandwidth);
    for (std::uint32_t net = 0; net < system.count(Kind::net); ++net) ports_.push_back(system.port_bandwidth(net));
  }

  double& at_port(std::uint32_t net) { return ports_[net]; }

  /// From all links of a path, or from none if one has too little.
  bool take(const NcclPath& way, double speed) {
    std::size_t taken = 0;
    while (taken < way.links.size() && charge(way, taken, speed)) ++taken;
    if (taken == way.links.size()) return true;
    while (taken > 0) charge(way, --taken, -speed);
    return false;
  }
  void give_back(const NcclPath& way, double speed) {
    for (std::size_t link = 0; link < way.links.size(); ++link) charge(way, link, -speed);
  }

 private:
  bool charge(const NcclPath& way, std::size_t at, double speed) {
    const NcclLink& link = system_.links()[way.links[at]];
    // INTEL_P2P_OVERHEAD: packets between two GPUs over an Intel host bridge are small.
    const bool over_bridge = system_.intel() && way.type == PathType::host_bridge &&
                             system_.node(system_.links()[way.links.front()].from).kind == Kind::gpu;
    const double wanted = over_bridge && link.kind == NcclLink::Kind::pci ? speed * 6 / 5 : speed;
    double& free = links_[way.links[at]];
    if (free < wanted) return false;
    free = std::round((free - wanted) * 1000) / 1000;  // SUB_ROUND
    return true;
  }

  const NcclSystem& system_;
  std::vector<double> links_;
  std::vector<double> ports_;
};

/// One search at given speeds and types of paths. Bandwidth that a channel takes is gone for the others.
class ChannelSearch {
 public:
  ChannelSearch(const NcclSystem& system, const NcclSearchGraph& wanted, NcclSearchGraph& best, int steps)
      : system_(system),
        gpus_(system.count(Kind::gpu)),
        nets_(system.count(Kind::net)),
        graph_(wanted),
        best_(best),
        left_(steps),
        used_(gpus_, 0),
        free_(system) {
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) nets_of_.push_back(networks_for(gpu));
    nets_of_.push_back(networks_for(nowhere));
    graph_.channels.clear();
    graph_.hops = 0;
  }

  /// Returns the steps that are left, or `perfect_search`.
  int run() {
    add_channel();
    return left_;
  }

 private:
  bool is_ring() const { return graph_.pattern == GraphPattern::ring; }
  std::size_t number() const { return graph_.channels.size(); }
  bool odd_of_pair() const { return is_ring() && graph_.cross_nic == 2 && number() % 2 == 1; }

  Return way_back() const {
    if (!system_.several_servers()) return {nowhere, is_ring() ? gpus_ - 1 : nowhere};
    if (is_ring()) return {gpus_ - 1, nowhere};
    return {graph_.pattern == GraphPattern::split_tree ? 1U : 0U, nowhere};
  }

  void add_channel() {
    open_ = NcclSearchChannel{};
    open_.gpus.resize(gpus_);
    if (system_.several_servers()) {
      start_at_networks();
    } else if (graph_.pattern == GraphPattern::nvls) {
      try_gpu(0, {}, Order::best_first, nullptr, static_cast<std::uint32_t>(number()));
    } else {
      start_inside();
    }
  }

  void start_inside() {
    const Return back = way_back();
    if (number() == 0)
      try_gpu(0, back, Order::by_number, nullptr, 0);
    else
      try_gpu(0, back, Order::as_last_channel, nullptr, graph_.channels.back().gpus[0]);
    if (number() > 0 && graph_.same_channels) return;
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) try_gpu(0, back, Order::best_first, nullptr, gpu);
  }

  // ncclTopoSearchRecNet
  void start_at_networks() {
    const std::vector<std::uint32_t>& nets = nets_of_.back();
    const double wanted = std::floor(graph_.inter);  // NCCL compares whole GB/s
    for (std::size_t i = 0; i < nets.size() && left_ > 0; ++i) {
      const std::uint32_t net = nets[(number() + i) % nets.size()];
      if (free_.at_port(net) < wanted) continue;
      if (odd_of_pair() && net != graph_.channels.back().net_out) continue;
      const NcclSearchChannel before = open_;
      open_.net_in = net;
      free_.at_port(net) -= wanted;
      const bool found = start_at(net, nets.size());
      free_.at_port(net) += wanted;
      open_ = before;
      if (found) break;
    }
  }

  /// True if no other network has to be tried.
  bool start_at(std::uint32_t net, std::size_t nets) {
    const Return back = way_back();
    const auto from_net = [&](std::uint32_t gpu) { return &system_.path(Kind::net, net, Kind::gpu, gpu); };
    if (graph_.pattern == GraphPattern::nvls) {
      const std::uint32_t head = system_.local_gpu(net);
      if (number() >= nets || head == gpus_ || is_head(head)) return false;
      try_gpu(0, back, Order::best_first, from_net(head), head);
      return true;
    }
    if (number() > 0 && graph_.same_channels) {
      const std::uint32_t first = graph_.channels.back().gpus[0];
      try_gpu(0, back, Order::as_last_channel, from_net(first), first);
      return false;
    }
    if (number() == 0 && system_.count(Kind::nvswitch) == 0) {
      // By number first, which the rest has to beat.
      const int all = left_;
      left_ = steps_of_number_order;
      try_gpu(0, back, Order::by_number, from_net(0), 0);
      left_ = left_ == perfect_search ? perfect_search : all;
    }
    for (const std::uint32_t gpu : system_.nearest_gpus(net)) try_gpu(0, back, Order::best_first, from_net(gpu), gpu);
    return false;
  }
  bool is_head(std::uint32_t gpu) const {
    return std::any_of(graph_.channels.begin(), graph_.channels.end(),
                       [gpu](const NcclSearchChannel& channel) { return channel.gpus[0] == gpu; });
  }

  // ncclTopoSelectNets: those local to the GPU (nowhere: to all GPUs in turn), then others in reach.
  std::vector<std::uint32_t> networks_for(std::uint32_t gpu) const {
    std::vector<std::uint32_t> result;
    const auto append = [&](std::uint32_t net) {
      if (std::find(result.begin(), result.end(), net) == result.end()) result.push_back(net);
    };
    const std::uint32_t first = gpu == nowhere ? 0 : gpu;
    const std::uint32_t last = gpu == nowhere ? gpus_ - 1 : gpu;
    for (std::uint32_t g = first; g <= last; ++g)
      for (const std::uint32_t net : system_.local_nets(g)) append(net);
    for (auto type = static_cast<int>(PathType::local); type <= static_cast<int>(graph_.inter_type); ++type)
      for (std::uint32_t g = first; g <= last; ++g)
        for (std::uint32_t net = 0; net < nets_; ++net)
          if (static_cast<int>(system_.path(Kind::gpu, g, Kind::net, net).type) == type) append(net);
    return result;
  }

  // ncclTopoSearchTryGpu
  void try_gpu(std::uint32_t step, const Return& back, Order order, const NcclPath* way, std::uint32_t gpu) {
    const bool inside = way == nullptr || from_gpu(*way);
    if (way != nullptr && !take(*way, inside ? graph_.intra : graph_.inter, inside)) return;
    used_[gpu] = 1;
    visit(gpu, step, back, order);
    used_[gpu] = 0;
    if (way != nullptr) give_back(*way, inside ? graph_.intra : graph_.inter);
  }
  bool from_gpu(const NcclPath& way) const {
    return way.links.empty() || system_.node(system_.links()[way.links.front()].from).kind != Kind::net;
  }

  // ncclTopoSearchRecGpu
  void visit(std::uint32_t gpu, std::uint32_t step, const Return& back, Order order) {
    if (left_ <= 0) return;
    --left_;
    if (step == gpus_) {
      close_channel();
      return;
    }
    open_.gpus[step] = gpu;
    if (step == back.to_net) {
      return_to_network(gpu, step, back, order);
    } else if (graph_.pattern == GraphPattern::nvls) {
      visit_switch(gpu);
    } else if (step + 1 < gpus_) {
      NextGpus gpus;
      find_next(gpu, step, back, order, gpus);
      for (const std::uint32_t next : gpus)
        try_gpu(step + 1, back, order, &system_.path(Kind::gpu, gpu, Kind::gpu, next), next);
    } else if (step == back.to_first) {
      const NcclPath& way = system_.path(Kind::gpu, gpu, Kind::gpu, open_.gpus[0]);
      if (!take(way, graph_.intra, true)) return;
      visit(open_.gpus[0], step + 1, {back.to_net, nowhere}, order);
      give_back(way, graph_.intra);
    } else {
      visit(gpu, gpus_, {}, order);
    }
  }

  void return_to_network(std::uint32_t gpu, std::uint32_t step, const Return& back, Order order) {
    const bool balanced = graph_.pattern == GraphPattern::balanced_tree;
    for (const std::uint32_t net : nets_of_[gpu]) {
      if (graph_.pattern == GraphPattern::tree && net != open_.net_in) continue;
      if (is_ring() && graph_.cross_nic == 2) {
        if (number() % 2 == 1 && net != graph_.channels.back().net_in) continue;
      } else if (graph_.cross_nic == 0 && net != open_.net_in) {
        continue;
      }
      // Half of the bandwidth from each of the first two GPUs.
      if (balanced && step == 1 && net != open_.net_out) continue;
      const double speed = graph_.inter / (balanced ? 2 : 1);
      const NcclPath& way = system_.path(Kind::gpu, gpu, Kind::net, net);
      if (!take(way, speed, false)) continue;
      const std::uint32_t before = open_.net_out;
      open_.net_out = net;
      visit(gpu, step, {balanced && step == 0 ? 1U : nowhere, back.to_first}, order);
      open_.net_out = before;
      give_back(way, speed);
    }
  }

  // ncclTopoSearchTryNvls: all GPUs to and from the NVSwitch, the head twice.
  void visit_switch(std::uint32_t head) {
    std::vector<std::pair<const NcclPath*, double>> taken;
    bool fits = true;
    for (const bool down : {true, false}) {
      for (std::uint32_t gpu = 0; gpu < gpus_ && fits; ++gpu) {
        const NcclPath& way =
            down ? system_.path(Kind::nvswitch, 0, Kind::gpu, gpu) : system_.path(Kind::gpu, gpu, Kind::nvswitch, 0);
        const double factor = gpu == head ? 2 : 1;
        // NCCL looks at the kind of path only of those that are taken once.
        fits = take(way, factor * graph_.intra, true, factor == 1);
        if (fits) taken.emplace_back(&way, factor * graph_.intra);
      }
    }
    if (fits) visit(head, gpus_, {}, Order::best_first);
    for (const auto& [way, speed] : taken) give_back(*way, speed);
  }

  void close_channel() {
    graph_.channels.push_back(open_);
    if (is_better()) {
      best_ = graph_;
      if (number() == graph_.max_channels) left_ = perfect_search;
    }
    if (number() < graph_.max_channels && left_ > 0) {
      const NcclSearchChannel before = open_;
      std::vector<char> used(gpus_, 0);
      used.swap(used_);
      add_channel();
      used_.swap(used);
      open_ = before;
    }
    graph_.channels.pop_back();
  }

  // ncclTopoCompareGraphs
  bool is_better() const {
    if (number() < graph_.min_channels) return false;
    const double found = static_cast<double>(number());
    const double known = static_cast<double>(best_.channels.size());
    if (graph_.pattern == GraphPattern::nvls)
      return (number() > best_.channels.size() && number() <= gpus_) || found * graph_.inter > known * best_.inter;
    if (found * graph_.intra != known * best_.intra) return found * graph_.intra > known * best_.intra;
    return graph_.pattern == best_.pattern && graph_.cross_nic == best_.cross_nic && graph_.hops < best_.hops;
  }

  /// The criteria for a GPU as the next one. Whole numbers as in NCCL, larger first but for hops.
  struct Score {
    std::uint32_t gpu = 0;
    int from_net = 0;  ///< GB/s from the network that the channel started at
    int pci = 0;
    int net_hops = 0;
    int nvlink = 0;
    int hops = 0;
    std::uint32_t distance = 0;
  };

  // ncclTopoSearchNextGpuSort
  void find_next(std::uint32_t gpu, std::uint32_t step, const Return& back, Order order, NextGpus& next) const {
    if (order == Order::by_number) return next.push_back(step + 1);
    if (order == Order::as_last_channel) return next.push_back(graph_.channels.back().gpus[step + 1]);
    if (system_.count(Kind::nvswitch) > 0) return next_neighbours(gpu, next);
    const bool sorts_by_net = back.to_net != nowhere;
    boost::container::small_vector<Score, 16> scores;
    for (std::uint32_t i = 1; i < gpus_; ++i) {
      const std::uint32_t other = (gpu + i) % gpus_;
      const NcclPath& way = system_.path(Kind::gpu, gpu, Kind::gpu, other);
      if (way.links.empty() || used_[other] != 0) continue;
      Score score;
      score.gpu = other;
      score.distance = i;
      score.nvlink = static_cast<int>(way.bandwidth);
      score.hops = static_cast<int>(way.links.size());
      if (sorts_by_net) {
        const NcclPath& net = system_.path(Kind::net, open_.net_in, Kind::gpu, other);
        score.from_net = static_cast<int>(net.bandwidth);
        score.net_hops = static_cast<int>(net.links.size());
        score.pci = static_cast<int>(system_.pci_bandwidth(other));
      }
      scores.push_back(score);
    }
    // No two have the same distance, so that the order is total.
    std::sort(scores.begin(), scores.end(), [](const Score& a, const Score& b) {
      return std::tuple(-a.from_net, -a.pci, a.net_hops, -a.nvlink, a.hops, a.distance) <
             std::tuple(-b.from_net, -b.pci, b.net_hops, -b.nvlink, b.hops, b.distance);
    });
    // A GPU that must not return to the network yet: the farthest ones first, if they are equal otherwise.
    const bool alike = std::all_of(scores.begin(), scores.end(), [&](const Score& score) {
      return score.nvlink == scores.front().nvlink && score.hops == scores.front().hops;
    });
    if (sorts_by_net && back.to_net != step + 1 && alike) std::reverse(scores.begin(), scores.end());
    for (const Score& score : scores) next.push_back(score.gpu);
  }

  /// Behind NVSwitches a GPU talks to its neighbours by number only, so that no other GPU needs a score.
  void next_neighbours(std::uint32_t gpu, NextGpus& next) const {
    const std::uint32_t before = (gpu + gpus_ - 1) % gpus_;
    const std::uint32_t after = (gpu + 1) % gpus_;
    const bool tree = graph_.pattern == GraphPattern::balanced_tree || graph_.pattern == GraphPattern::split_tree;
    const std::array<std::uint32_t, 2> both = is_ring() ? std::array{before, after} : std::array{after, before};
    const std::size_t wanted = (is_ring() || tree) && before != after ? 2 : 1;
    for (std::size_t i = 0; i < wanted; ++i)
      if (used_[both[i]] == 0 && !system_.path(Kind::gpu, gpu, Kind::gpu, both[i]).links.empty())
        next.push_back(both[i]);
  }

  // ncclTopoFollowPath: takes bandwidth from all links of a path, or nothing if one has too little.
  bool take(const NcclPath& way, double speed, bool inside, bool looks_at_type = true) {
    const PathType worst = inside ? graph_.intra_type : graph_.inter_type;
    if (way.type == PathType::none || (looks_at_type && way.type > worst)) return false;
    if (looks_at_type && !is_ring() && graph_.pattern != GraphPattern::nvls && way_back_type(way) > worst) return false;
    if (!free_.take(way, speed)) return false;
    graph_.hops += static_cast<std::int32_t>(way.links.size());
    return true;
  }
  void give_back(const NcclPath& way, double speed) {
    free_.give_back(way, speed);
    graph_.hops -= static_cast<std::int32_t>(way.links.size());
  }

  PathType way_back_type(const NcclPath& way) const {
    if (way.links.empty()) return PathType::local;
    const NcclNode& from = system_.node(system_.links()[way.links.front()].from);
    const NcclNode& to = system_.node(system_.links()[way.links.back()].to);
    return system_.path(to.kind, to.number, from.kind, from.number).type;
  }

  const NcclSystem& system_;
  std::uint32_t gpus_;
  std::uint32_t nets_;
  NcclSearchGraph graph_;
  NcclSearchGraph& best_;
  int left_;
  NcclSearchChannel open_;
  std::vector<char> used_;  // by the channel that is being made
  FreeBandwidth free_;
  std::vector<std::vector<std::uint32_t>> nets_of_;  // of each GPU and of all, in the order to try
};

}  // namespace

int search_channels(const NcclSystem& system, const NcclSearchGraph& wanted, NcclSearchGraph& best, int steps) {
  return ChannelSearch(system, wanted, best, steps).run();
}

}  // namespace weft
