// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <bit>

#include "fabric/frames/ethernet.hpp"
#include "fabric/frames/frame_table.hpp"
#include "fabric/queued/queued_hot.hpp"
#include "support/basics/contract.hpp"

namespace weft {
namespace {

// As the transmit queue of a Linux interface: 1,000 packets (txqueuelen of ip-link(8)), each of 64 KiB with
// segmentation offload.
constexpr Bytes transmit_queue(1000 * 65'536);

}  // namespace

FrameTable& FrameTraffic::carry() {
  if (table) return *table;
  table = std::make_unique<FrameTable>();
  net_.parameters.frames = true;
  return *table;
}

/// The class with that IEEE 802.1Q number, if frames may use it: those of data and of other traffic.
LaneId FrameTraffic::lane_of_priority(std::uint8_t priority) const {
  const ClassPlan& plan = q_.state.plan;
  return priority == plan.priority[plan.data] ? plan.data : plan.other;
}

bool FrameTraffic::send(const FrameHeader& header, Time now, const ns3::Ptr<ns3::Packet>& frame) {
  const LocalNode& node = net_.nodes.of_host(header.source);
  QueuedState& state = q_.state;
  if (header.bytes > std::max(state.largest_frame, min_frame)) return false;
  Packet packet;
  packet.set_ends(header.source, header.destination);
  packet.queue_pair = header.flow;
  packet.kind = PacketKind::frame;
  packet.payload = static_cast<std::uint16_t>(header.bytes.count());
  packet.lane = lane_of_priority(header.priority).value() & 0xfU;
  packet.flags = header.ecn_capable ? packet_ask : 0;
  packet.time = now;
  std::uint16_t out = 0;
  if (node.ports > 1) {
    const RouteRequest request = q_.router.request_of(packet);
    q_.outages.routing_at(now).route(node.id, {&request, 1}, &out);
    if (out == RoutingAlgorithm::no_route) out = 0;  // lost there, as links are down
  }
  const PortId index = node.first_port + out;
  OutputPort& port = net_.outputs[index];
  if (net_.sampler.due(port, now)) net_.sampler.flush(port, now, q_.state.sampled_bytes(port, index));
  ClassQueue& queue = state.queue_of(index, lane_of(packet));
  packet.psn = static_cast<std::uint32_t>(queue.packets);
  const Bytes limit = std::min(state.queue_limit, transmit_queue);
  if (queue.bytes + header.bytes > limit) {
    ++queue.dropped;
    ++state.dropped;
    return false;
  }
  packet.message = table->add(frame);
  table->count_sent(header.bytes);
  queue.queue.push({packet, PortId::none(), QueuedPacket::framed(header.bytes, lane_of(packet))}, state.blocks);
  state.note_depth(index, lane_of(packet), now);
  queue.bytes += header.bytes;
  queue.peak = std::max(queue.peak, queue.bytes);
  PortState& ps = state.ports[index];
  ps.occupied |= lane_of(packet).bit();
  ps.queue_time += net_.sizes.wire_time(port, packet).busy;
  q_.ports.note_peak(index, now);
  q_.nics.wake(index, now);
  return true;
}

/// A frame is on its last link: from here on ns-3 holds it, and the lean packet that arrives is empty.
void FrameTraffic::hand_up(PortId in_port, Packet& packet, Time arrival) {
  const LocalNode& node = net_.nodes.all[net_.nodes.of_port[in_port]];
  if (node.host == no_slot) return;
  table->arrive(node.id, in_port - node.first_port, arrival, packet);
  packet.message = no_slot;
}

// A host with frames in its queues: ACKs first, then by class as at a switch. RDMA data wait in connections and not in
// a queue; where frames are of the same class, connections and frames take turns. Classes that share the link have
// their deficit reduced by what they have sent, and continue while there is some left (surplus round robin, Adiseshu,
// Parulkar and Varghese, "A reliable and scalable striping protocol", SIGCOMM 1996, doi:10.1145/248156.248169), since
// the size of the next RDMA packet is not known before it is made.
bool FrameTraffic::send_beside(const LocalNode& node, PortId port_index, Time now) {
  if (!choose_beside(node, port_index, now)) return false;
  // A connection's packet was in no queue until now: frames that still wait are behind it.
  q_.ports.note_peak(port_index, now);
  return true;
}

bool FrameTraffic::choose_beside(const LocalNode& node, PortId port_index, Time now) {
  QueuedState& state = q_.state;
  const PortState& ps = state.ports[port_index];
  const NicPort& nic = state.hosts[node.host].ports[port_index - node.first_port];
  if (q_.nics.send_urgent(node, port_index, now)) return true;
  const std::uint32_t data = state.plan.data.bit();
  std::uint32_t ready = (ps.occupied & ~ps.blocked) | (nic.has_ready() ? data : 0);
  while (ready != 0) {
    const LaneId lane = q_.ports.choose_lane(port_index, ready);
    ClassQueue& queue = state.queue_of(port_index, lane);
    const Bytes before = queue.frame_bytes;
    if (lane == state.plan.data ? send_of_data_class(node, port_index, now)
                                : q_.ports.send_waiting(port_index, lane, now)) {
      if (!q_.ports.competes(ready, lane)) return true;
      q_.ports.tell_emptied(port_index);
      state.schedulers[port_index]->sends(lane, queue.frame_bytes - before);
      return true;
    }
    ready &= ~(lane.bit());
  }
  return false;
}

bool FrameTraffic::send_of_data_class(const LocalNode& node, PortId port_index, Time now) {
  QueuedState& state = q_.state;
  NicPort& nic = state.hosts[node.host].ports[port_index - node.first_port];
  const PortState& ps = state.ports[port_index];
  const LaneId lane = state.plan.data;
  const bool waits = lane.in(ps.occupied & ~ps.blocked);
  nic.frames_turn = !nic.frames_turn;
  if (waits && nic.frames_turn && q_.ports.send_waiting(port_index, lane, now)) return true;
  if (q_.nics.send_data(node, port_index, now)) return true;
  return waits && !nic.frames_turn && q_.ports.send_waiting(port_index, lane, now);
}

}  // namespace weft
