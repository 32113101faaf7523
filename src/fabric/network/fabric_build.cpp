// SPDX-License-Identifier: GPL-2.0-only
// Laying out the nodes, ports and cut links of one process.
#include <algorithm>
#include <bit>

#include <unistd.h>

#include "fabric/frames/frame_table.hpp"
#include "fabric/network/buffered_state.hpp"
#include "fabric/network/fabric.hpp"
#include "support/contract.hpp"

namespace weft {

namespace {

/// How many nodes the second cache holds, roughly: half a KiB of ports and packets each is touched between two visits.
/// Measured: fetching ahead begins to pay at 1,000 nodes with 512 KiB, at 2,000 with 1 MiB.
std::size_t nodes_in_second_cache() {
  constexpr long usual = 1 << 20;
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return static_cast<std::size_t>(bytes > 0 ? bytes : usual) / 512;
}

}  // namespace

Fabric::Fabric(const Topology& topology, const Partition& partition, int process, const NetworkParameters& parameters,
               const RoutingAlgorithm& routing, std::uint64_t seed, Drive drive)
    : topology_(topology),
      parameters_(parameters),
      routing_(routing),
      seed_(seed),
      drive_(drive),
      mtu_(parameters.mtu.count()),
      window_(parameters.acks ? parameters.window.count() : INT64_MAX),
      data_overhead_(parameters.data_overhead().count()),
      control_wire_(parameters.control_wire().count()),
      wire_overhead_(parameters.wire_overhead.count()),
      nodes_in_cache_(nodes_in_second_cache()) {
  WEFT_EXPECT(topology.graph.host_count() <= Packet::most_hosts, "{} hosts, packets can address {}",
              topology.graph.host_count(), Packet::most_hosts);
  build_nodes(partition, process);
  build_cut(partition, process);
  // What comes from another process has passed through no cache of this one, and the last cache is shared.
  if (!neighbours_.empty()) nodes_in_cache_ /= 2;
  if (parameters_.buffered() || routing_.per_packet() || routing_.lanes() > 1) build_buffered();
  if (parameters_.frames) carry_frames();
}

Fabric::~Fabric() = default;

void Fabric::set_port_times(OutputPort& port, Bandwidth rate) const {
  const LinkFraming& framing = topology_.graph.link(LinkId(port.directed_link / 2)).framing;
  port.rate_bps = rate.bps();
  port.framed = framing.payload != 0;
  port.full_packet = serialization_time(parameters_.data_wire(framing, parameters_.mtu), rate).ps();
  port.control_packet = serialization_time(parameters_.control_wire(framing), rate).ps();
}

void Fabric::build_nodes(const Partition& partition, int process) {
  const ClusterGraph& graph = topology_.graph;
  local_of_.assign(graph.node_count(), no_slot);
  std::uint32_t ports = 0;
  for (std::uint32_t id = 0; id < graph.node_count(); ++id) {
    if (partition.owner[id] != process) continue;
    Node node;
    node.id = id;
    node.first_port = ports;
    node.ports = static_cast<std::uint32_t>(graph.ports(NodeId(id)).size());
    ports += node.ports;
    if (graph.is_host(NodeId(id))) {
      node.host = static_cast<std::uint32_t>(owned_hosts_.size());
      owned_hosts_.push_back(id);
    }
    local_of_[id] = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(node);
    local_of_port_.insert(local_of_port_.end(), node.ports, local_of_[id]);
  }
  host_states_.resize(owned_hosts_.size());
  outputs_.resize(ports);
  inputs_.resize(ports);
  tie_salts_.resize(ports);
  heads_.assign(ports, never);
  calendar_.resize(nodes_.size());
  if (drive_ == Drive::ns3_events) reference_.resize(nodes_.size());

  std::int64_t least = never;
  for (const Node& node : nodes_) {
    const auto ends = graph.ports(NodeId(node.id));
    for (std::uint32_t p = 0; p < node.ports; ++p) {
      const PortEnd& end = ends[p];
      const LinkProperties& link = graph.link(end.link);
      OutputPort& port = outputs_[node.first_port + p];
      port.directed_link = directed(end.link, end.direction);
      port.after = (link.delay + latency_of(end.peer)).ps();
      set_port_times(port, link.rate);
      // The packets that come in through this port travel the other direction of the link.
      tie_salts_[node.first_port + p] = mix64(seed_ ^ mix64(directed(end.link, 1U - end.direction) + 1ULL));
      const std::uint32_t peer = local_of_[end.peer.value()];
      if (peer != no_slot) {
        port.peer_node = peer;
        port.peer_port = nodes_[peer].first_port + end.peer_port;
      }
    }
  }
  // The inner window is the same on every process: the least time from sending to arriving over any link of the
  // machine.
  for (std::uint32_t l = 0; l < graph.link_count(); ++l) {
    const LinkProperties& link = graph.link(LinkId(l));
    least = std::min(least, (link.delay + serialization_time(parameters_.least_wire(link.framing), link.rate)).ps());
  }
  // A second is long enough for any window.
  set_window(std::clamp<std::int64_t>(least, 1, Time::from_s(1).ps()));
}

void Fabric::set_window(std::int64_t length) {
  window_length_ = length;
  window_reciprocal_ = ~std::uint64_t{0} / static_cast<std::uint64_t>(length);
}

void Fabric::build_cut(const Partition& partition, int process) {
  const ClusterGraph& graph = topology_.graph;
  lookahead_ = partition.lookahead.ps();
  // A process alone looks up now and then, for interrupts and progress.
  if (partition.lookahead == Time::max()) lookahead_ = window_length_ * 256;
  cut_.resize(graph.link_count());
  on_border_.resize(nodes_.size());
  for (std::uint32_t l = 0; l < graph.link_count(); ++l) {
    const LinkProperties& link = graph.link(LinkId(l));
    const int owners[2] = {partition.owner[link.ends[0].value()], partition.owner[link.ends[1].value()]};
    cut_[l] = owners[0] != owners[1];
    if (owners[0] == owners[1] || (owners[0] != process && owners[1] != process)) continue;
    const unsigned here = owners[0] == process ? 0 : 1;
    const int other = owners[1 - here];
    const auto at = std::lower_bound(neighbour_processes_.begin(), neighbour_processes_.end(), other);
    const auto index = at - neighbour_processes_.begin();
    if (at == neighbour_processes_.end() || *at != other) {
      neighbour_processes_.insert(at, other);
      neighbours_.emplace(neighbours_.begin() + index)->process = other;
    }
    Neighbour& neighbour = neighbours_[static_cast<std::size_t>(index)];
    const std::uint32_t local = local_of_[link.ends[here].value()];
    on_border_[local] = true;
    const std::uint32_t port = nodes_[local].first_port + link.ports[here];
    // Both sides list the links between them in the order of link ids, so that a position names a link.
    neighbour.ends.push_back({port, local});
  }
  for (std::uint32_t n = 0; n < neighbours_.size(); ++n) {
    Neighbour& neighbour = neighbours_[n];
    neighbour.link_bits = static_cast<unsigned>(std::bit_width(neighbour.ends.size()));
    // What a key holds; and no more than a few times Time::longest_wait(), because export_anew() looks at the end of
    // simulated time.
    neighbour.reach = std::min(std::uint64_t{1} << (64 - neighbour.link_bits),
                               4 * static_cast<std::uint64_t>(Time::longest_wait().ps()));
    for (std::uint32_t i = 0; i < neighbour.ends.size(); ++i) {
      OutputPort& port = outputs_[neighbour.ends[i].port];
      port.peer_port = OutputPort::remote | i;
      port.peer_node = n;
    }
  }
  outgoing_.resize(neighbours_.size());
}

void Fabric::set_sampling(Time interval) {
  sampling_ = interval.ps();
  for (OutputPort& port : outputs_) port.next_sample = sampling_;
}

void Fabric::add_tap(NodeId node, std::uint32_t port, std::shared_ptr<PortTap> tap) {
  const std::uint32_t local = local_of_[node.value()];
  if (local == no_slot) return;
  taps_.resize(outputs_.size());
  const std::uint32_t index = nodes_[local].first_port + port;
  taps_[index].push_back(std::move(tap));
  outputs_[index].tapped = true;
}

/// Until `node` can begin to send a packet that comes in at `rate`, from its first bit; 0 if it stores packets. A
/// switch cannot begin to send through a port that is faster than the one through which the packet is coming in: it
/// would run out of bytes. It stores what comes in slower than its fastest port.
Time Fabric::head_time(NodeId node, Bandwidth rate) const {
  const ClusterGraph& graph = topology_.graph;
  if (!parameters_.fabric.cut_through || graph.is_host(node)) return {};
  for (const PortEnd& next : graph.ports(node))
    if (link_times(directed(next.link, next.direction)).rate > rate) return {};
  return serialization_time(parameters_.header, rate);
}

std::uint32_t Fabric::path_profile(std::uint32_t source, std::uint32_t destination, std::uint32_t queue_pair) {
  const ClusterGraph& graph = topology_.graph;
  const RouteRequest request{source, destination, queue_pair};
  std::vector<PathLink> path;
  NodeId at(source);
  while (at.value() != destination) {
    std::uint16_t out = 0;
    routing_.route(at, {&request, 1}, &out);
    const PortEnd& end = graph.ports(at)[out];
    const LinkTimes link = link_times(directed(end.link, end.direction));
    const LinkFraming& framing = graph.link(end.link).framing;
    path.push_back({link.rate, link.delay + latency_of(end.peer), head_time(end.peer, link.rate), framing.payload,
                    framing.overhead + (parameters_.acks ? 0U : framing.answer)});
    at = end.peer;
    WEFT_EXPECT(path.size() <= graph.node_count(), "routing from {} to {} loops", source, destination);
  }
  const auto found = std::find(profiles_.begin(), profiles_.end(), path);
  if (found != profiles_.end()) return static_cast<std::uint32_t>(found - profiles_.begin());
  profiles_.push_back(std::move(path));
  return static_cast<std::uint32_t>(profiles_.size() - 1);
}

std::uint32_t Fabric::open_queue_pair(std::uint32_t host, std::uint32_t destination) {
  WEFT_EXPECT(host != destination, "host {} opens a queue pair to itself", host);
  if (buffered_) return open_connection(node_of_host(host), destination);
  auto& list = host_states_[node_of_host(host).host].queue_pairs;
  const auto number = static_cast<std::uint32_t>(list.size());
  list.emplace_back(destination, number, path_profile(host, destination, number));
  return number;
}

std::uint64_t Fabric::memory_bytes() const {
  std::uint64_t bytes = nodes_.capacity() * sizeof(Node) + host_states_.capacity() * sizeof(Host) +
                        outputs_.capacity() * (sizeof(OutputPort) + sizeof(PacketQueue) + 2 * sizeof(std::int64_t));
  bytes += blocks_.memory();
  for (const Host& host : host_states_) bytes += host.queue_pairs.capacity() * sizeof(QueuePair);
  if (waits_by_job_) bytes += waits_by_job_->memory_bytes();
  if (pause_causes_) bytes += pause_causes_->memory_bytes();
  if (!buffered_) return bytes;
  bytes += buffered_->ports.capacity() * sizeof(PortState) + buffered_->classes.capacity() * sizeof(ClassQueue);
  bytes += buffered_->blocks.memory() + buffered_->depths.capacity() * sizeof(DepthHistogram);
  for (const DepthHistogram& depths : buffered_->depths) bytes += depths.memory_bytes();
  for (const SharedBuffer& buffer : buffered_->buffers) bytes += buffer.memory_bytes();
  for (const EventHeap& events : buffered_->events) bytes += events.memory_bytes();
  for (const ReliableHost& host : buffered_->hosts) bytes += host.connections.capacity() * sizeof(Connection);
  return bytes;
}

}  // namespace weft
