// SPDX-License-Identifier: GPL-2.0-only
// Events at nodes other than arrivals of packets, in the order of time.
#pragma once

#include <cstdint>

#include "fabric/local/local_network.hpp"
#include "fabric/packet/buffered_port.hpp"

namespace weft {

struct QueuedModel;

/// Hands each event to the part of the model that it concerns.
class NodeEvents {
 public:
  NodeEvents(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  void add(std::uint32_t local, const NodeEvent& event);
  /// Runs the first event of a node. False if it was out of date and had no effect: timers that have become needless
  /// must not make a run last longer.
  bool handle_first(std::uint32_t local);
  /// Time of the next own event of a node, apart from its timers, or never.
  Time next(const LocalNode& node) const;

 private:
  bool handle(std::uint32_t local, const NodeEvent& event);
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
