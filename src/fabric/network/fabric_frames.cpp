// SPDX-License-Identifier: GPL-2.0-only
// Ethernet frames of other software on the hosts: they queue at the host's port beside its RDMA traffic, and from there
// on are packets like any others.
#include <algorithm>
#include <bit>

#include "fabric/frames/ethernet.hpp"
#include "fabric/frames/frame_table.hpp"
#include "fabric/network/buffered_state.hpp"
#include "fabric/network/fabric.hpp"
#include "fabric/network/fabric_hot.hpp"
#include "support/contract.hpp"
#include "support/error.hpp"

namespace weft {
namespace {

// As the transmit queue of a Linux interface: 1,000 packets (txqueuelen of ip-link(8)), each of 64 KiB with
// segmentation offload.
constexpr std::int64_t transmit_queue = 1000 * 65'536;

}  // namespace

FrameTable& Fabric::carry_frames() {
  if (frames_) return *frames_;
  WEFT_EXPECT(events_ == 0, "frames are asked for after {} events", events_);
  if (!parameters_.acks)
    throw InputError(
        SourceLine{"network", 0},
        "ack: none is found beside packets of ns-3's stack, which go through ports with queues; these rest "
        "on ACKs");
  if (!buffered_) build_buffered();
  frames_ = std::make_unique<FrameTable>();
  parameters_.frames = true;
  // The least frame may be shorter than anything that the network had before. And what arrives at a host is an ns-3
  // event there, which has to lie beyond the engine's window.
  std::int64_t least = window_length_;
  for (std::uint32_t link = 0; link < 2 * topology_.graph.link_count(); ++link) {
    const LinkTimes times = link_times(link);
    least = std::min(
        least, (times.delay +
                serialization_time(parameters_.least_wire(topology_.graph.link(LinkId(link / 2)).framing), times.rate))
                   .ps());
  }
  set_window(std::max<std::int64_t>(least, 1));
  lookahead_ = std::min(lookahead_, window_length_);
  return *frames_;
}

/// The class with that IEEE 802.1Q number, if frames may use it: those of data and of other traffic.
std::uint8_t Fabric::lane_of_priority(std::uint8_t priority) const {
  const ClassPlan& plan = buffered_->plan;
  return priority == plan.priority[plan.data] ? plan.data : plan.other;
}

bool Fabric::send_frame(const FrameHeader& header, Time at, const ns3::Ptr<ns3::Packet>& frame) {
  WEFT_EXPECT(frames_ && !advancing(), "host {}: a frame at {} ps comes from within the data path", header.source,
              at.ps());
  const std::int64_t now = at.ps();
  const Node& node = node_of_host(header.source);
  BufferedState& state = *buffered_;
  if (header.bytes > std::max(state.largest_frame, least_frame)) return false;
  Packet packet;
  packet.set_ends(header.source, header.destination);
  packet.queue_pair = header.flow;
  packet.kind = PacketKind::frame;
  packet.payload = static_cast<std::uint16_t>(header.bytes);
  packet.lane = lane_of_priority(header.priority) & 0xfU;
  packet.flags = header.ecn_capable ? packet_ask : 0;
  packet.time = now;
  std::uint16_t out = 0;
  if (node.ports > 1) {
    const RouteRequest request = route_request(packet);
    routing_at(now).route(NodeId(node.id), {&request, 1}, &out);
    if (out == RoutingAlgorithm::no_route) out = 0;  // lost there, as links are down
  }
  const std::uint32_t index = node.first_port + out;
  OutputPort& port = outputs_[index];
  if (sampling_ != 0 && now >= port.next_sample) flush_samples(port, now, queued_bytes(index));
  ClassQueue& queue = state.queue_of(index, packet.lane);
  packet.psn = static_cast<std::uint32_t>(queue.packets);
  const std::int64_t limit = std::min(state.queue_limit, transmit_queue);
  if (queue.bytes + header.bytes > limit) {
    ++queue.dropped;
    ++state.dropped;
    return false;
  }
  packet.message = frames_->add(frame);
  frames_->count_sent(header.bytes);
  queue.queue.push({packet, no_in_port, static_cast<std::uint32_t>(header.bytes) | std::uint32_t{packet.lane} << 24},
                   state.blocks);
  if (!state.depths.empty()) state.depths[index * state.plan.count + packet.lane].hold(queue.bytes, now);
  queue.bytes += header.bytes;
  queue.peak = std::max(queue.peak, queue.bytes);
  PortState& ps = state.ports[index];
  ps.occupied |= 1U << packet.lane;
  ps.queue_ps += wire_time(port, packet).busy;
  port.peak_backlog = std::max(port.peak_backlog, port_load(index, now));
  nic_wake(index, now);
  return true;
}

/// What a frame on the wire holds; nullptr if `packet` is no frame.
ns3::Ptr<ns3::Packet> Fabric::frame_of(const Packet& packet) const {
  return packet.kind == PacketKind::frame ? frames_->at(packet.message) : nullptr;
}

/// A frame is on its last link: from here on ns-3 holds it, and the lean packet that arrives is empty.
void Fabric::hand_up(std::uint32_t in_port, Packet& packet, std::int64_t arrival) {
  const Node& node = nodes_[local_of_port_[in_port]];
  if (node.host == no_slot) return;
  frames_->arrive(node.id, in_port - node.first_port, arrival, packet);
  packet.message = no_slot;
}

// A host with frames in its queues: ACKs first, then by class as at a switch. RDMA data wait in connections and not in
// a queue; where frames are of the same class, connections and frames take turns. Classes that share the link have
// their deficit reduced by what they have sent, and go on while there is some left (surplus round robin, Adiseshu,
// Parulkar and Varghese, "A reliable and scalable striping protocol", SIGCOMM 1996, doi:10.1145/248156.248169), since
// the size of the next RDMA packet is not known before it is made.
bool Fabric::nic_send_beside_frames(const Node& node, std::uint32_t port_index, std::int64_t now) {
  if (!nic_choose_beside_frames(node, port_index, now)) return false;
  // What a connection has sent was in no queue until now: frames that still wait are behind it.
  OutputPort& port = outputs_[port_index];
  port.peak_backlog = std::max(port.peak_backlog, port_load(port_index, now));
  return true;
}

bool Fabric::nic_choose_beside_frames(const Node& node, std::uint32_t port_index, std::int64_t now) {
  BufferedState& state = *buffered_;
  const PortState& ps = state.ports[port_index];
  const NicPort& nic = state.hosts[node.host].ports[port_index - node.first_port];
  if (nic_send_urgent(node, port_index, now)) return true;
  const std::uint32_t data = 1U << state.plan.data;
  std::uint32_t ready = (ps.occupied & ~ps.blocked) | (nic.has_ready() ? data : 0);
  while (ready != 0) {
    const std::uint32_t lane = choose_lane(port_index, ready);
    ClassQueue& queue = state.queue_of(port_index, lane);
    const std::int64_t before = queue.frame_bytes;
    if (lane == state.plan.data ? nic_send_of_data_class(node, port_index, now) : send_waiting(port_index, lane, now)) {
      if (!competes(ready, lane)) return true;
      tell_emptied(port_index);
      state.schedulers[port_index]->sends(lane, Bytes(queue.frame_bytes - before));
      return true;
    }
    ready &= ~(1U << lane);
  }
  return false;
}

bool Fabric::nic_send_of_data_class(const Node& node, std::uint32_t port_index, std::int64_t now) {
  BufferedState& state = *buffered_;
  NicPort& nic = state.hosts[node.host].ports[port_index - node.first_port];
  const PortState& ps = state.ports[port_index];
  const std::uint32_t lane = state.plan.data;
  const bool waits = ((ps.occupied & ~ps.blocked) >> lane & 1U) != 0;
  nic.frames_turn = !nic.frames_turn;
  if (waits && nic.frames_turn && send_waiting(port_index, lane, now)) return true;
  if (nic_send_data(node, port_index, now)) return true;
  return waits && !nic.frames_turn && send_waiting(port_index, lane, now);
}

// The first of a queue, if the other end of the link has room.
bool Fabric::send_waiting(std::uint32_t port_index, std::uint32_t lane, std::int64_t now) {
  const auto frame = static_cast<std::int64_t>(buffered_->queue_of(port_index, lane).queue.front().frame & 0xffffffU);
  if (!takes_credit(port_index, lane, frame, now)) return false;
  leave_queue(port_index, lane, now);
  return true;
}

const FrameCounters& Fabric::frame_counters() const {
  static const FrameCounters none;
  return frames_ ? frames_->counters() : none;
}

/// Collective. Frames that were sent have arrived or were dropped, over all processes, and none is held.
void Fabric::check_frames(ProcessGroup& group) const {
  const FrameCounters& here = frame_counters();
  const auto sum = [&group](std::int64_t value) { return group.sum(static_cast<std::uint64_t>(value)); };
  const std::uint64_t sent = group.sum(here.sent);
  const std::uint64_t ended = group.sum(here.delivered) + group.sum(here.dropped);
  const std::uint64_t sent_bytes = sum(here.sent_bytes);
  const std::uint64_t ended_bytes = sum(here.delivered_bytes) + sum(here.dropped_bytes);
  WEFT_EXPECT(sent == ended && sent_bytes == ended_bytes,
              "{} frames of {} bytes were sent, {} of {} bytes have arrived or were dropped", sent, sent_bytes, ended,
              ended_bytes);
  WEFT_EXPECT(!frames_ || frames_->live() == 0, "{} frames are held", frames_->live());
}

}  // namespace weft
