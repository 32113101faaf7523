// SPDX-License-Identifier: GPL-2.0-only
// Prefetches data that the next nodes of an epoch will need, in three visits: each prefetches the addresses that the
// one before has brought the addresses of. Only the memory that most packets touch.
#include "fabric/packet/fetching.hpp"
#include "fabric/queued/queued_model.hpp"

namespace weft {
namespace {

// Each prefetch of address 0 searches the page tables.
void fetch_if_any(const void* at) {
  if (at != nullptr) fetch_line(at);
}

void fetch_tables_of_host(const RdmaHost& host) {
  fetch(host.ports.data(), host.ports.data() + 1);
  if (host.connections.size() == 1) fetch(host.connections.data(), host.connections.data() + 1);
  fetch_if_any(host.timers.memory());
  if (const auto* receiver = host.receivers.latest()) fetch(receiver, receiver + 1);
}

// The data that a sender accesses with each ACK, and the state of congestion control: its first five lines, which hold
// the state of all algorithms, HPCC's of six hops among them.
void fetch_connection(const Connection& connection, const MessagePool& messages) {
  constexpr std::size_t control_bytes = 320;
  if (const auto* control = reinterpret_cast<const std::byte*>(connection.control.get()))
    fetch(control, control + control_bytes);
  if (const auto* sent = static_cast<const std::byte*>(connection.sender.oldest_sent())) fetch(sent, sent + 128);
  if (connection.sender.oldest_message() != no_slot) fetch_line(&messages[connection.sender.oldest_message()]);
}

// Packets that may leave in this epoch.
void fetch_waiting(const ClassQueue& queue) {
  constexpr std::size_t packets = 8;
  const QueuedPacket* first = &queue.queue.front();
  fetch(first, first + packets);
}

}  // namespace

void QueuedModel::fetch_first(const LocalNode& node) const {
  const std::uint32_t local = net.nodes.local_of[node.id];
  for (const PortId p : node.all_ports()) {
    fetch_line(&state.ports[p]);
    if (state.services.telemetry) fetch_line(&state.ports[p].wire_bytes);
    fetch_line(&state.classes[state.queue_number(p, state.plan.control)]);
    fetch_line(&state.classes[state.queue_number(p, state.plan.data)]);
  }
  fetch_line(&state.events[local]);
  if (node.host != no_slot)
    fetch(&state.hosts[node.host], &state.hosts[node.host] + 1);
  else
    fetch_line(&state.deferred[local]);
}

void QueuedModel::fetch_second(const LocalNode& node) const {
  fetch_if_any(state.events[net.nodes.local_of[node.id]].memory());
  if (node.host != no_slot) return fetch_tables_of_host(state.hosts[node.host]);
  if (const SharedBuffer* buffer = state.buffer_at(net.nodes.local_of[node.id])) fetch(buffer, buffer + 1);
}

void QueuedModel::fetch_third(const LocalNode& node) const {
  if (node.host != no_slot) {
    const RdmaHost& host = state.hosts[node.host];
    if (host.connections.size() == 1) fetch_connection(host.connections.front(), net.messages);
    return;
  }
  const std::uint32_t local = net.nodes.local_of[node.id];
  if (const SharedBuffer* buffer = state.buffer_at(local))
    for (std::uint32_t p = 0; p < node.ports; ++p)
      fetch_line(buffer->account_of(p * state.plan.count + state.plan.data.value()));
  // The ports with waiting packets. The lines of the other ports are not touched here: they would leave the first cache
  // before the node runs.
  for (const PortId p : state.deferred[local].ports) {
    const ClassQueue& queue = state.classes[state.queue_number(p, state.plan.data)];
    if (!queue.queue.empty()) fetch_waiting(queue);
    if (queue.bytes > queue.mark_floor) fetch_line(state.markers[state.queue_number(p, state.plan.data)].get());
  }
}

}  // namespace weft
