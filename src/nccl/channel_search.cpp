// SPDX-License-Identifier: GPL-2.0-only
#include "nccl/channel_search.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <boost/container/small_vector.hpp>

#include "nccl/free_bandwidth.hpp"
#include "nccl/gpu_order.hpp"

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
      NextGpus gpus(gpus_, boost::container::default_init);
      const std::size_t count = find_next(gpu, step, back, order, {gpus.data(), gpus.size()});
      for (const std::uint32_t next : std::span(gpus.data(), count))
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

  // Returns how many there are in `next`.
  std::size_t find_next(std::uint32_t gpu, std::uint32_t step, const Return& back, Order order,
                        std::span<std::uint32_t> next) const {
    if (order == Order::best_first)
      return best_next_gpus(system_, graph_.pattern,
                            {gpu, open_.net_in, back.to_net != nowhere, back.to_net == step + 1}, used_, next);
    next[0] = order == Order::by_number ? step + 1 : graph_.channels.back().gpus[step + 1];
    return 1;
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
