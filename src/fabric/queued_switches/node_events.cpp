// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>

#include "fabric/queued/queued_hot.hpp"
#include "support/system/interrupt.hpp"

namespace weft {

void NodeEvents::add(std::uint32_t local, const NodeEvent& event) {
  q_.state.events[local].push(event);
  if (local == net_.clock.running) return;  // checked when the node is done
  net_.clock.wake_at(local, event.time);
}

bool NodeEvents::handle(std::uint32_t local, const NodeEvent& event) {
  switch (event.kind) {
    case NodeEvent::Kind::expiry:
      return q_.control.expire_pause(event);
    case NodeEvent::Kind::refresh:
      return q_.control.refresh_pause(event);
    case NodeEvent::Kind::timeout:
      look_for_interrupt();
      return q_.nics.time_out(net_.nodes.all[local], event);
    case NodeEvent::Kind::credit:
      return q_.credits.time_out(net_.nodes.all[local], event);
    case NodeEvent::Kind::control:
      return q_.nics.control_timer(net_.nodes.all[local], event);
    case NodeEvent::Kind::pull:
      return q_.receivers.send_pull(net_.nodes.all[local], event);
    case NodeEvent::Kind::pause:
      q_.control.read_pause(event);
      break;
    case NodeEvent::Kind::grant:
      q_.control.read_grant(event);
      break;
    case NodeEvent::Kind::link:
      q_.outages.change_link(event);
      return false;
    case NodeEvent::Kind::report:
      q_.reporter.hear(event);
      return false;
    case NodeEvent::Kind::reporting:
      q_.reporter.report(event);
      return false;
    case NodeEvent::Kind::pacing:
      return q_.nics.end_pacing(net_.nodes.all[local], event.data, event.time);
    case NodeEvent::Kind::port_free:
      return q_.ports.look_at(event.port, event.time);
  }
  return true;
}

Time NodeEvents::next(const LocalNode& node) const {
  const std::uint32_t local = net_.nodes.local_of[node.id];
  const EventHeap& events = q_.state.events[local];
  const Time by_ports = node.host == no_slot ? q_.state.deferred[local].next
                                             : std::min(q_.state.ports[q_.nics.next_port(node)].event_at,
                                                        q_.state.hosts[node.host].pacing.time);
  return events.empty() ? by_ports : std::min(by_ports, events.time());
}

}  // namespace weft
