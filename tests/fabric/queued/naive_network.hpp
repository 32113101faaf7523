// SPDX-License-Identifier: GPL-2.0-only
// The network of docs/concepts/model.md once more, as plainly as possible: one event after another, whole packets,
// every transmission kept. Slow and small, so that it can be read beside the page.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fabric/lean_machine.hpp"

namespace weft::test {

/// A packet at the output of a link: when it came there, and when it was on the wire.
struct Transmission {
  std::int64_t arrived;
  std::int64_t start;
  std::int64_t end;
  std::int64_t wire;
  std::int64_t payload;
  bool data;
};

/// Arrivals of two packets at one output and time would need the order of ties, which this model does not know: it
/// fails if there are any.
class NaiveNetwork {
 public:
  /// Takes the machine, its queue pairs and postings; runs none of its code but the routing.
  explicit NaiveNetwork(const LeanMachine& machine)
      : topology_(machine.topology),
        routing_(*machine.routing),
        network_(machine.parameters),
        links(2 * topology_.graph.link_count()),
        hosts_(topology_.graph.host_count()) {
    for (const auto& [key, destination] : machine.destinations) hosts_[key.first].pairs[key.second].to = destination;
    for (std::size_t i = 0; i < machine.postings.size(); ++i)
      at(machine.postings[i].at.ps(), posting, [this, i, &machine] { post(machine.postings[i], i); });
    while (!events_.empty()) {
      const auto first = events_.begin();
      now_ = std::get<0>(first->first);
      const auto action = std::move(first->second);
      events_.erase(first);
      action();
    }
  }

 private:
  const Topology& topology_;
  const RoutingAlgorithm& routing_;
  const NetworkParameters& network_;

 public:
  std::map<std::uint64_t, std::int64_t> delivered;  ///< message id -> time
  std::map<std::uint64_t, std::int64_t> sent;       ///< posting -> time
  std::vector<std::vector<Transmission>> links;     ///< [directed links]

 private:
  enum Phase { arrival, posting, decision };
  struct MessageOut {
    std::uint64_t id;
    std::uint64_t posting;
    std::int64_t rest;
    bool begun = false;
  };
  struct Pair {
    std::uint32_t to = 0;
    std::deque<MessageOut> messages;
    std::int64_t in_flight = 0;
    bool in_turn = false;
  };
  struct Flight {
    bool data = false;
    bool last = false;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t pair = 0;
    std::int64_t payload = 0;  // of the data packet that an ACK answers
    std::uint64_t id = 0;
    std::uint64_t posting = 0;
    std::vector<PathHop> path;
    std::size_t hop = 0;
  };
  struct Host {
    std::map<std::uint32_t, Pair> pairs;
    std::deque<Flight> acks;
    std::deque<std::uint32_t> turns;
    bool deciding = false;
    std::uint64_t posted = 0;
  };

  void at(std::int64_t time, Phase phase, std::function<void()> action) {
    events_[{time, phase, count_++}] = std::move(action);
  }

  bool may_send(const Pair& pair) const {
    if (pair.messages.empty()) return false;
    if (!network_.acks || pair.in_flight == 0) return true;
    return pair.in_flight + std::min(pair.messages.front().rest, network_.mtu.count()) <= network_.window.count();
  }
  void take_turn(std::uint32_t host, std::uint32_t number) {
    Pair& pair = hosts_[host].pairs[number];
    if (pair.in_turn || !may_send(pair)) return;
    pair.in_turn = true;
    hosts_[host].turns.push_back(number);
  }
  void wake(std::uint32_t host) {
    Host& state = hosts_[host];
    if (state.deciding || (state.acks.empty() && state.turns.empty())) return;
    state.deciding = true;
    const PortEnd& port = topology_.graph.ports(NodeId(host))[0];
    at(std::max(now_, free_at(directed(port.link, port.direction))), decision, [this, host] { decide(host); });
  }
  std::int64_t free_at(std::uint32_t link) const { return links[link].empty() ? 0 : links[link].back().end; }

  void post(const Posting& wish, std::uint64_t number) {
    Host& host = hosts_[wish.host];
    const std::uint64_t id = std::uint64_t{wish.host} << 32 | host.posted++;
    host.pairs.at(wish.queue_pair).messages.push_back({id, number, wish.bytes});
    take_turn(wish.host, wish.queue_pair);
    wake(wish.host);
  }

  void decide(std::uint32_t host) {
    Host& state = hosts_[host];
    state.deciding = false;
    Flight flight;
    if (!state.acks.empty()) {
      flight = std::move(state.acks.front());
      state.acks.pop_front();
      transmit(std::move(flight));
    } else {
      const std::uint32_t number = state.turns.front();
      state.turns.pop_front();
      Pair& pair = state.pairs[number];
      pair.in_turn = false;
      MessageOut& message = pair.messages.front();
      flight.data = true;
      flight.from = host;
      flight.to = pair.to;
      flight.pair = number;
      flight.payload = std::min(message.rest, network_.mtu.count());
      flight.id = message.id;
      flight.posting = message.posting;
      message.rest -= flight.payload;
      flight.last = message.rest == 0;
      if (flight.last) pair.messages.pop_front();
      if (network_.acks) pair.in_flight += flight.payload;
      flight.path = trace_path(topology_, routing_, {NodeId(flight.from), NodeId(flight.to), flight.pair});
      const auto done = flight;
      transmit(std::move(flight));
      if (done.last && !network_.acks) sent[done.posting] = free_at(done.path[0].directed_link);
      take_turn(host, number);
    }
    wake(host);
  }

  void transmit(Flight flight) {
    const std::uint32_t link = flight.path[flight.hop].directed_link;
    const LinkProperties& properties = topology_.graph.link(LinkId(link / 2));
    const Bytes wire = flight.data ? Bytes(flight.payload) + network_.header + network_.wire_overhead
                                   : network_.ack + network_.wire_overhead;
    if (!links[link].empty()) {
      EXPECT_LT(links[link].back().arrived, now_) << "a tie: choose another seed for this test";
    }
    const std::int64_t start = std::max(now_, free_at(link));
    const std::int64_t end = start + serialization_time(wire, properties.rate).ps();
    links[link].push_back({now_, start, end, wire.count(), flight.data ? flight.payload : 0, flight.data});
    ++flight.hop;
    const bool to_switch = flight.hop < flight.path.size();
    const std::int64_t there = end + (properties.delay + (to_switch ? network_.switch_latency : Time())).ps();
    at(there, arrival, [this, flight = std::move(flight), to_switch]() mutable {
      if (to_switch)
        transmit(std::move(flight));
      else
        receive(std::move(flight));
    });
  }

  void receive(Flight flight) {
    if (!flight.data) {
      Pair& pair = hosts_[flight.to].pairs.at(flight.pair);
      pair.in_flight -= flight.payload;
      take_turn(flight.to, flight.pair);
      wake(flight.to);
      if (flight.last) sent[flight.posting] = now_;
      return;
    }
    const std::uint32_t here = flight.to;
    if (flight.last) delivered[flight.id] = now_;
    if (!network_.acks) return;
    Flight ack = flight;
    ack.data = false;
    ack.from = here;
    ack.to = flight.from;
    ack.hop = 0;
    ack.path = trace_path(topology_, routing_, {NodeId(ack.from), NodeId(ack.to), ack.pair});
    hosts_[here].acks.push_back(std::move(ack));
    wake(here);
  }

  std::vector<Host> hosts_;
  std::map<std::tuple<std::int64_t, Phase, std::uint64_t>, std::function<void()>> events_;
  std::uint64_t count_ = 0;
  std::int64_t now_ = 0;
};

// Work of a link that has arrived and is not yet transmitted at `time`, in ps: arrivals at `time` itself count if
// `inclusive`.
inline std::int64_t backlog(const std::vector<Transmission>& link, std::int64_t time, bool inclusive) {
  std::int64_t work = 0;
  for (const Transmission& t : link)
    if (t.arrived < time || (inclusive && t.arrived == time))
      work += std::max<std::int64_t>(0, t.end - std::max(t.start, time));
  return work;
}

/// The integral over time of the bytes that wait, by sweeping over all changes.
inline double waiting_byte_ps(const std::vector<Transmission>& link) {
  std::map<std::int64_t, std::int64_t> changes;
  for (const Transmission& t : link) {
    changes[t.arrived] += t.wire;
    changes[t.start] -= t.wire;
  }
  __int128 integral = 0;
  std::int64_t waiting = 0;
  std::int64_t since = 0;
  for (const auto& [time, change] : changes) {
    integral += static_cast<__int128>(waiting) * (time - since);
    waiting += change;
    since = time;
  }
  return static_cast<double>(integral);
}

}  // namespace weft::test
