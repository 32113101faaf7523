// SPDX-License-Identifier: GPL-2.0-only
// An epoch of a switch port by port. While its memory can hold all arrivals, no port depends on another one: the order
// of arrivals matters only within each port, and the values that a packet changes there stay in registers. See decision
// 15.
#include <algorithm>
#include <span>
#include <utility>

#include "fabric/queued/queued_hot.hpp"

namespace weft {
namespace {

/// One port in an epoch in which each packet fits into memory whatever the other ports do, of a switch with plain ports
/// (QueuedState::plain), none of which has credits. Does what QueuedSwitch::enqueue() and QueuedPorts::catch_up() do
/// one packet at a time.
class PortEpoch {
 public:
  PortEpoch(QueuedModel& model, PortId out)
      : q_(model),
        net_(model.net),
        state_(model.state),
        port_(net_.outputs[out]),
        ps_(state_.ports[out]),
        out_(out),
        free_at_(port_.free_at),
        event_at_(ps_.event_at),
        queue_time_(ps_.queue_time),
        peak_(port_.peak_backlog),
        busy_(port_.busy),
        has_event_(event_at_ != never && !ps_.deferred) {}

  /// The next packet that leaves by this port.
  void arrive(const Arrival& came) {
    const Time now = came.time;
    if (event_at_ < now) send_before(now);
    Packet& packet = *came.packet;
    const WireTime size = net_.sizes.wire_time(port_, packet);
    const LaneId lane = lane_of(packet);
    ClassQueue& queue = ps_.classes[lane.value()];
    if (queue.bytes + net_.sizes.frame_bytes(size) > state_.queue_limit) [[unlikely]]
      return arrive_generally(came);
    if (free_at_ > now || (ps_.occupied | ps_.tell_pause) != 0 || lane.in(ps_.blocked))
      return wait(packet, came.port, now, size, queue, lane);
    if (state_.marks_passing) q_.marking.mark(out_, queue, packet, Bytes(), now, now);
    launch(queue, now, packet, size);
  }

  /// Sends the packets of the port before a time, if the port has to be served before.
  void send_before(Time before) {
    do {
      last_ = std::exchange(event_at_, never);
      ++looks_;
      if (free_at_ <= last_ && !send_first(last_)) continue;
      if (ready() != 0) event_at_ = free_at_;
    } while (event_at_ < before);
  }

  /// The rest of the epoch.
  void finish(Time end) {
    if (event_at_ < end) send_before(end);
    store();
    if (event_at_ != never && !ps_.deferred && !has_event_) q_.switches.defer(out_);
  }

  /// Writes the values in registers back to the port.
  void store() {
    net_.clock.happen(last_, std::exchange(looks_, 0));
    port_.free_at = free_at_;
    port_.peak_backlog = peak_;
    port_.busy = busy_;
    ps_.event_at = event_at_;
    ps_.queue_time = queue_time_;
  }

 private:
  static constexpr Time never = Time::max();

  /// Classes that may send, bit per class.
  std::uint32_t ready() const { return ps_.occupied & ~ps_.blocked; }
  void load() {
    free_at_ = port_.free_at;
    peak_ = port_.peak_backlog;
    busy_ = port_.busy;
    event_at_ = ps_.event_at;
    queue_time_ = ps_.queue_time;
  }
  // A queue that is full: it drops packets, or trims them.
  [[gnu::noinline]] void arrive_generally(const Arrival& came) {
    store();
    const LocalNode& node = net_.nodes.all[net_.nodes.of_port[out_]];
    q_.switches.enqueue(node, out_, *came.packet, came.port, lane_of(*came.packet), came.time);
    load();
  }

  [[gnu::always_inline]] void wait(Packet& packet, PortId in_port, Time now, WireTime size, ClassQueue& queue,
                                   LaneId lane) {
    const Bytes frame = net_.sizes.frame_bytes(size);
    const bool bypass = state_.is_bypass(lane);
    if (!bypass) {
      const PortState& in = state_.ports[in_port];
      if (in.memory != nullptr) in.memory->take(in.first_queue + lane.value(), frame);
    }
    if (state_.marks_at_arrival) q_.marking.mark(out_, queue, packet, queue.bytes, now, now);
    if (packet.kind == PacketKind::data && (packet.flags & packet_last) != 0) [[unlikely]]
      net_.messages[packet.message].pause_mark = state_.paused_time(out_, lane, now);
    state_.append(ps_, lane, packet, bypass ? PortId::none() : in_port, lane, frame);
    queue_time_ += size.busy;
    peak_ = std::max(peak_, std::max(Time(), free_at_ - now) + queue_time_);
    if (free_at_ <= now) {
      send_first(now);
      if (ready() == 0) return;
    }
    event_at_ = std::min(event_at_, free_at_);
  }

  [[gnu::always_inline]] bool send_first(Time now) {
    const std::uint32_t lanes = ready();
    if (lanes == 0) return false;
    const LaneId lane = q_.ports.choose_lane(out_, lanes);
    ClassQueue& queue = ps_.classes[lane.value()];
    if (q_.ports.competes(lanes, lane)) state_.schedulers[out_]->sends(lane, queue.queue.front().frame_bytes());
    QueuedPacket& sent = state_.take_first(ps_, lane);
    const WireTime size = net_.sizes.wire_time(port_, sent.packet);
    const Time came = sent.packet.time;
    queue_time_ -= size.busy;
    port_.add_wait(now - came, size.wire, size.busy);
    if (sent.packet.kind == PacketKind::data && (sent.packet.flags & packet_last) != 0) [[unlikely]]
      q_.ports.tell_message(out_, lane, sent.packet, now);
    if (state_.marks_at_departure) q_.marking.mark(out_, queue, sent.packet, queue.bytes, came, now);
    launch(queue, now, sent.packet, size);
    if (sent.in_port == PortId::none()) return true;
    const PortState& in = state_.ports[sent.in_port];
    if (in.memory != nullptr) in.memory->release(in.first_queue + sent.in_lane().value(), sent.frame_bytes());
    return true;
  }

  [[gnu::always_inline]] void launch(ClassQueue& queue, Time now, Packet& packet, WireTime size) {
    if (state_.services.telemetry) [[unlikely]]
      q_.departures.collect_telemetry(out_, now, packet, size);
    q_.departures.count(port_, queue, packet, size);
    free_at_ = now + size.busy;
    busy_ += size.busy;
    peak_ = std::max(peak_, size.busy);
    q_.departures.send_on(port_, packet, q_.departures.arrival_of(port_, ps_, now, size));
  }

  QueuedModel& q_;
  LocalNetwork& net_;
  QueuedState& state_;
  OutputPort& port_;
  PortState& ps_;
  const PortId out_;
  Time free_at_;
  Time event_at_;
  Time queue_time_;
  Time peak_;
  Time busy_;
  const bool has_event_;  // a later epoch looks at the port by that
  Time last_;
  std::uint64_t looks_ = 0;
};

}  // namespace

void QueuedSwitch::send_deferred(PortId port, Time before) {
  PortEpoch epoch(q_, port);
  epoch.send_before(before);
  epoch.store();
}

// Whatever leaves meanwhile: then no packet's admission depends on another port.
bool QueuedSwitch::has_room_for_all(const LocalNode& node, const ArrivalOrder& arrivals) const {
  const QueuedState& state = q_.state;
  SharedBuffer* memory = state.ports[node.first_port].memory;
  if (memory == nullptr) return true;
  const auto max = [memory](std::size_t packets) {
    return static_cast<std::int64_t>(packets) * memory->largest_frame();
  };
  if (memory->stays_small(max(arrivals.collected().size() + 1))) return true;
  const Bytes limit = memory->limit_after(max(arrivals.collected().size()));
  if (limit < Bytes()) return false;
  for (std::size_t r = 0; r < arrivals.runs(); ++r) {
    const std::span<const Arrival> run = arrivals.run(r);
    const std::uint32_t first_queue = state.ports[run.front().port].first_queue;
    for (LaneId lane; lane < state.plan.end(); ++lane)
      if (!state.is_bypass(lane) && !memory->stays_within(first_queue + lane.value(), max(run.size() + 1), limit))
        return false;
  }
  return true;
}

// The queues of the next nodes are scattered in memory: they are in the cache when packets leave.
[[gnu::noinline]] void QueuedSwitch::fetch_queues_beyond(const LocalNode& node, const ArrivalOrder& order) const {
  if (net_.cut.on_boundary(net_.clock.running)) return;  // links that leave the process have none here
  for (std::uint32_t p = 0; p < node.ports; ++p)
    if (!order.departures(p).empty()) __builtin_prefetch(&net_.inputs[net_.outputs[node.first_port + p].peer()], 1);
}

void QueuedSwitch::send_by_port(std::uint32_t local, const ArrivalOrder& arrivals, Time end) {
  const LocalNode& node = net_.nodes.all[local];
  const std::span<const Arrival> collected = arrivals.collected();
  if (collected.empty()) return;
  Time last;
  for (std::size_t r = 0; r < arrivals.runs(); ++r) last = std::max(last, arrivals.run(r).back().time);
  net_.clock.happen(last, collected.size());
  const std::span<const std::uint16_t> routes = q_.router.route(node, collected);
  const ArrivalOrder& order = net_.by_port(routes, node.ports);
  if (net_.fetches_ahead) fetch_queues_beyond(node, order);
  for (std::uint32_t p = 0; p < node.ports; ++p) {
    const std::span<const Departure> departures = order.departures(p);
    if (departures.empty()) continue;
    PortEpoch port(q_, node.first_port + p);
    for (const Departure& departure : departures) port.arrive(order.collected()[departure.number]);
    port.finish(end);
  }
}

}  // namespace weft
