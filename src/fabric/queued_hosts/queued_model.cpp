// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/queued/queued_model.hpp"

#include <algorithm>

#include "fabric/frames/frame_table.hpp"

namespace weft {
QueuedModel::QueuedModel(LocalNetwork& net)
    : net(net),
      events(*this, net),
      ports(*this, net),
      departures(*this, net),
      switches(*this, net),
      marking(*this, net),
      router(*this, net),
      control(*this, net),
      outages(*this, net),
      reporter(*this, net),
      nics(*this, net),
      receivers(*this, net),
      credits(*this, net),
      frames(*this, net),
      samples(*this, net),
      build(*this, net),
      results(*this, net) {
  build.build();
}

QueuedModel::~QueuedModel() = default;

void QueuedModel::run(const LocalNode& node, Time end) {
  if (node.host != no_slot)
    nics.run(net.clock.running, end);
  else
    switches.run(net.clock.running, end);
  state.blocks.reuse_retired();
}

Time QueuedModel::next_event(const LocalNode& node) const {
  const Time next = events.next(node);
  return node.host == no_slot ? next : std::min(next, state.hosts[node.host].timers.next());
}

std::vector<WaitBeyond> QueuedModel::settle_waits(Time end) {
  for (const PortId p : net.nodes.ports()) {
    OutputPort& port = net.outputs[p];
    port.waited += state.waiting_at(p, [&](const Packet& packet) {
      const auto waited = static_cast<std::uint64_t>(std::max(Time(), end - packet.time).ps());
      return static_cast<unsigned __int128>(waited) *
             static_cast<std::uint64_t>(net.sizes.wire_time(port, packet).wire.count());
    });
  }
  return {};
}

}  // namespace weft
