// SPDX-License-Identifier: GPL-2.0-only
// Reports of queues from switch to switch, for routing that looks at queues elsewhere (UGAL-G).
#pragma once

#include <cstdint>

#include "fabric/local/local_network.hpp"
#include "fabric/packet/buffered_port.hpp"

namespace weft {

struct QueuedModel;

/// At multiples of an interval a switch reports each of its queues that has changed to the switches that need them. A
/// report takes effect there when a frame would have crossed the link, plus a given delay: no earlier than any other
/// data that pass from process to process. It takes no bandwidth, as in a network of its own, and finds its way when
/// the link fails.
class QueueReporter {
 public:
  QueueReporter(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  void build();
  /// The queue of a port has changed. There are no events while nothing changes, so that an idle network stays idle.
  void queue_changed(PortId port_index, Time now);
  void report(const NodeEvent& event);
  void hear(const NodeEvent& event);

 private:
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
