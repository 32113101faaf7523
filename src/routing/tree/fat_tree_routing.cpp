// SPDX-License-Identifier: GPL-2.0-only
// Fat-tree routing by formula: up by ECMP until the destination is below, then the only way down. No tables.
#include <algorithm>

#include <fmt/format.h>

#include "routing/algorithm/reciprocal.hpp"
#include "routing/algorithm/routing_algorithm.hpp"
#include "support/basics/contract.hpp"
#include "support/basics/error.hpp"

namespace weft {
namespace {

/// Relies on the node and port numbers that topologies/families/fat_tree.cpp describes. h = k/2.
class FatTreeRouting final : public RoutingAlgorithm {
 public:
  void prepare(const Topology& topology, std::uint64_t seed) override;
  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override;
  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override;

 private:
  /// The hosts below a switch are the `count` from `first` on; host i of them is reached through port i /
  /// hosts_per_port.
  struct Below {
    std::uint32_t first;
    std::uint32_t count;
    Reciprocal hosts_per_port;
  };
  Below below(std::uint32_t at) const;
  void route_up_or_down(std::uint32_t at, const Below& below, std::span<const RouteRequest> requests,
                        std::uint16_t* ports) const;

  std::uint32_t half_ = 0;          ///< h: hosts per edge switch, and ports upwards
  std::uint32_t pod_hosts_ = 0;     ///< h^2
  std::uint32_t hosts_ = 0;         ///< 2h^3, also the first edge switch
  std::uint32_t aggregations_ = 0;  ///< the first aggregation switch
  std::uint32_t cores_ = 0;         ///< the first core switch
  Reciprocal by_one_;
  Reciprocal by_half_;
  Reciprocal by_pod_;
  std::uint64_t seed_ = 0;
};

void FatTreeRouting::prepare(const Topology& topology, std::uint64_t seed) {
  if (topology.kind != "fat_tree" || topology.radix < 2 || topology.radix % 2 != 0) {
    throw InputError(SourceLine{}, fmt::format("routing 'fat_tree' is for topologies of kind fat_tree, found '{}'; "
                                               "'shortest_path' routes any topology",
                                               topology.kind));
  }
  half_ = topology.radix / 2;
  pod_hosts_ = half_ * half_;
  hosts_ = topology.radix * pod_hosts_;
  aggregations_ = hosts_ + topology.radix * half_;
  cores_ = aggregations_ + topology.radix * half_;
  by_one_ = Reciprocal(1);
  by_half_ = Reciprocal(half_);
  by_pod_ = Reciprocal(pod_hosts_);
  seed_ = seed;
  WEFT_EXPECT(topology.graph.host_count() == hosts_ && topology.graph.node_count() == cores_ + pod_hosts_,
              "k {}: {} hosts, {} nodes", topology.radix, topology.graph.host_count(), topology.graph.node_count());
}

FatTreeRouting::Below FatTreeRouting::below(std::uint32_t at) const {
  if (at >= cores_) return {0, hosts_, by_pod_};
  if (at >= aggregations_) return {by_half_.quotient(at - aggregations_) * pod_hosts_, pod_hosts_, by_half_};
  return {(at - hosts_) * half_, half_, by_one_};
}

void FatTreeRouting::route_up_or_down(std::uint32_t at, const Below& below, std::span<const RouteRequest> requests,
                                      std::uint16_t* ports) const {
  const std::uint64_t salt = ecmp_salt(NodeId(at), seed_);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const RouteRequest& request = requests[i];
    const std::uint32_t offset = request.destination.value() - below.first;  // wraps far beyond count for lower hosts
    ports[i] = static_cast<std::uint16_t>(offset < below.count ? below.hosts_per_port.quotient(offset)
                                                               : half_ + ecmp_choice(ecmp_hash(request, salt), half_));
  }
}

void FatTreeRouting::route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const {
  if (at.value() < hosts_)
    std::fill_n(ports, requests.size(), std::uint16_t{0});
  else
    route_up_or_down(at.value(), below(at.value()), requests, ports);
}

std::vector<std::uint16_t> FatTreeRouting::candidates(NodeId at, NodeId destination) const {
  if (at.value() < hosts_) return {0};
  const Below reach = below(at.value());
  const std::uint32_t offset = destination.value() - reach.first;
  if (offset < reach.count) return {static_cast<std::uint16_t>(reach.hosts_per_port.quotient(offset))};
  std::vector<std::uint16_t> ports;
  for (std::uint32_t up = 0; up < half_; ++up) ports.push_back(static_cast<std::uint16_t>(half_ + up));
  return ports;
}

const Registration<RoutingAlgorithm, FatTreeRouting> fat_tree_routing_registration(
    "fat_tree", "three-level fat-tree by formula: ECMP upwards, one way down; no tables");

}  // namespace
}  // namespace weft
