// SPDX-License-Identifier: GPL-2.0-only
// Source routing along paths that are written down; pairs of hosts without one take shortest paths.
#include <algorithm>

#include "graph/machine/static_paths.hpp"
#include "routing/algorithm/range_routing.hpp"

namespace weft {
namespace {

class StaticRouting final : public RoutingAlgorithm {
 public:
  void prepare(const Topology& topology, std::uint64_t seed) override {
    if (!topology.paths)
      throw InputError(SourceLine{}, "routing 'static' follows the paths of topology.paths, and there are none");
    paths_ = topology.paths;
    seed_ = seed;
    others_ = RoutingRegistry::instance().find("shortest_path")->make();
    others_->prepare(topology, seed);
  }

  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    others_->route(at, requests, ports);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto [first, last] = paths_of(requests[i].source, requests[i].destination);
      if (first == last) continue;
      // The same path at every node: the hash leaves the node out.
      constexpr NodeId no_node(0xfffffffdU);
      const auto count = static_cast<std::uint32_t>(last - first);
      const StaticPath& path = first[count == 1 ? 0 : ecmp_choice(ecmp_hash(requests[i], no_node, seed_), count)];
      for (const StaticPath::Hop& hop : path.hops)
        if (hop.node == at) ports[i] = hop.port;
    }
  }

  /// For all sources: ports of paths to the destination through this node, and those of shortest paths.
  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    std::vector<std::uint16_t> ports = others_->candidates(at, destination);
    for (const StaticPath& path : *paths_) {
      if (path.destination != destination) continue;
      for (const StaticPath::Hop& hop : path.hops)
        if (hop.node == at) ports.push_back(hop.port);
    }
    std::sort(ports.begin(), ports.end());
    ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
    return ports;
  }

  /// A pair with written paths keeps to the one that route() takes: others of them may turn back.
  std::vector<std::uint16_t> candidates_of(NodeId at, const RouteRequest& flow) const override {
    const auto [first, last] = paths_of(flow.source, flow.destination);
    if (first == last) return others_->candidates_of(at, flow);
    std::uint16_t port = no_route;
    route(at, {&flow, 1}, &port);
    return {port};
  }

 private:
  std::pair<StaticPaths::const_iterator, StaticPaths::const_iterator> paths_of(NodeId source,
                                                                               NodeId destination) const {
    const auto key = [](const StaticPath& path) { return std::pair(path.source, path.destination); };
    const auto wanted = std::pair(source, destination);
    const auto first = std::partition_point(paths_->begin(), paths_->end(),
                                            [&](const StaticPath& path) { return key(path) < wanted; });
    const auto last =
        std::partition_point(first, paths_->end(), [&](const StaticPath& path) { return key(path) == wanted; });
    return {first, last};
  }

  std::shared_ptr<const StaticPaths> paths_;
  std::unique_ptr<RoutingAlgorithm> others_;
  std::uint64_t seed_ = 0;
};

const Registration<RoutingAlgorithm, StaticRouting> static_routing_registration(
    "static", "any topology: along the paths of topology.paths, other pairs by shortest paths");

}  // namespace
}  // namespace weft
