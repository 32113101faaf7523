// SPDX-License-Identifier: GPL-2.0-only
// A closed loop for congestion control without a network: senders, one queue, one receiver. For tests only.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <queue>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"
#include "transport/congestion_control/congestion_control.hpp"

namespace weft {

/// Senders with a NIC of rate C each, all with data for ever, share one first-in-first-out port of rate C without a
/// limit:
///
///   sender --(C, d)--> queue --(C, d)--> receiver; ACKs and CNPs come back after 2 d and never wait.
///
/// The port marks when a packet leaves, by the bytes that remain (as RED without averaging), and adds telemetry.
class BottleneckLoop {
 public:
  struct Settings {
    std::vector<Time> starts;  ///< of each sender
    Bandwidth rate = Bandwidth::from_gbps(100);
    Time delay = Time::from_us(1);  ///< d
    Bytes mtu{1000};
    Bytes overhead{48};
    Bytes window = Bytes::max();        ///< the NIC's own limit of unacknowledged payload
    std::optional<EcnMarking> marking;  ///< the algorithm's own if absent
    Time until = Time::from_ms(2);
    Time measure_from;  ///< shares and queues are of the time from here to `until`
  };

  BottleneckLoop(const CongestionControlKind& kind, Settings settings)
      : settings_(std::move(settings)), services_(kind.services()), wire_(settings_.mtu + settings_.overhead) {
    packet_time_ = serialization_time(wire_, settings_.rate).ps();
    marking_ = settings_.marking.value_or(kind.default_marking(settings_.rate, path().base_rtt));
    for (std::size_t i = 0; i < settings_.starts.size(); ++i) {
      flows_.emplace_back();
      flows_.back().control = kind.make(path());
      push(settings_.starts[i].ps(), Kind::start, i);
    }
  }

  FlowPath path() const {
    const Time rtt = 2 * serialization_time(wire_, settings_.rate) + 4 * settings_.delay;
    return {settings_.rate, rtt, settings_.mtu, settings_.overhead, 2};
  }

  void run() {
    while (!events_.empty() && events_.top().time <= settings_.until.ps()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      handle(event);
    }
    account_queue(settings_.until.ps());
  }

  /// Delivered payload as a share of the port's capacity during the measurement.
  double share(std::size_t flow) const { return static_cast<double>(flows_[flow].delivered) / capacity(); }
  double utilisation() const {
    double sum = 0;
    for (std::size_t i = 0; i < flows_.size(); ++i) sum += share(i);
    return sum;
  }
  /// Jain's index of the shares: (sum x)^2 / (n sum x^2).
  double fairness() const {
    double squares = 0;
    for (std::size_t i = 0; i < flows_.size(); ++i) squares += share(i) * share(i);
    return utilisation() * utilisation() / (static_cast<double>(flows_.size()) * squares);
  }
  /// Wire bytes waiting, while measured.
  double mean_queue() const {
    return queue_integral_ / static_cast<double>((settings_.until - settings_.measure_from).ps());
  }
  std::int64_t largest_queue() const { return largest_; }
  std::int64_t min_queue() const { return min_; }
  std::int64_t queue() const { return queued_bytes_; }
  const Allowance& allowance(std::size_t flow) const { return flows_[flow].allowance; }
  std::int64_t cnps() const { return cnps_; }

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();  ///< ps

  enum class Kind { start, wake, timer, arrival, departure, delivery, ack, cnp };
  struct Packet {
    std::size_t flow = 0;
    std::int64_t sent = 0;
    bool marked = false;
    HopTelemetry hops[2];
  };
  struct Event {
    std::int64_t time;
    std::uint64_t order;
    Kind kind;
    std::size_t flow;
    Packet packet;
    bool operator<(const Event& other) const { return time != other.time ? time > other.time : order > other.order; }
  };
  struct Flow {
    std::unique_ptr<CongestionControl> control;
    Allowance allowance;
    std::int64_t in_flight = 0;
    std::int64_t sent = 0;
    std::int64_t last_sent = -(std::int64_t{1} << 60);
    std::int64_t nic_free = 0;
    std::int64_t wake_at = never;
    std::int64_t timer_at = never;
    std::int64_t last_cnp = -(std::int64_t{1} << 60);
    std::uint64_t next_psn = 0;
    std::uint64_t acked_psn = 0;
    std::int64_t delivered = 0;
  };

  double capacity() const {
    const double seconds = (settings_.until - settings_.measure_from).seconds();
    return static_cast<double>(settings_.rate.bps()) / 8 * seconds * static_cast<double>(settings_.mtu.count()) /
           static_cast<double>(wire_.count());
  }
  void push(std::int64_t time, Kind kind, std::size_t flow, const Packet& packet) {
    events_.push({time, order_++, kind, flow, packet});
  }
  void push(std::int64_t time, Kind kind, std::size_t flow) { push(time, kind, flow, Packet()); }
  Moment moment(const Flow& flow) const { return {Time::from_ps(now_), Bytes(flow.sent)}; }

  void handle(const Event& event) {
    Flow& flow = flows_[event.flow];
    switch (event.kind) {
      case Kind::start:
        obey(event.flow, flow.control->start(Time::from_ps(now_)));
        break;
      case Kind::wake:
        if (flow.wake_at == now_) {
          flow.wake_at = never;
          send(event.flow);
        }
        break;
      case Kind::timer:
        if (flow.timer_at == now_ && flow.allowance.next_timer.ps() == now_)
          obey(event.flow, flow.control->on_timer(moment(flow)));
        break;
      case Kind::arrival:
        enqueue(event.packet);
        break;
      case Kind::departure:
        dequeue();
        break;
      case Kind::delivery:
        deliver(event.packet);
        break;
      case Kind::ack:
        acknowledge(event.packet);
        break;
      case Kind::cnp:
        obey(event.flow, flow.control->on_cnp(moment(flow)));
        break;
    }
  }

  /// Takes over an allowance, which has to keep the promises of congestion_control.hpp.
  void obey(std::size_t index, const Allowance& allowance) {
    Flow& flow = flows_[index];
    ASSERT_GE(allowance.window, Bytes(1));
    ASSERT_GE(allowance.rate, Bandwidth());
    ASSERT_LE(allowance.rate, settings_.rate);
    ASSERT_GT(allowance.next_timer.ps(), now_);
    ASSERT_GT(allowance.next_bytes.count(), flow.sent);
    flow.allowance = allowance;
    if (allowance.next_timer != Time::max() && allowance.next_timer.ps() != flow.timer_at) {
      flow.timer_at = allowance.next_timer.ps();
      push(flow.timer_at, Kind::timer, index);
    }
    send(index);
  }

  void send(std::size_t index) {
    Flow& flow = flows_[index];
    const std::int64_t mtu = settings_.mtu.count();
    if (flow.in_flight != 0 && flow.in_flight + mtu > std::min(flow.allowance.window, settings_.window).count()) return;
    std::int64_t eligible = std::max(flow.nic_free, now_);
    if (flow.allowance.rate != Bandwidth()) {
      const Time gap = serialization_time(wire_, flow.allowance.rate);
      eligible = std::max(eligible, flow.last_sent + gap.ps());
    }
    if (eligible > now_) {
      if (eligible < flow.wake_at) {
        flow.wake_at = eligible;
        push(eligible, Kind::wake, index);
      }
      return;
    }
    Packet packet{index, now_, false, {}};
    packet.hops[0] = {Time::from_ps(now_), Bytes(flow.sent), Bytes(),
                      PortLabel(static_cast<std::uint32_t>(1 + index), 0)};
    flow.last_sent = now_;
    flow.nic_free = now_ + packet_time_;
    flow.in_flight += mtu;
    flow.sent += wire_.count();
    ++flow.next_psn;
    push(flow.nic_free + settings_.delay.ps(), Kind::arrival, index, packet);
    flow.wake_at = flow.nic_free;
    push(flow.wake_at, Kind::wake, index);
    if (flow.sent >= flow.allowance.next_bytes.count()) obey(index, flow.control->on_bytes_sent(moment(flow)));
  }

  void account_queue(std::int64_t now) {
    const std::int64_t from = std::max(queue_since_, settings_.measure_from.ps());
    if (now > from) queue_integral_ += static_cast<double>(queued_bytes_) * static_cast<double>(now - from);
    queue_since_ = now;
    if (now >= settings_.measure_from.ps()) {
      largest_ = std::max(largest_, queued_bytes_);
      min_ = std::min(min_, queued_bytes_);
    }
  }
  void enqueue(const Packet& packet) {
    account_queue(now_);
    queue_.push_back(packet);
    queued_bytes_ += wire_.count();
    if (!busy_) transmit();
  }
  void dequeue() {
    busy_ = false;
    if (!queue_.empty()) transmit();
  }
  void transmit() {
    account_queue(now_);
    Packet packet = queue_.front();
    queue_.pop_front();
    queued_bytes_ -= wire_.count();
    account_queue(now_);
    busy_ = true;
    packet.marked = services_.ecn && mark();
    packet.hops[1] = {Time::from_ps(now_), Bytes(transmitted_), Bytes(queued_bytes_), PortLabel(0, 0)};
    transmitted_ += wire_.count();
    push(now_ + packet_time_, Kind::departure, packet.flow);
    push(now_ + packet_time_ + settings_.delay.ps(), Kind::delivery, packet.flow, packet);
  }
  bool mark() {
    if (queued_bytes_ > marking_.max.count()) return true;
    if (queued_bytes_ <= marking_.min.count()) return false;
    const double p = marking_.probability * static_cast<double>(queued_bytes_ - marking_.min.count()) /
                     static_cast<double>(marking_.max.count() - marking_.min.count());
    return random_unit(7, 0, draws_++) < p;
  }
  void deliver(const Packet& packet) {
    Flow& flow = flows_[packet.flow];
    if (now_ >= settings_.measure_from.ps()) flow.delivered += settings_.mtu.count();
    const std::int64_t back = now_ + 2 * settings_.delay.ps();
    const std::int64_t interval = services_.cnp_interval.ps();
    if (packet.marked && interval > 0 && now_ - flow.last_cnp >= interval) {
      flow.last_cnp = now_;
      ++cnps_;
      push(back, Kind::cnp, packet.flow);
    }
    push(back, Kind::ack, packet.flow, packet);
  }
  void acknowledge(const Packet& packet) {
    Flow& flow = flows_[packet.flow];
    flow.in_flight -= settings_.mtu.count();
    ++flow.acked_psn;
    AckEvent ack;
    ack.at = moment(flow);
    ack.acked = settings_.mtu;
    ack.acked_psn = flow.acked_psn;
    ack.next_psn = flow.next_psn;
    ack.ecn = packet.marked;
    ack.rtt = Time::from_ps(now_ - packet.sent);
    ack.in_flight = Bytes(flow.in_flight);
    if (services_.telemetry) ack.hops = packet.hops;
    ack.rates = std::span(&settings_.rate, 1);
    if (services_.acks)
      obey(packet.flow, flow.control->on_ack(ack));
    else
      send(packet.flow);
  }

  Settings settings_;
  Services services_;
  Bytes wire_;
  std::int64_t packet_time_ = 0;
  EcnMarking marking_;
  std::vector<Flow> flows_;
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  std::uint64_t draws_ = 0;
  std::int64_t now_ = 0;
  std::deque<Packet> queue_;
  bool busy_ = false;
  std::int64_t queued_bytes_ = 0;
  std::int64_t transmitted_ = 0;
  std::int64_t queue_since_ = 0;
  double queue_integral_ = 0;
  std::int64_t largest_ = 0;
  std::int64_t min_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t cnps_ = 0;
};

/// An algorithm by name, with parameters as an experiment would give them.
inline std::unique_ptr<CongestionControlKind> congestion_control(const std::string& name,
                                                                 const std::string& yaml = "") {
  const auto* entry = CongestionControlRegistry::instance().find(name);
  if (entry == nullptr) throw std::runtime_error("no congestion control is called " + name);
  auto kind = entry->make();
  kind->configure(yaml.empty() ? std::nullopt : std::optional(Spec::parse(yaml, name + ".yaml")));
  return kind;
}

}  // namespace weft
