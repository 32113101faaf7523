// SPDX-License-Identifier: GPL-2.0-only
// Hosts with reliable connections: which connection may send next, and what acknowledgements and timers change.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/local/local_network.hpp"
#include "fabric/packet/buffered_port.hpp"
#include "fabric/probes/path_refusal.hpp"
#include "fabric/queued/rdma_host.hpp"
#include "transport/congestion_control/congestion_control.hpp"
#include "transport/messages/ideal_time.hpp"

namespace weft {

struct QueuedModel;

/// The sending half of the NICs of a process. Sizes in bytes.
class RdmaNic {
 public:
  RdmaNic(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  /// A host processes all events in the order of time, its few ports last.
  void run(std::uint32_t local, Time end);
  /// The port of a host that is served first.
  PortId next_port(const LocalNode& node) const;
  /// Of the paths on which hosts of this process were to send.
  PathRefusal refusal;

  // For the software of hosts -----------------------------------------------------------------------------------------
  std::uint32_t open(const LocalNode& node, NodeId destination);
  std::uint64_t post(const LocalNode& node, std::uint32_t queue_pair, Time now, Message message);

  // A port of a host is free ------------------------------------------------------------------------------------------
  /// ACKs and their like.
  bool send_urgent(const LocalNode& node, PortId port_index, Time now);
  /// One packet of each ready connection in turn.
  bool send_data(const LocalNode& node, PortId port_index, Time now);

  // Something has happened --------------------------------------------------------------------------------------------
  /// The NIC decides what to send after all arrivals of the same time.
  void wake(PortId port_index, Time now);
  /// An ACK or its like, which is to be filled in at once.
  Packet& add_urgent(const LocalNode& node, PortId port_index, Time now);
  /// The other end of the link no longer stops a class.
  void unhold(const LocalNode& node, PortId port_index, LaneId lane, Time now);
  void receive_answer(const LocalNode& node, const Packet& packet);
  void receive_pull(const LocalNode& node, const Packet& packet);
  bool end_pacing(const LocalNode& node, std::uint32_t number, Time now);
  bool time_out(const LocalNode& node, const NodeEvent& event);
  bool control_timer(const LocalNode& node, const NodeEvent& event);

 private:
  void fetch_telemetry(std::span<const Arrival> arrivals) const;
  void serve(const LocalNode& node, PortId port_index, Time now);
  bool window_allows(const Connection& connection) const;
  SendWaits::Reason full_window(const Connection& connection) const;
  bool may_send(const Connection& connection, Time now) const;
  void list(const LocalNode& node, Connection& connection, Time now);
  void await_pacing(const LocalNode& node, Connection& connection);
  void forget_pacing(const LocalNode& node, Connection& connection);
  bool pacing_ends_first(std::uint32_t local, const RdmaHost& host) const;
  bool send_from(const LocalNode& node, Connection& connection, Time now);
  static void pace(Connection& connection);
  void obey(const LocalNode& node, Connection& connection, Time now);
  Time deadline_of(const Connection& connection) const;
  void watch(const LocalNode& node, Connection& connection);
  /// `next_psn`: of the sender before it learned of the loss.
  void lose(const LocalNode& node, Connection& connection, const ReliableSender::Progress& progress,
            std::uint64_t next_psn, Time now, bool timeout);
  void finish_sent(const LocalNode& node, const Connection& connection, std::uint32_t done, Time now);
  void limit_window(Connection& connection) const;
  void check(const FlowPath& flow) const;
  FlowPath flow_path(const std::vector<PathLink>& path, Bytes mtu) const;
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
