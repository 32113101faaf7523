// SPDX-License-Identifier: GPL-2.0-only
// Reports of queues from switch to switch, for routing that looks at queues elsewhere (UGAL-G). At multiples of an
// interval a switch reports each of its queues that has changed to the switches that want to know. A report takes
// effect there when a frame would have crossed the link, and a given delay later: as late as anything else that passes
// from process to process. It takes no bandwidth, as in a network of its own, and finds its way when the link fails.
#include <algorithm>
#include <limits>

#include "fabric/network/buffered_state.hpp"
#include "fabric/network/fabric.hpp"

namespace weft {

void Fabric::build_reports() {
  ReportedQueues& reports = buffered_->reports;
  const ReportParameters& wanted = parameters_.fabric.reports;
  reports.slots = routing_.most_reported();
  if (reports.slots == 0) return;
  reports.interval = wanted.interval.ps();
  reports.delay = wanted.delay.ps();
  for (const Node& node : nodes_) reports.of_node.push_back(routing_.reports(NodeId(node.id)));
  reports.pending.assign(nodes_.size(), false);
  reports.told.assign(outputs_.size(), 0);
  reports.heard.assign(outputs_.size() * reports.slots, 0);
}

// More or less waits at a port. Nothing happens while nothing changes, so that an idle network stays idle.
void Fabric::queue_changed(std::uint32_t port_index, std::int64_t now) {
  ReportedQueues& reports = buffered_->reports;
  const std::uint32_t local = local_of_port_[port_index];
  const QueueReports& of_node = reports.of_node[local];
  const std::uint32_t port = port_index - nodes_[local].first_port;
  if (port - of_node.first >= of_node.count || reports.pending[local]) return;
  reports.pending[local] = true;
  const std::int64_t next = (now / reports.interval + 1) * reports.interval;
  add_event(local, {next, nodes_[local].first_port, 0, NodeEvent::Kind::reporting, 0, 0});
}

void Fabric::report_queues(const NodeEvent& event) {
  ReportedQueues& reports = buffered_->reports;
  const std::uint32_t local = local_of_port_[event.port];
  const Node& node = nodes_[local];
  const QueueReports& of_node = reports.of_node[local];
  reports.pending[local] = false;
  const std::int64_t wire = std::max(pause_wire, parameters_.least_wire().count());
  for (std::uint32_t slot = 0; slot < of_node.count; ++slot) {
    const std::uint32_t reported = node.first_port + of_node.first + slot;
    const std::int64_t bytes = queued_bytes(reported);
    if (bytes == reports.told[reported]) continue;
    reports.told[reported] = bytes;
    Packet frame;
    frame.kind = PacketKind::report;
    frame.psn = static_cast<std::uint32_t>(std::min<std::int64_t>(bytes, std::numeric_limits<std::uint32_t>::max()));
    frame.payload = static_cast<std::uint16_t>(slot);
    for (std::uint32_t l = 0; l < of_node.listeners; ++l) {
      const std::uint32_t listener = node.first_port + of_node.first_listener + l;
      OutputPort& port = outputs_[listener];
      const std::int64_t crossing = serialization_time(Bytes(wire), Bandwidth::from_bps(port.rate_bps)).ps();
      const std::int64_t arrival = event.time + crossing + buffered_->ports[listener].propagation + reports.delay;
      if ((port.peer_port & OutputPort::remote) == 0)
        add_event(port.peer_node, link_frame_event(port.peer_port, frame, arrival));
      else
        export_packet(port, frame, arrival);
    }
  }
}

void Fabric::hear_report(const NodeEvent& event) {
  ReportedQueues& reports = buffered_->reports;
  reports.heard[std::size_t{event.port} * reports.slots + event.classes] = event.data;
}

}  // namespace weft
