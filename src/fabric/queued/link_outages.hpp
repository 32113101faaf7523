// SPDX-License-Identifier: GPL-2.0-only
// Links that lose packets, fail, or run slower for a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/local/local_network.hpp"
#include "fabric/packet/buffered_port.hpp"
#include "fabric/parameters/link_faults.hpp"
#include "routing/algorithm/routing_algorithm.hpp"
#include "transport/messages/packet.hpp"

namespace weft {

struct QueuedModel;

/// One object has the outages of all links that begin at nodes of its process.
class LinkOutages {
 public:
  LinkOutages(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  void build();
  bool any() const { return any_; }
  /// Links fail or come back, and routing learns of it.
  bool has_detours() const { return !detours_.empty(); }
  /// The routing at `now`. While all links work it is the experiment's own algorithm.
  const RoutingAlgorithm& routing_at(Time now) const;
  /// The same for a packet. One that failures have led off its way goes the rest of it by shortest paths, also when all
  /// links work again: an algorithm that decides packet by packet knows neither where such a packet has been nor which
  /// lanes it may use.
  const RoutingAlgorithm& routing_at(Time now, const Packet& packet) const {
    const RoutingAlgorithm& routing = routing_at(now);
    return packet.route == led_off && routing.per_packet() ? *rest_ : routing;
  }
  /// Packet::route of a packet that took a detour; algorithms use no state that is as large.
  static constexpr std::uint8_t led_off = 0xff;
  /// A packet whose first bit leaves at `start` and whose last at `end` does not arrive. A link that is down at any
  /// moment while it carries the packet loses it. `wire` bytes are subject to chance; 0: none.
  bool loses(PortId port, Time start, Time end, Bytes wire) const;
  /// When the link works again that has lost something sent from `start` to `end`; `never` if it does not.
  Time outage_end(PortId port, Time start, Time end) const;
  void change_link(const NodeEvent& event);
  /// The rate of a link changes at some time.
  bool slows() const { return !slowed_.empty(); }
  /// By how much longer something takes that has the port for `busy`, because its rate is lowered now.
  Time longer(PortId port, Time busy) const;
  /// The same of all that the port has sent.
  Time slowed(PortId port) const;

 private:
  /// Routing from a time on, as links have failed or come back.
  struct Detour {
    Time from;
    const RoutingAlgorithm* routing;  ///< of prepared_, or none: all links work
  };
  std::vector<Detour> detours_;
  std::vector<std::unique_ptr<RoutingAlgorithm>> prepared_;
  std::unique_ptr<RoutingAlgorithm> rest_;
  bool any_ = false;
  PerPort<std::vector<const LinkFault*>> fault_of_port_;  // [local ports]
  /// Of a port: what it had sent when its rate changed last, and how much longer that had taken.
  struct Slowed {
    Time busy;
    Time longer;
  };
  PerPort<std::vector<Slowed>> slowed_;  // [local ports], or none
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
