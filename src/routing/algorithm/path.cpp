// SPDX-License-Identifier: GPL-2.0-only
// The path that a routing algorithm gives to a flow.
#include "routing/algorithm/path.hpp"

#include "support/basics/contract.hpp"

namespace weft {

std::vector<PathHop> trace_path(const Topology& topology, const RoutingAlgorithm& routing, const RouteRequest& flow) {
  const ClusterGraph& graph = topology.graph;
  std::vector<PathHop> path;
  NodeId at = flow.source;
  AdaptiveRequest request;
  request.flow = flow;
  std::vector<Bytes> queued;
  while (at != flow.destination) {
    WEFT_EXPECT(path.size() < graph.node_count(), "routing leads {} -> {} in a cycle through {}",
                graph.name(flow.source), graph.name(flow.destination), graph.name(at));
    std::uint16_t port = 0;
    const auto ports = graph.ports(at);
    if (routing.per_packet()) {
      queued.assign(ports.size(), Bytes());
      const RouteChoice choice = routing.choose(at, request, queued);
      port = choice.port;
      request.lane = choice.lane;
      request.state = choice.state;
    } else {
      routing.route(at, {&flow, 1}, &port);
    }
    WEFT_EXPECT(port < ports.size(), "{} -> {}: port {} of {}, which has {}", graph.name(flow.source),
                graph.name(flow.destination), port, graph.name(at), ports.size());
    path.push_back({at, port, directed(ports[port].link, ports[port].direction)});
    request.in_port = ports[port].peer_port;
    at = ports[port].peer;
  }
  return path;
}

}  // namespace weft
