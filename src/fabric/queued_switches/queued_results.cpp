// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <bit>

#include "fabric/queued/queued_model.hpp"
#include "support/basics/contract.hpp"

namespace weft {

std::vector<LinkClassCounters> QueuedResults::class_counters(Time end) const {
  std::vector<LinkClassCounters> result;
  const ClassPlan& plan = q_.state.plan;
  for (const PortId p : net_.nodes.ports()) {
    const PortState& port = q_.state.ports[p];
    for (LaneId lane; lane < plan.end(); ++lane) {
      const ClassQueue& queue = q_.state.queue_of(p, lane);
      LinkClassCounters counters{net_.outputs[p].directed_link,
                                 lane.value(),
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
      if (lane.in(port.blocked)) counters.paused += end - queue.paused_since;
      if (lane.in(port.stopped)) counters.stopped += end - queue.stopped_since;
      result.push_back(counters);
    }
  }
  return result;
}

std::vector<QueueDepth> QueuedResults::queue_depths(Time end) const {
  std::vector<QueueDepth> result;
  if (!keeps_depths()) return result;
  for (const PortId p : net_.nodes.ports())
    for (LaneId lane; lane < q_.state.plan.end(); ++lane)
      if (q_.state.queue_of(p, lane).peak > Bytes()) result.push_back(queue_depth(p, lane, end));
  return result;
}

QueueDepth QueuedResults::queue_depth(PortId port, LaneId lane, Time end) const {
  const ClassQueue& queue = q_.state.queue_of(port, lane);
  DepthHistogram depths = q_.state.depths[q_.state.queue_number(port, lane)];
  depths.hold(queue.bytes, end);
  const auto at = [&](double share) { return depths.percentile(share, end); };
  return {net_.outputs[port].directed_link,
          lane.value(),
          q_.state.plan.priority[lane],
          depths.occupied(),
          queue.peak,
          depths.mean(end),
          at(0.5),
          at(0.9),
          at(0.99),
          at(0.999)};
}

std::optional<Bytes> QueuedResults::p99_of_fullest_class(PortId port, Time end) const {
  if (!keeps_depths()) return std::nullopt;
  Bytes max;
  for (LaneId lane; lane < q_.state.plan.end(); ++lane) max = std::max(max, queue_depth(port, lane, end).p99);
  return max;
}

std::vector<LinkPause> QueuedResults::link_pauses(Time end) const {
  std::vector<LinkPause> rows;
  if (!q_.control.causes) return rows;
  for (const PortId port : net_.nodes.ports()) {
    for (LaneId lane; lane < q_.state.plan.end(); ++lane) {
      const std::size_t queue = q_.state.queue_number(port, lane);
      const std::uint32_t current = q_.control.causes->current(queue);
      const auto causes = q_.control.causes->of_queue(queue);
      for (std::uint32_t i = 0; i < causes.size(); ++i) {
        // Packets that arrive through a port use the other direction of its link.
        LinkPause row{net_.outputs[port].directed_link ^ 1U, lane.value(), net_.outputs[causes[i].port].directed_link,
                      causes[i]};
        if (i == current) {
          row.cause.time += end - q_.control.causes->since(queue);
          row.cause.last = end;
        }
        rows.push_back(row);
      }
    }
  }
  return rows;
}

std::vector<QueuePairCounters> QueuedResults::queue_pair_counters() const {
  std::vector<QueuePairCounters> result;
  for (std::uint32_t h = 0; h < net_.nodes.hosts.size(); ++h) {
    for (const Connection& connection : q_.state.hosts[h].connections) {
      const ReliableSender& sender = connection.sender;
      result.push_back({net_.nodes.hosts[h], sender.number(), sender.destination(), sender.acked(), sender.repeated(),
                        sender.timeouts(), connection.cnps, connection.allowance.rate, connection.allowance.window,
                        connection.messages, connection.posted});
    }
  }
  return result;
}

std::vector<ReceiverCounters> QueuedResults::receiver_counters() const {
  std::vector<ReceiverCounters> result;
  for (std::uint32_t h = 0; h < net_.nodes.hosts.size(); ++h) {
    q_.state.hosts[h].receivers.for_each([&](const ReceivingConnection& connection) {
      const ReliableReceiver& receiver = connection.receiver;
      result.push_back({net_.nodes.hosts[h], NodeId(static_cast<std::uint32_t>(connection.key >> 32)),
                        static_cast<std::uint32_t>(connection.key), receiver.expected(), receiver.out_of_order(),
                        receiver.widest_gap(), receiver.duplicates()});
    });
  }
  return result;
}

CongestionTotals QueuedResults::congestion() const {
  CongestionTotals totals;
  for (const ClassQueue& queue : q_.state.classes) {
    totals.dropped += queue.dropped;
    totals.trimmed += queue.trimmed;
    totals.marked += queue.marked;
    totals.pauses += queue.pauses_sent;
  }
  for (const PortState& port : q_.state.ports) totals.lost += port.lost;
  for (const RdmaHost& host : q_.state.hosts) {
    for (const Connection& connection : host.connections) {
      totals.repeated += connection.sender.repeated();
      totals.timeouts += connection.sender.timeouts();
      totals.cnps += connection.cnps;
    }
    host.receivers.for_each([&](const ReceivingConnection& connection) {
      totals.out_of_order += connection.receiver.out_of_order();
      totals.duplicates += connection.receiver.duplicates();
    });
  }
  return totals;
}

bool QueuedResults::packets_wait() const {
  return std::any_of(q_.state.ports.begin(), q_.state.ports.end(),
                     [](const PortState& port) { return port.occupied != 0; });
}

void QueuedResults::check_nodes() const {
  const QueuedState& state = q_.state;
  for (const LocalNode& node : net_.nodes.all) {
    std::uint64_t in = 0;
    std::uint64_t out = 0;
    for (const PortId p : node.all_ports()) {
      in += net_.inputs[p].taken();
      out += net_.outputs[p].packets;
      for (LaneId lane; lane < state.plan.end(); ++lane) {
        const ClassQueue& queue = state.queue_of(p, lane);
        out += queue.dropped;
        WEFT_EXPECT(queue.bytes == Bytes() && queue.queue.empty(), "node {} port {} lane {}: {} bytes wait",
                    node.id.value(), p - node.first_port, lane.value(), queue.bytes.count());
      }
    }
    if (node.host != no_slot) continue;
    WEFT_EXPECT(in == out, "node {}: {} packets in, {} out or dropped", node.id.value(), in, out);
    check_buffer(node);
  }
  WEFT_EXPECT(state.telemetry.live() == 0, "{} telemetry records are held", state.telemetry.live());
}

void QueuedResults::check_buffer(const LocalNode& node) const {
  const std::uint32_t number = q_.state.buffer_of[net_.nodes.local_of[node.id]];
  if (number == no_slot) return;
  const SharedBuffer& buffer = q_.state.buffers[number];
  for (std::uint32_t queue = 0; queue < node.ports * q_.state.plan.count; ++queue)
    WEFT_EXPECT(buffer.held(queue) == Bytes(), "node {}: {} bytes of ingress queue {} are held", node.id.value(),
                buffer.held(queue).count(), queue);
  WEFT_EXPECT(buffer.shared_used() == Bytes(), "node {}: {} shared bytes are held", node.id.value(),
              buffer.shared_used().count());
}

bool QueuedResults::keeps_depths() const { return !q_.state.depths.empty(); }

std::vector<WaitEdge> QueuedResults::wait_edges(Time stopped_by) const {
  std::vector<WaitEdge> edges;
  for (const PortId p : net_.nodes.ports()) {
    const PortState& port = q_.state.ports[p];
    for (std::uint32_t waiting = port.occupied & port.blocked; waiting != 0; waiting &= waiting - 1) {
      const LaneId lane = LaneId::first_of(waiting);
      const ClassQueue& queue = q_.state.queue_of(p, lane);
      if (queue.paused_since > stopped_by) continue;
      queue.queue.for_each([&](const QueuedPacket& packet) {
        if (packet.in_port == PortId::none()) return;
        // The packets that arrive through a port use the other direction of its link.
        const WaitEdge edge{{net_.outputs[packet.in_port].directed_link ^ 1U, packet.in_lane().value()},
                            {net_.outputs[p].directed_link, lane.value()}};
        if (edges.empty() || edges.back() != edge) edges.push_back(edge);
      });
    }
  }
  return edges;
}

void QueuedResults::add_counters(PortId port, LinkCounters& counters) const {
  counters.bytes = q_.state.wire_bytes(port, net_.sizes.wire_overhead);
  counters.lost = q_.state.ports[port].lost;
  counters.slowed = q_.outages.slowed(port);
  for (LaneId lane; lane < q_.state.plan.end(); ++lane) counters.dropped += q_.state.queue_of(port, lane).dropped;
}

std::uint64_t QueuedResults::memory_bytes() const {
  const QueuedState& state = q_.state;
  std::uint64_t bytes = state.ports.capacity() * sizeof(PortState) + state.classes.capacity() * sizeof(ClassQueue);
  bytes += state.blocks.memory() + state.telemetry.memory_bytes() + state.depths.capacity() * sizeof(DepthHistogram);
  for (const DepthHistogram& depths : state.depths) bytes += depths.memory_bytes();
  for (const SharedBuffer& buffer : state.buffers) bytes += buffer.memory_bytes();
  for (const EventHeap& events : state.events) bytes += events.memory_bytes();
  for (const RdmaHost& host : state.hosts) bytes += sizeof(host) + host.connections.capacity() * sizeof(Connection);
  return bytes + (q_.control.causes ? q_.control.causes->memory_bytes() : 0);
}

}  // namespace weft
