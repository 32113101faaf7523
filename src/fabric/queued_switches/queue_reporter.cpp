// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <limits>

#include "fabric/queued/queued_model.hpp"

namespace weft {

void QueueReporter::build() {
  ReportedQueues& reports = q_.state.reports;
  const ReportParameters& wanted = net_.parameters.fabric.reports;
  reports.slots = net_.routing.max_reported();
  if (reports.slots == 0) return;
  reports.interval = wanted.interval;
  reports.delay = wanted.delay;
  for (const LocalNode& node : net_.nodes.all) reports.of_node.push_back(net_.routing.reports(node.id));
  reports.pending.assign(net_.nodes.all.size(), false);
  reports.told.assign(net_.outputs.size(), Bytes());
  reports.heard.assign(net_.outputs.size() * reports.slots, Bytes());
}

// The queue of a port has changed. Nothing happens without a change, so that an idle network stays idle.
void QueueReporter::queue_changed(PortId port_index, Time now) {
  ReportedQueues& reports = q_.state.reports;
  const std::uint32_t local = net_.nodes.of_port[port_index];
  const QueueReports& of_node = reports.of_node[local];
  const std::uint32_t port = port_index - net_.nodes.all[local].first_port;
  if (port - of_node.first >= of_node.count || reports.pending[local]) return;
  reports.pending[local] = true;
  const Time next = (now / reports.interval + 1) * reports.interval;
  q_.events.add(local, {next, net_.nodes.all[local].first_port, 0, NodeEvent::Kind::reporting, {}, 0});
}

void QueueReporter::report(const NodeEvent& event) {
  ReportedQueues& reports = q_.state.reports;
  const std::uint32_t local = net_.nodes.of_port[event.port];
  const LocalNode& node = net_.nodes.all[local];
  const QueueReports& of_node = reports.of_node[local];
  reports.pending[local] = false;
  const Bytes wire = std::max(NetworkParameters::pause_wire, net_.parameters.min_wire());
  for (std::uint32_t slot = 0; slot < of_node.count; ++slot) {
    const PortId reported = node.first_port + of_node.first + slot;
    const Bytes bytes = q_.state.queued_bytes(reported);
    if (bytes == reports.told[reported]) continue;
    reports.told[reported] = bytes;
    Packet frame;
    frame.kind = PacketKind::report;
    frame.psn = static_cast<std::uint32_t>(std::min(bytes, Bytes(std::numeric_limits<std::uint32_t>::max())).count());
    frame.payload = static_cast<std::uint16_t>(slot);
    for (std::uint32_t l = 0; l < of_node.listeners; ++l) {
      const PortId listener = node.first_port + of_node.first_listener + l;
      OutputPort& port = net_.outputs[listener];
      const Time crossing = serialization_time(wire, port.rate);
      const Time arrival = event.time + crossing + q_.state.ports[listener].propagation + reports.delay;
      if (!port.leaves_process())
        q_.events.add(port.peer_node, q_.control.event_of(port.peer(), frame, arrival));
      else
        q_.departures.export_packet(port, frame, arrival);
    }
  }
}

void QueueReporter::hear(const NodeEvent& event) {
  ReportedQueues& reports = q_.state.reports;
  reports.heard[std::size_t{event.port.value()} * reports.slots + event.classes] = Bytes(event.data);
}

}  // namespace weft
