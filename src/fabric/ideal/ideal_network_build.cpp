// SPDX-License-Identifier: GPL-2.0-only
// The ideal network: its hosts and ports, what crosses between processes, and its counters.
#include <algorithm>

#include "fabric/ideal/ideal_network.hpp"
#include "support/basics/contract.hpp"

namespace weft {
IdealNetwork::IdealNetwork(const Topology& topology, const Partition& partition, int process,
                           const NetworkParameters& parameters, const RoutingAlgorithm& routing)
    : topology_(topology),
      parameters_(parameters),
      process_(process),
      ways_(topology, parameters, routing),
      owner_of_host_(owners_of_hosts(topology, partition.owner)) {
  const ClusterGraph& graph = topology.graph;
  local_of_host_.assign(graph.host_count(), no_slot);
  std::vector<bool> has_hosts(partition.parts);
  for (const NodeId host : graph.hosts()) {
    has_hosts[owner_of_host_[host]] = true;
    if (owner_of_host_[host] != process) continue;
    local_of_host_[host] = static_cast<std::uint32_t>(owned_hosts_.size());
    owned_hosts_.push_back(host);
  }
  host_states_.resize(owned_hosts_.size());
  source_port_of_.assign(std::size_t{2} * graph.link_count(), no_slot);
  destination_port_of_.assign(std::size_t{2} * graph.link_count(), no_slot);
  // A single process pauses from time to time, to check for interrupts and show progress.
  lookahead_ = Time::from_us(100);
  neighbour_of_.assign(partition.parts, no_slot);
  if (!owned_hosts_.empty()) {
    for (std::uint32_t other = 0; other < partition.parts; ++other) {
      if (!has_hosts[other] || other == static_cast<std::uint32_t>(process)) continue;
      neighbour_of_[other] = static_cast<std::uint32_t>(neighbours_.size());
      neighbours_.push_back(static_cast<int>(other));
    }
  }
  outgoing_.resize(neighbours_.size());
  first_outgoing_.assign(neighbours_.size(), Time::max());
  if (partition.parts > 1) lookahead_ = std::min(lookahead_, ideal_lookahead(topology, ways_, owner_of_host_));
  counters_ = counters_of_links(graph, partition, process);
}

std::uint32_t IdealNetwork::intern(IdealPath path) {
  const auto known = [&path](const Class& other) { return other.path == path; };
  const auto found = std::find_if(classes_.begin(), classes_.end(), known);
  if (found != classes_.end()) return static_cast<std::uint32_t>(found - classes_.begin());
  classes_.push_back({std::move(path), Bytes(-1), Time()});
  return static_cast<std::uint32_t>(classes_.size() - 1);
}

std::uint32_t IdealNetwork::source_port(std::uint32_t directed_link) {
  std::uint32_t& port = source_port_of_[directed_link];
  if (port == no_slot) {
    port = static_cast<std::uint32_t>(source_ports_.size());
    source_ports_.push_back({directed_link, 0, {}});
  }
  return port;
}

IdealNetwork::DestinationPort& IdealNetwork::destination_port(std::uint32_t directed_link) {
  std::uint32_t& port = destination_port_of_[directed_link];
  if (port == no_slot) {
    port = static_cast<std::uint32_t>(destination_ports_.size());
    destination_ports_.emplace_back();
  }
  return destination_ports_[port];
}

std::uint32_t IdealNetwork::open_queue_pair(NodeId host, NodeId destination) {
  WEFT_EXPECT(host != destination, "host {} opens a queue pair to itself", host.value());
  Host& state = host_state(host);
  const auto number = static_cast<std::uint32_t>(state.flows.size());
  IdealPaths::Found found = ways_.find({host, destination, number});
  Flow flow;
  flow.host = host;
  flow.destination = destination;
  flow.links = static_cast<std::uint32_t>(links_.size());
  flow.port = source_port(found.directed_links[found.path.out]);
  flow.turn = source_ports_[flow.port].turns.add_flow();
  links_.insert(links_.end(), found.directed_links.begin(), found.directed_links.end());
  free_.resize(links_.size());
  busy_.resize(links_.size());
  flow.path = intern(std::move(found.path));
  if (parameters_.acks) flow.control_time = ways_.control_time({destination, host, number});
  state.flows.push_back(static_cast<std::uint32_t>(flows_.size()));
  flows_.push_back(flow);
  return number;
}

void IdealNetwork::send_across(std::uint16_t process, const Crossing& crossing, const Flight* flight) {
  const std::uint32_t neighbour = neighbour_of_[process];
  outgoing_[neighbour].append(crossing);
  if (flight != nullptr) outgoing_[neighbour].append(*flight);
  // Credits and ACKs are sent with the time of their cause; their path takes the lookahead at least.
  const Time there = flight != nullptr ? crossing.time : crossing.time + lookahead_;
  Time& first = first_outgoing_[neighbour];
  first = outgoing_[neighbour].size() == sizeof(Crossing) + (flight != nullptr ? sizeof(Flight) : 0)
              ? there
              : std::min(first, there);
}

void IdealNetwork::incoming(std::size_t /*neighbour*/, std::span<const std::byte> batch) {
  for (std::size_t at = 0; at < batch.size();) {
    const auto crossing = take_record<Crossing>(batch, at);
    if (crossing.kind == Kind::arrive) {
      WEFT_EXPECT(crossing.time >= reached_, "a message for host {} comes at {} ps, after {} ps have been reached",
                  crossing.host.value(), crossing.time.ps(), reached_.ps());
      const std::uint32_t slot = new_flight();
      flights_[slot] = take_record<Flight>(batch, at);
      flights_[slot].message.next = no_slot;
      push(crossing.time, Kind::arrive, crossing.host.value(), crossing.number, slot);
    } else if (crossing.kind == Kind::credit) {
      give_credit(crossing.host, crossing.queue_pair, crossing.time, crossing.token);
    } else {
      push(crossing.time + flow_of(crossing.host, crossing.queue_pair).control_time, Kind::sent, crossing.host.value(),
           crossing.number, crossing.token);
    }
  }
}

Time IdealNetwork::next_time() const {
  Time next = due_.next_time();
  for (std::size_t n = 0; n < neighbours_.size(); ++n)
    if (!outgoing_[n].empty()) next = std::min(next, first_outgoing_[n]);
  return next;
}

bool IdealNetwork::idle() const {
  const auto empty = [](const Batch& batch) { return batch.empty(); };
  return due_.empty() && std::all_of(outgoing_.begin(), outgoing_.end(), empty);
}

void IdealNetwork::finish(ProcessGroup& group, bool all_idle) {
  const std::uint64_t posted = group.sum(posted_);
  const std::uint64_t delivered = group.sum(delivered_);
  WEFT_EXPECT(!all_idle || posted == delivered, "{} messages were sent, {} delivered", posted, delivered);
  constexpr std::size_t fields = 3;  // payload, packets, busy
  std::vector<std::uint64_t> sums(fields * source_port_of_.size());
  for (const Flow& flow : flows_) {
    for (std::size_t i = 0; i < classes_[flow.path].path.links.size(); ++i) {
      std::uint64_t* const at = &sums[fields * links_[flow.links + i]];
      at[0] += static_cast<std::uint64_t>(flow.payload.count());
      at[1] += flow.packets;
      at[2] += static_cast<std::uint64_t>(busy_[flow.links + i].ps());
    }
  }
  group.add_up(sums);
  for (LinkCounters& counters : counters_) {
    const std::uint64_t* const at = &sums[fields * counters.directed_link];
    counters.payload_bytes = Bytes(static_cast<std::int64_t>(at[0]));
    counters.packets = counters.data_packets = at[1];
    counters.bytes = counters.payload_bytes + static_cast<std::int64_t>(at[1]) * parameters_.data_overhead();
    counters.busy = Time::from_ps(static_cast<std::int64_t>(at[2]));
  }
}

std::uint64_t IdealNetwork::memory_bytes() const {
  std::uint64_t bytes = host_states_.capacity() * sizeof(Host) + flows_.capacity() * sizeof(Flow) +
                        links_.capacity() * (sizeof(std::uint32_t) + 2 * sizeof(Time)) +
                        flights_.capacity() * sizeof(Flight) + due_.memory_bytes() +
                        source_ports_.capacity() * sizeof(SourcePort) +
                        destination_ports_.capacity() * sizeof(DestinationPort) +
                        (source_port_of_.capacity() + destination_port_of_.capacity() + local_of_host_.capacity()) *
                            sizeof(std::uint32_t) +
                        counters_.capacity() * sizeof(LinkCounters);
  for (const Host& host : host_states_) bytes += host.flows.capacity() * sizeof(std::uint32_t);
  for (const SourcePort& port : source_ports_) bytes += port.turns.memory_bytes();
  return bytes;
}

}  // namespace weft
