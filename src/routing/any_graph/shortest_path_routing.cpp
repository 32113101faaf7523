// SPDX-License-Identifier: GPL-2.0-only
// ECMP over all paths of fewest links, for any topology.
#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include <boost/functional/hash.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/visitors.hpp>

#include "routing/algorithm/routing_algorithm.hpp"
#include "support/basics/contract.hpp"
#include "support/basics/error.hpp"

namespace weft {
namespace {

using SwitchGraph = boost::compressed_sparse_row_graph<boost::directedS>;
using Ports = std::vector<std::uint16_t>;

constexpr std::uint32_t unreachable = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t no_switch = std::numeric_limits<std::uint32_t>::max();

/// Each different list of candidate ports, once.
class PortLists {
 public:
  std::uint32_t index_of(const Ports& ports) {
    const auto [place, is_new] = known_.emplace(ports, static_cast<std::uint32_t>(lists_.size()));
    if (is_new) {
      lists_.push_back({static_cast<std::uint32_t>(ports_.size()), static_cast<std::uint32_t>(ports.size())});
      ports_.insert(ports_.end(), ports.begin(), ports.end());
    }
    return place->second;
  }
  std::span<const std::uint16_t> operator[](std::uint32_t index) const {
    const List& list = lists_[index];
    return {ports_.data() + list.first, list.count};
  }

 private:
  struct List {
    std::uint32_t first;
    std::uint32_t count;
  };
  std::vector<List> lists_;
  Ports ports_;
  std::unordered_map<Ports, std::uint32_t, boost::hash<Ports>> known_;  ///< only looked up, never iterated
};

/// Hosts hang on one switch each and carry no transit traffic, so the tables are between switches: for each pair
/// (switch, switch of the destination) the index of a list of ports. 4 bytes * switches^2.
class ShortestPathRouting final : public RoutingAlgorithm {
 public:
  void prepare(const Topology& topology, std::uint64_t seed) override { prepare_without(topology, seed, {}); }
  void prepare_without(const Topology& topology, std::uint64_t seed, const std::vector<bool>& dead) override;
  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override;
  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override;

 private:
  /// Where a host is attached.
  struct Attachment {
    std::uint32_t network_switch = no_switch;  ///< no_switch: directly to another host
    std::uint16_t port = 0;                    ///< of the switch
  };
  void attach_hosts(const ClusterGraph& graph);
  SwitchGraph switch_graph(const ClusterGraph& graph) const;
  bool works(const PortEnd& end) const { return dead_.empty() || !dead_[end.link.value()]; }
  void fill_column(const ClusterGraph& graph, std::uint32_t target, const std::vector<std::uint32_t>& distance);

  std::uint32_t hosts_ = 0;
  std::uint32_t switches_ = 0;
  std::uint64_t seed_ = 0;
  std::vector<bool> dead_;               ///< [links], empty if all work
  std::vector<Attachment> attachments_;  ///< [hosts]
  std::vector<std::uint32_t> next_;      ///< [switch at][switch of the destination] -> list
  PortLists lists_;
};

void ShortestPathRouting::prepare_without(const Topology& topology, std::uint64_t seed, const std::vector<bool>& dead) {
  dead_ = dead;
  const ClusterGraph& graph = topology.graph;
  hosts_ = graph.host_count();
  switches_ = graph.switch_count();
  seed_ = seed;
  lists_ = PortLists();
  attach_hosts(graph);

  const SwitchGraph links = switch_graph(graph);
  next_.assign(static_cast<std::size_t>(switches_) * switches_, 0);
  std::vector<bool> wanted(switches_, false);  // switches without hosts are no destinations
  for (const Attachment& attachment : attachments_)
    if (attachment.network_switch != no_switch) wanted[attachment.network_switch] = true;
  std::vector<std::uint32_t> distance(switches_);
  for (std::uint32_t target = 0; target < switches_; ++target) {
    if (!wanted[target]) continue;
    std::fill(distance.begin(), distance.end(), unreachable);
    distance[target] = 0;
    boost::breadth_first_search(
        links, target,
        boost::visitor(boost::make_bfs_visitor(boost::record_distances(distance.data(), boost::on_tree_edge()))));
    fill_column(graph, target, distance);
  }
}

void ShortestPathRouting::attach_hosts(const ClusterGraph& graph) {
  attachments_.assign(hosts_, {});
  for (std::uint32_t host = 0; host < hosts_; ++host) {
    const auto ports = graph.ports(NodeId(host));
    WEFT_EXPECT(ports.size() == 1, "{} has {} ports", graph.name(NodeId(host)), ports.size());
    const PortEnd& port = ports.front();
    if (!graph.is_host(port.peer)) attachments_[host] = {port.peer.value() - hosts_, port.peer_port};
  }
}

SwitchGraph ShortestPathRouting::switch_graph(const ClusterGraph& graph) const {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (std::uint32_t i = 0; i < switches_; ++i)
    for (const PortEnd& port : graph.ports(NodeId(hosts_ + i)))
      if (!graph.is_host(port.peer) && works(port)) edges.emplace_back(i, port.peer.value() - hosts_);
  return SwitchGraph(boost::edges_are_sorted, edges.begin(), edges.end(), switches_);
}

void ShortestPathRouting::fill_column(const ClusterGraph& graph, std::uint32_t target,
                                      const std::vector<std::uint32_t>& distance) {
  Ports closer;
  for (std::uint32_t i = 0; i < switches_; ++i) {
    if (i == target) continue;
    if (distance[i] == unreachable && dead_.empty()) {
      throw InputError(SourceLine{}, "there is no path between " + graph.name(NodeId(hosts_ + i)) + " and " +
                                         graph.name(NodeId(hosts_ + target)));
    }
    closer.clear();
    const auto ports = graph.ports(NodeId(hosts_ + i));
    for (std::size_t port = 0; port < ports.size(); ++port) {
      const NodeId peer = ports[port].peer;
      if (!graph.is_host(peer) && works(ports[port]) && distance[i] != unreachable &&
          distance[peer.value() - hosts_] + 1 == distance[i])
        closer.push_back(static_cast<std::uint16_t>(port));
    }
    next_[static_cast<std::size_t>(i) * switches_ + target] = lists_.index_of(closer);
  }
}

void ShortestPathRouting::route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const {
  if (at.value() < hosts_) {
    std::fill_n(ports, requests.size(), std::uint16_t{0});
    return;
  }
  const std::uint32_t here = at.value() - hosts_;
  const std::uint32_t* const row = next_.data() + static_cast<std::size_t>(here) * switches_;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Attachment& target = attachments_[requests[i].destination.value()];
    if (target.network_switch == here) {
      ports[i] = target.port;
      continue;
    }
    const auto choices = lists_[row[target.network_switch]];
    if (choices.empty()) {
      ports[i] = no_route;
      continue;
    }
    ports[i] =
        choices.size() == 1
            ? choices[0]
            : choices[ecmp_choice(ecmp_hash(requests[i], at, seed_), static_cast<std::uint32_t>(choices.size()))];
  }
}

std::vector<std::uint16_t> ShortestPathRouting::candidates(NodeId at, NodeId destination) const {
  if (at.value() < hosts_) return {0};
  const std::uint32_t here = at.value() - hosts_;
  const Attachment& target = attachments_[destination.value()];
  if (target.network_switch == here) return {target.port};
  const auto choices = lists_[next_[static_cast<std::size_t>(here) * switches_ + target.network_switch]];
  return {choices.begin(), choices.end()};
}

const Registration<RoutingAlgorithm, ShortestPathRouting> shortest_path_routing_registration(
    "shortest_path", "any topology: ECMP over all paths of fewest links, from tables built by breadth-first search");

}  // namespace
}  // namespace weft
