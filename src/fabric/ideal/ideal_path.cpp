// SPDX-License-Identifier: GPL-2.0-only
// The way of a flow on the ideal network, and when messages that follow each other on it arrive.
#include "fabric/ideal/ideal_path.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include "support/basics/contract.hpp"

namespace weft {
Time last_packet_time(const IdealLink& link, const IdealMessage& message) {
  if (message.last_payload == message.full_payload) return link.full;
  if (link.frame_payload == 0) return serialization_time(message.last, link.rate);
  const std::int64_t payload = message.last_payload.count();
  const std::int64_t frames = std::max<std::int64_t>(1, (payload + link.frame_payload - 1) / link.frame_payload);
  return serialization_time(Bytes(payload + frames * link.frame_overhead), link.rate);
}

Time idle_time(const IdealPath& path, const IdealMessage& message) {
  IdealFront front;
  Time last = last_packet_time(path.links[0], message);
  front.last_full = (message.packets - 2) * path.links[0].full;
  front.last = (message.packets - 1) * path.links[0].full;
  for (std::uint32_t i = 1; i < path.links.size(); ++i) {
    const Time here = last_packet_time(path.links[i], message);
    front = next_link(path, i, front, message.packets, last, Time());
    last = here;
  }
  return front.last + last + path.links.back().delay;
}

IdealPaths::IdealPaths(const Topology& topology, const NetworkParameters& parameters, const RoutingAlgorithm& routing)
    : topology_(topology), parameters_(parameters), routing_(routing) {
  const ClusterGraph& graph = topology.graph;
  std::vector<std::uint8_t> hosts(graph.node_count(), 0);
  for (const NodeId host : graph.hosts()) {
    std::uint8_t& count = hosts[graph.ports(host)[0].peer.value()];
    count = static_cast<std::uint8_t>(std::min(2, count + 1));
  }
  lonely_.resize(graph.node_count());
  for (const NodeId node : graph.switches()) lonely_[node.value()] = hosts[node.value()] == 1;
}

bool IdealPaths::own_switch(NodeId node, NodeId host) const {
  return lonely_[node.value()] && topology_.graph.ports(host)[0].peer == node;
}

bool IdealPaths::belongs(NodeId node, NodeId host, bool with_server) const {
  if (node == host || own_switch(node, host)) return true;
  const std::uint32_t server = topology_.graph.node(host).block;
  return with_server && server != no_block && topology_.graph.node(node).block == server;
}

bool IdealPaths::at_one_end(NodeId a, NodeId b) const {
  const ClusterGraph& graph = topology_.graph;
  if (graph.node(a).block != no_block && graph.node(a).block == graph.node(b).block) return true;
  return (graph.is_host(a) && own_switch(b, a)) || (graph.is_host(b) && own_switch(a, b));
}

// As Fabric::head_time(): a switch stores packets that arrive at a lower rate than that of its fastest port.
Time IdealPaths::head_time(NodeId node, Bandwidth rate) const {
  const ClusterGraph& graph = topology_.graph;
  if (!parameters_.fabric.cut_through || graph.is_host(node)) return Time();
  for (const PortEnd& next : graph.ports(node))
    if (graph.link(next.link).rate > rate) return Time();
  return serialization_time(parameters_.header, rate);
}

IdealPaths::Found IdealPaths::find(const RouteRequest& flow) const {
  const ClusterGraph& graph = topology_.graph;
  const std::vector<PathHop> hops = trace_path(topology_, routing_, flow);
  const NodeId source = flow.source;
  const NodeId destination = flow.destination;
  const auto count = static_cast<std::uint32_t>(hops.size());
  const auto peer = [&](std::uint32_t i) { return i + 1 < count ? hops[i + 1].node : destination; };
  Found found;
  const Bytes mtu = parameters_.mtu_between(graph.node(source), graph.node(destination));
  found.path.mtu = mtu;
  for (std::uint32_t i = 0; i < count; ++i) {
    const LinkProperties& link = graph.link(LinkId(hops[i].directed_link / 2));
    const Time latency = parameters_.latency_of(graph.node(peer(i)));
    found.path.links.push_back({link.rate,
                                serialization_time(parameters_.data_wire(link.framing, mtu, true), link.rate),
                                link.delay + latency, head_time(peer(i), link.rate), link.framing.payload,
                                std::uint32_t{link.framing.overhead} + link.framing.answer});
    found.directed_links.push_back(hops[i].directed_link);
  }
  const auto& links = found.path.links;
  const std::uint32_t server = graph.node(source).block;
  const bool leaves_server = server == no_block || server != graph.node(destination).block;
  std::uint32_t out = 0;  // the slowest of the source's links, the first of equal ones
  for (std::uint32_t i = 1; i < count && belongs(hops[i].node, source, leaves_server); ++i)
    if (links[i].rate < links[out].rate) out = i;
  std::uint32_t in = count;  // the slowest of the destination's links behind it, the last of equal ones
  for (std::uint32_t i = count; i-- > out + 1 && belongs(peer(i), destination, leaves_server);)
    if (in == count || links[i].rate < links[in].rate) in = i;
  found.path.out = out;
  found.path.in = in;
  return found;
}

Time IdealPaths::control_time(const RouteRequest& flow) const {
  const ClusterGraph& graph = topology_.graph;
  const std::vector<PathHop> hops = trace_path(topology_, routing_, flow);
  const Bytes mtu = parameters_.mtu_between(graph.node(flow.source), graph.node(flow.destination));
  Time time;
  for (std::size_t i = 0; i < hops.size(); ++i) {
    const LinkProperties& link = graph.link(LinkId(hops[i].directed_link / 2));
    const bool last = i + 1 == hops.size();
    const Time latency = last ? Time() : parameters_.latency_of(graph.node(hops[i + 1].node));
    const Time whole = serialization_time(parameters_.control_wire(link.framing, mtu), link.rate);
    const Time head = last ? Time() : head_time(hops[i + 1].node, link.rate);
    time += (head > Time() ? std::min(head, whole) : whole) + link.delay + latency;
  }
  return time;
}

std::vector<std::uint16_t> owners_of_hosts(const Topology& topology, const std::vector<std::uint16_t>& owner_of_node) {
  const ClusterGraph& graph = topology.graph;
  std::map<std::uint32_t, std::uint16_t> of_server;
  std::vector<std::uint16_t> owners(graph.host_count());
  for (std::uint32_t host = 0; host < graph.host_count(); ++host) {
    const std::uint32_t server = graph.node(NodeId(host)).block;
    owners[host] =
        server == no_block ? owner_of_node[host] : of_server.emplace(server, owner_of_node[host]).first->second;
  }
  return owners;
}

// Dijkstra's algorithm from all hosts at once. Each node belongs to the process of its nearest host; on the shortest
// way between two hosts of different processes there is a link whose ends belong to different ones, and the way over it
// from nearest host to nearest host is no longer.
Time ideal_lookahead(const Topology& topology, const IdealPaths& paths,
                     const std::vector<std::uint16_t>& owner_of_host) {
  const ClusterGraph& graph = topology.graph;
  constexpr Time never = Time::max();
  std::vector<Time> distance(graph.node_count(), never);
  std::vector<std::uint16_t> owner(graph.node_count(), 0);
  using Entry = std::tuple<Time, std::uint16_t, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  for (std::uint32_t host = 0; host < graph.host_count(); ++host) {
    distance[host] = Time();
    owner[host] = owner_of_host[host];
    queue.emplace(Time(), owner[host], host);
  }
  const auto length = [&](NodeId a, NodeId b, LinkId link) {
    return paths.at_one_end(a, b) ? Time() : graph.link(link).delay;
  };
  while (!queue.empty()) {
    const auto [reached, process, node] = queue.top();
    queue.pop();
    if (reached > distance[node] || process != owner[node]) continue;
    for (const PortEnd& port : graph.ports(NodeId(node))) {
      const std::uint32_t next = port.peer.value();
      if (graph.is_host(port.peer)) continue;
      const Time there = reached + length(NodeId(node), port.peer, port.link);
      if (there > distance[next] || (there == distance[next] && process >= owner[next])) continue;
      distance[next] = there;
      owner[next] = process;
      queue.emplace(there, process, next);
    }
  }
  Time min = never;
  for (std::uint32_t l = 0; l < graph.link_count(); ++l) {
    const LinkProperties& link = graph.link(LinkId(l));
    const std::uint32_t a = link.ends[0].value();
    const std::uint32_t b = link.ends[1].value();
    if (owner[a] == owner[b] || distance[a] == never || distance[b] == never) continue;
    min = std::min(min, distance[a] + distance[b] + length(link.ends[0], link.ends[1], LinkId(l)));
  }
  return min;
}

}  // namespace weft
