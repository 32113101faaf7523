// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/network/fabric_checks.hpp"

#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "fabric/frames/frame_table.hpp"
#include "fabric/local/local_network.hpp"
#include "fabric/network/gathering.hpp"
#include "fabric/network/port_model.hpp"
#include "fabric/probes/deadlock.hpp"
#include "support/basics/contract.hpp"

namespace weft {

// Deadlocks ---------------------------------------------------------------------------------------------------------

bool Deadlocks::suspicious() const {
  return model_->ask_queued([](QueuedModel& model) { return model.control.suspicious; });
}
bool Deadlocks::take_suspicion() {
  return model_->ask_queued([](QueuedModel& model) { return std::exchange(model.control.suspicious, false); });
}
bool Deadlocks::packets_wait() const {
  return model_->ask_queued([](QueuedModel& model) { return model.results.packets_wait(); });
}

std::string Deadlocks::find(ProcessGroup& group, Time stopped_by) const {
  const auto edges = model_->ask_queued([&](QueuedModel& model) { return model.results.wait_edges(stopped_by); });
  return describe_cycle(find_waiting_cycle(gather_rows(group, edges)), net_.topology.graph);
}

// Conservation -------------------------------------------------------------------------------------------------------

void Conservation::check(ProcessGroup& group) const {
  check_links();
  check_cut(group);
  WEFT_EXPECT(net_.messages.live() == 0, "{} messages have not been delivered", net_.messages.live());
  model_->visit([](auto& model) { model.check_nodes(); });
  check_frames(group);
}

// Packets that went into a link less those that it has lost.
std::uint64_t Conservation::packets_delivered(PortId port) const {
  return net_.outputs[port].packets - model_->visit([&](auto& model) { return model.lost(port); });
}

void Conservation::check_links() const {
  for (const LocalNode& node : net_.nodes.all) {
    for (const PortId p : node.all_ports()) {
      WEFT_EXPECT(net_.inputs[p].empty(), "node {} port {}: {} packets have not been received", node.id.value(),
                  p - node.first_port, net_.inputs[p].size());
      const OutputPort& port = net_.outputs[p];
      if (port.leaves_process()) continue;
      const std::uint64_t received = net_.inputs[port.peer()].taken();
      WEFT_EXPECT(packets_delivered(p) == received, "link {}: {} packets delivered, {} received", port.directed_link,
                  packets_delivered(p), received);
    }
  }
}

// Cut links: sends every neighbour the number of packets that arrived over each of them.
void Conservation::check_cut(ProcessGroup& group) const {
  const std::span<const Neighbour> neighbours = net_.cut.neighbours();
  std::vector<std::vector<std::byte>> told(neighbours.size());
  std::vector<std::vector<std::byte>> heard(neighbours.size());
  for (std::size_t n = 0; n < neighbours.size(); ++n) {
    for (const CutEnd& end : neighbours[n].ends) {
      const std::uint64_t taken = net_.inputs[end.port].taken();
      const auto* bytes = reinterpret_cast<const std::byte*>(&taken);
      told[n].insert(told[n].end(), bytes, bytes + sizeof(taken));
    }
  }
  group.exchange(net_.cut.processes(), told, heard);
  for (std::size_t n = 0; n < neighbours.size(); ++n) {
    for (std::size_t i = 0; i < neighbours[n].ends.size(); ++i) {
      std::uint64_t received = 0;
      std::memcpy(&received, heard[n].data() + i * sizeof(received), sizeof(received));
      const PortId index = neighbours[n].ends[i].port;
      const std::uint64_t delivered = packets_delivered(index);
      WEFT_EXPECT(delivered == received, "link {}: {} packets delivered, {} received",
                  net_.outputs[index].directed_link, delivered, received);
    }
  }
}

/// Collective. Frames that were sent have arrived or were dropped, over all processes, and none is held.
void Conservation::check_frames(ProcessGroup& group) const {
  const FrameTable* frames = model_->frames();
  const FrameCounters here = frames != nullptr ? frames->counters() : FrameCounters();
  const auto sum = [&group](Bytes value) { return group.sum(static_cast<std::uint64_t>(value.count())); };
  const std::uint64_t sent = group.sum(here.sent);
  const std::uint64_t ended = group.sum(here.delivered) + group.sum(here.dropped);
  const std::uint64_t sent_bytes = sum(here.sent_bytes);
  const std::uint64_t ended_bytes = sum(here.delivered_bytes) + sum(here.dropped_bytes);
  WEFT_EXPECT(sent == ended && sent_bytes == ended_bytes,
              "{} frames of {} bytes were sent, {} of {} bytes have arrived or were dropped", sent, sent_bytes, ended,
              ended_bytes);
  const std::uint64_t held = frames != nullptr ? frames->live() : 0;
  WEFT_EXPECT(held == 0, "{} frames are held", held);
}

}  // namespace weft
