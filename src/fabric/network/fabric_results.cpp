// SPDX-License-Identifier: GPL-2.0-only
// What is read from the fabric when a run has ended.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "fabric/network/buffered_state.hpp"
#include "fabric/network/fabric.hpp"
#include "fabric/probes/deadlock.hpp"
#include "support/contract.hpp"

namespace weft {

std::uint64_t Fabric::packet_hops() const {
  std::uint64_t total = 0;
  for (const OutputPort& port : outputs_) total += port.packets;
  return total;
}

std::vector<LinkCounters> Fabric::link_counters() const {
  std::vector<LinkCounters> result;
  result.reserve(outputs_.size());
  for (const Node& node : nodes_) {
    const auto ends = topology_.graph.ports(NodeId(node.id));
    for (std::uint32_t p = 0; p < node.ports; ++p) {
      const OutputPort& port = outputs_[node.first_port + p];
      LinkCounters counters;
      counters.directed_link = port.directed_link;
      counters.from = NodeId(node.id);
      counters.to = ends[p].peer;
      counters.from_port = p;
      counters.bytes = port.payload_bytes + static_cast<std::int64_t>(port.data_packets) * data_overhead_ +
                       static_cast<std::int64_t>(port.packets - port.data_packets) * control_wire_;
      counters.payload_bytes = port.payload_bytes;
      counters.packets = port.packets;
      counters.data_packets = port.data_packets;
      counters.busy_ps = port.busy;
      counters.free_at_ps = port.free_at;
      // Unsent work in ps times the rate: exact, in whole bytes.
      if (buffered_) counters.bytes = buffered_->wire_bytes(node.first_port + p, wire_overhead_);
      if (buffered_) {
        counters.lost = buffered_->ports[node.first_port + p].lost;
        for (std::uint32_t lane = 0; lane < buffered_->plan.count; ++lane)
          counters.dropped += buffered_->queue_of(node.first_port + p, lane).dropped;
      }
      counters.peak_queue_bytes =
          static_cast<std::int64_t>(static_cast<__int128>(port.peak_backlog) * port.rate_bps / 8'000'000'000'000);
      counters.queue_byte_ps = static_cast<double>(port.waited);
      counters.times = link_times(port.directed_link);
      if (!others_.empty()) {
        counters.other_packets = others_[node.first_port + p].packets;
        counters.other_bytes = others_[node.first_port + p].bytes;
      }
      result.push_back(counters);
    }
  }
  return result;
}

std::vector<HotLink> Fabric::hot_links(ProcessGroup& group, std::size_t most, Time end) const {
  std::vector<HotLink> links;
  // Links differ, so the order is complete.
  const auto before = [](const HotLink& a, const HotLink& b) {
    return a.queue_byte_ps != b.queue_byte_ps ? a.queue_byte_ps > b.queue_byte_ps : a.directed_link < b.directed_link;
  };
  const auto keep_hottest = [&] {
    const std::size_t count = std::min(most, links.size());
    std::partial_sort(links.begin(), links.begin() + static_cast<std::ptrdiff_t>(count), links.end(), before);
    links.resize(count);
  };
  for (std::uint32_t p = 0; p < outputs_.size(); ++p) {
    const OutputPort& port = outputs_[p];
    if (port.waited == 0) continue;
    const auto peak =
        static_cast<std::int64_t>(static_cast<__int128>(port.peak_backlog) * port.rate_bps / 8'000'000'000'000);
    const std::int64_t busy = port.busy - std::max<std::int64_t>(0, port.free_at - end.ps());
    links.push_back({port.directed_link, p, busy, peak, static_cast<double>(port.waited), -1});
    if (links.size() >= 4 * most + 64) keep_hottest();
  }
  keep_hottest();
  for (HotLink& link : links) {
    const std::uint32_t port = std::exchange(link.port, 0);
    if (!buffered_ || buffered_->depths.empty()) continue;
    for (std::uint32_t lane = 0; lane < buffered_->plan.count; ++lane)
      link.p99_queue = std::max(link.p99_queue, queue_depth(port, lane, end).p99);
  }
  std::vector<std::byte> batch(links.size() * sizeof(HotLink));
  if (!links.empty()) std::memcpy(batch.data(), links.data(), batch.size());
  for (const auto& other : group.gather(batch)) {
    const std::size_t count = other.size() / sizeof(HotLink);
    links.resize(links.size() + count);
    if (count > 0) std::memcpy(&links[links.size() - count], other.data(), other.size());
  }
  keep_hottest();
  return links;
}

void Fabric::count_waits_by_job(JobsOfHosts jobs) {
  waits_by_job_ = std::make_unique<WaitsByJob>(std::move(jobs), outputs_.size());
  several_jobs_ = waits_by_job_->several();
}

std::vector<LinkJobWait> Fabric::link_waits() const {
  std::vector<LinkJobWait> rows;
  if (!waits_by_job_) return rows;
  for (std::uint32_t p = 0; p < outputs_.size(); ++p)
    for (const JobWait& wait : waits_by_job_->of_port(p)) rows.push_back({outputs_[p].directed_link, wait});
  return rows;
}

CongestionTotals Fabric::congestion() const {
  CongestionTotals totals;
  if (!buffered_) return totals;
  for (const ClassQueue& queue : buffered_->classes) {
    totals.dropped += queue.dropped;
    totals.trimmed += queue.trimmed;
    totals.marked += queue.marked;
    totals.pauses += queue.pauses_sent;
  }
  for (const PortState& port : buffered_->ports) totals.lost += port.lost;
  for (const ReliableHost& host : buffered_->hosts) {
    for (const Connection& connection : host.connections) {
      totals.repeated += connection.sender.repeated();
      totals.timeouts += connection.sender.timeouts();
      totals.cnps += connection.cnps;
    }
    host.receivers.for_each(
        [&](const ReceivingConnection& connection) { totals.out_of_order += connection.receiver.out_of_order(); });
  }
  return totals;
}

bool Fabric::packets_wait() const {
  return buffered_ && std::any_of(buffered_->ports.begin(), buffered_->ports.end(),
                                  [](const PortState& port) { return port.occupied != 0; });
}

std::string Fabric::find_deadlock(ProcessGroup& group, Time stopped_by) const {
  std::vector<WaitEdge> edges;
  if (buffered_) {
    for (std::uint32_t p = 0; p < outputs_.size(); ++p) {
      const PortState& port = buffered_->ports[p];
      for (std::uint32_t waiting = port.occupied & port.blocked; waiting != 0; waiting &= waiting - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(waiting));
        if (buffered_->queue_of(p, lane).paused_since > stopped_by.ps()) continue;
        buffered_->queue_of(p, lane).queue.for_each([&](const QueuedPacket& packet) {
          if (packet.in_port == no_in_port) return;
          // The packets that come in through a port travel the other direction of its link.
          const WaitEdge edge{{outputs_[packet.in_port].directed_link ^ 1U, packet.frame >> 24},
                              {outputs_[p].directed_link, lane}};
          if (edges.empty() || edges.back() != edge) edges.push_back(edge);
        });
      }
    }
  }
  std::vector<std::byte> batch(edges.size() * sizeof(WaitEdge));
  if (!edges.empty()) std::memcpy(batch.data(), edges.data(), batch.size());
  for (const auto& other : group.gather(batch)) {
    const std::size_t count = other.size() / sizeof(WaitEdge);
    edges.resize(edges.size() + count);
    if (count > 0) std::memcpy(&edges[edges.size() - count], other.data(), other.size());
  }
  return describe_cycle(find_waiting_cycle(std::move(edges)), topology_.graph);
}

std::vector<LinkClassCounters> Fabric::class_counters(Time end) const {
  std::vector<LinkClassCounters> result;
  if (!buffered_) return result;
  const ClassPlan& plan = buffered_->plan;
  for (std::uint32_t p = 0; p < outputs_.size(); ++p) {
    const PortState& port = buffered_->ports[p];
    for (std::uint32_t lane = 0; lane < plan.count; ++lane) {
      const ClassQueue& queue = buffered_->queue_of(p, lane);
      LinkClassCounters counters{outputs_[p].directed_link,
                                 lane,
                                 plan.priority[lane],
                                 queue.packets,
                                 queue.frame_bytes,
                                 queue.peak,
                                 queue.marked,
                                 queue.dropped,
                                 queue.trimmed,
                                 queue.paused,
                                 queue.pauses_received,
                                 queue.stopped,
                                 queue.pauses_sent};
      if ((port.blocked >> lane & 1U) != 0) counters.paused += end.ps() - queue.paused_since;
      if ((port.stopped >> lane & 1U) != 0) counters.stopped += end.ps() - queue.stopped_since;
      result.push_back(counters);
    }
  }
  return result;
}

std::vector<QueuePairCounters> Fabric::queue_pair_counters() const {
  std::vector<QueuePairCounters> result;
  if (!buffered_) return result;
  for (std::uint32_t h = 0; h < owned_hosts_.size(); ++h) {
    for (const Connection& connection : buffered_->hosts[h].connections) {
      const ReliableSender& sender = connection.sender;
      const std::int64_t window = connection.allowance.window == Allowance::never ? -1 : connection.allowance.window;
      result.push_back({owned_hosts_[h], sender.number(), sender.destination(), sender.acked(), sender.repeated(),
                        sender.timeouts(), connection.cnps, connection.allowance.rate_bps, window, connection.messages,
                        connection.message_bytes});
    }
  }
  return result;
}

std::vector<ReceiverCounters> Fabric::receiver_counters() const {
  std::vector<ReceiverCounters> result;
  if (!buffered_) return result;
  for (std::uint32_t h = 0; h < owned_hosts_.size(); ++h) {
    buffered_->hosts[h].receivers.for_each([&](const ReceivingConnection& connection) {
      const ReliableReceiver& receiver = connection.receiver;
      result.push_back({owned_hosts_[h], static_cast<std::uint32_t>(connection.key >> 32),
                        static_cast<std::uint32_t>(connection.key), receiver.expected(), receiver.out_of_order(),
                        receiver.widest_gap(), receiver.duplicates()});
    });
  }
  return result;
}

std::vector<PortSample> Fabric::take_samples(Time end) {
  if (sampling_ == 0) return {};
  for (std::uint32_t p = 0; p < outputs_.size(); ++p) {
    OutputPort& port = outputs_[p];
    const std::int64_t queued = buffered_ ? queued_bytes(p) : 0;
    flush_samples(port, end.ps(), queued);
    // The last interval ends with the run, and what is sent afterwards is no part of it.
    if (port.next_sample - sampling_ < end.ps()) add_sample(port, end.ps(), queued);
  }
  return std::exchange(samples_, {});
}

std::vector<PortSample> Fabric::take_closed_samples(Time now) {
  for (std::uint32_t p = 0; p < outputs_.size(); ++p)
    if (now.ps() >= outputs_[p].next_sample) flush_samples(outputs_[p], now.ps(), buffered_ ? queued_bytes(p) : 0);
  return take_of_intervals_before(samples_, now.ps() / sampling_);
}

bool Fabric::idle() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [this](const Node& node) { return node_next_time(node) == never; });
}

void Fabric::check_conservation(ProcessGroup& group) {
  for (const Node& node : nodes_) {
    for (std::uint32_t p = node.first_port; p < node.first_port + node.ports; ++p) {
      WEFT_EXPECT(inputs_[p].empty(), "node {} port {}: {} packets have not been received", node.id,
                  p - node.first_port, inputs_[p].size());
      const OutputPort& port = outputs_[p];
      if ((port.peer_port & OutputPort::remote) != 0) continue;
      WEFT_EXPECT(packets_delivered(p) == inputs_[port.peer_port].taken(), "link {}: {} packets delivered, {} received",
                  port.directed_link, packets_delivered(p), inputs_[port.peer_port].taken());
    }
  }
  // Cut links: tell every neighbour how many packets came in over each of them.
  std::vector<std::vector<std::byte>> told(neighbours_.size());
  std::vector<std::vector<std::byte>> heard(neighbours_.size());
  for (std::size_t n = 0; n < neighbours_.size(); ++n) {
    for (const CutEnd& end : neighbours_[n].ends) {
      const std::uint64_t taken = inputs_[end.port].taken();
      const auto* bytes = reinterpret_cast<const std::byte*>(&taken);
      told[n].insert(told[n].end(), bytes, bytes + sizeof(taken));
    }
  }
  group.exchange(neighbour_processes_, told, heard);
  for (std::size_t n = 0; n < neighbours_.size(); ++n) {
    for (std::size_t i = 0; i < neighbours_[n].ends.size(); ++i) {
      std::uint64_t received = 0;
      std::memcpy(&received, heard[n].data() + i * sizeof(received), sizeof(received));
      const std::uint32_t index = neighbours_[n].ends[i].port;
      const OutputPort& port = outputs_[index];
      const std::uint64_t delivered = packets_delivered(index);
      WEFT_EXPECT(delivered == received, "link {}: {} packets delivered, {} received", port.directed_link, delivered,
                  received);
    }
  }
  WEFT_EXPECT(messages_.live() == 0, "{} messages have not been delivered", messages_.live());
  if (buffered_) check_nodes();
  check_frames(group);
}

// Packets that went into a link less those that it has lost.
std::uint64_t Fabric::packets_delivered(std::uint32_t port) const {
  return outputs_[port].packets - (buffered_ ? buffered_->ports[port].lost : 0);
}

// What came into a switch left it or was dropped, its memory is free, and no class of a port holds anything.
void Fabric::check_nodes() const {
  const BufferedState& state = *buffered_;
  for (const Node& node : nodes_) {
    std::uint64_t in = 0;
    std::uint64_t out = 0;
    for (std::uint32_t p = node.first_port; p < node.first_port + node.ports; ++p) {
      in += inputs_[p].taken();
      out += outputs_[p].packets;
      for (std::uint32_t lane = 0; lane < state.plan.count; ++lane) {
        const ClassQueue& queue = state.queue_of(p, lane);
        out += queue.dropped;
        WEFT_EXPECT(queue.bytes == 0 && queue.queue.empty(), "node {} port {} lane {}: {} bytes wait", node.id,
                    p - node.first_port, lane, queue.bytes);
      }
    }
    if (node.host != no_slot) continue;
    WEFT_EXPECT(in == out, "node {}: {} packets in, {} out or dropped", node.id, in, out);
    const std::uint32_t buffer = state.buffer_of[local_of_[node.id]];
    if (buffer == no_slot) continue;
    for (std::uint32_t queue = 0; queue < node.ports * state.plan.count; ++queue)
      WEFT_EXPECT(state.buffers[buffer].held(queue) == 0, "node {}: {} bytes of ingress queue {} are held", node.id,
                  state.buffers[buffer].held(queue), queue);
    WEFT_EXPECT(state.buffers[buffer].shared_used() == 0, "node {}: {} shared bytes are held", node.id,
                state.buffers[buffer].shared_used());
  }
  WEFT_EXPECT(state.telemetry.live() == 0, "{} telemetry records are held", state.telemetry.live());
}

}  // namespace weft
