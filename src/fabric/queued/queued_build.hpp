// SPDX-License-Identifier: GPL-2.0-only
// Initial state of ports with queues: classes, thresholds, headroom and buffers, from the experiment and the links.
#pragma once

#include <cstdint>

#include "fabric/local/local_network.hpp"
#include "fabric/packet/shared_buffer.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

struct QueuedModel;

/// Makes the state before the run begins.
class QueuedBuild {
 public:
  QueuedBuild(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  void build();
  /// Links of `changed` have changed: recomputes all values that depend on them, there and at their neighbours.
  void settle_ports_of(NodeId changed);
  /// Of a port whose link has credits.
  Bytes input_buffer(PortId port) const;
  /// Of those that come in and leave there.
  Bytes largest_frame(PortId port) const { return max_payload_at(port) + net_.parameters.header; }
  Bandwidth rate_into(PortId port) const;
  /// An upper bound for all pairs of hosts.
  Time longest_round_trip() const;

 private:
  void settle_port(PortId index);
  void build_state();
  void require_few_rates() const;
  void build_routes();
  void build_nodes();
  void build_schedulers();
  SharedBuffer make_buffer(const LocalNode& node) const;
  Bytes needed_headroom(PortId in_port) const;
  /// Hosts of one server may exchange larger packets than others do.
  Bytes max_payload_at(PortId port) const;
  Bandwidth slowest_link_into(const LocalNode& node) const;

  mutable Time longest_round_trip_;
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
