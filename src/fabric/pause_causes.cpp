// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/pause_causes.hpp"

#include <algorithm>

#include "fabric/buffered_state.hpp"
#include "fabric/fabric.hpp"

namespace weft {

void PauseCauses::stopped(std::size_t queue, std::uint32_t port, std::int64_t now) {
  std::vector<PauseCause>& causes = causes_[queue];
  auto at = std::find_if(causes.begin(), causes.end(), [&](const PauseCause& cause) { return cause.port == port; });
  if (at == causes.end()) at = causes.insert(at, {port, 0, 0, now, now});
  ++at->stops;
  current_[queue] = static_cast<std::uint32_t>(at - causes.begin());
  since_[queue] = now;
}

void PauseCauses::resumed(std::size_t queue, std::int64_t now) {
  if (current_[queue] == none) return;
  PauseCause& cause = causes_[queue][current_[queue]];
  cause.time += now - since_[queue];
  cause.last = now;
  current_[queue] = none;
}

void PauseCauses::give_credits(std::size_t queue, std::int64_t room, std::int64_t largest) {
  if (rooms_.empty()) rooms_.resize(causes_.size());
  rooms_[queue].most = room - largest;
}

bool PauseCauses::waits(std::size_t queue, std::int64_t frame) {
  Room& room = rooms_[queue];
  room.held += frame;
  return room.held > room.most && current_[queue] == none;
}

void PauseCauses::leaves(std::size_t queue, std::int64_t frame, std::int64_t now) {
  Room& room = rooms_[queue];
  room.held -= frame;
  if (room.held <= room.most) resumed(queue, now);
}

std::uint64_t PauseCauses::memory_bytes() const {
  std::uint64_t bytes = current_.capacity() * sizeof(std::uint32_t) + since_.capacity() * sizeof(std::int64_t) +
                        rooms_.capacity() * sizeof(Room);
  for (const auto& causes : causes_) bytes += sizeof(causes) + causes.capacity() * sizeof(PauseCause);
  return bytes;
}

void Fabric::count_pause_causes() {
  if (!buffered_ || !(buffered_->pauses || buffered_->credits)) return;
  pause_causes_ = std::make_unique<PauseCauses>(buffered_->classes.size());
  watches_credits_ = buffered_->credits;
  for (std::uint32_t port = 0; port < outputs_.size(); ++port)
    for (std::uint32_t rest = buffered_->ports[port].credited; rest != 0; rest &= rest - 1)
      pause_causes_->give_credits(buffered_->queue_number(port, static_cast<std::uint32_t>(std::countr_zero(rest))),
                                  input_buffer(port).count(), buffered_->largest_frame);
}

// A frame has begun to wait for `out` at a switch. A host takes what comes at once.
void Fabric::note_credit_taken(std::uint32_t in_port, std::uint8_t in_lane, std::uint32_t out, std::int64_t frame,
                               std::int64_t now) {
  if ((buffered_->ports[in_port].credited >> in_lane & 1U) == 0) return;
  const std::size_t queue = buffered_->queue_number(in_port, in_lane);
  if (pause_causes_->waits(queue, frame)) pause_causes_->stopped(queue, filling_output(in_port, in_lane, out, 0), now);
}

void Fabric::note_credit_given(std::uint32_t in_port, std::uint8_t in_lane, std::int64_t frame, std::int64_t now) {
  if ((buffered_->ports[in_port].credited >> in_lane & 1U) == 0) return;
  pause_causes_->leaves(buffered_->queue_number(in_port, in_lane), frame, now);
}

// The output for which most bytes of an ingress queue wait, `frame` more at `out`. The first one of several. Walks what
// waits in the switch: counting it packet by packet would cost more, as senders are stopped much less often.
std::uint32_t Fabric::filling_output(std::uint32_t in_port, std::uint8_t in_lane, std::uint32_t out,
                                     std::int64_t frame) const {
  const BufferedState& state = *buffered_;
  const Node& node = nodes_[local_of_port_[in_port]];
  std::uint32_t fullest = out;
  std::int64_t most = -1;
  for (std::uint32_t port = node.first_port; port < node.first_port + node.ports; ++port) {
    std::int64_t bytes = port == out ? frame : 0;
    for (std::uint32_t rest = state.ports[port].occupied; rest != 0; rest &= rest - 1)
      state.queue_of(port, static_cast<std::uint32_t>(std::countr_zero(rest)))
          .queue.for_each([&](const QueuedPacket& waiting) {
            if (waiting.in_port == in_port && waiting.frame >> 24 == in_lane) bytes += waiting.frame & 0xffffffU;
          });
    if (bytes <= most) continue;
    most = bytes;
    fullest = port;
  }
  return fullest;
}

std::vector<LinkPause> Fabric::link_pauses(Time end) const {
  std::vector<LinkPause> rows;
  if (!pause_causes_) return rows;
  for (std::uint32_t port = 0; port < outputs_.size(); ++port) {
    for (std::uint32_t lane = 0; lane < buffered_->plan.count; ++lane) {
      const std::size_t queue = buffered_->queue_number(port, lane);
      const std::uint32_t current = pause_causes_->current(queue);
      const auto causes = pause_causes_->of_queue(queue);
      for (std::uint32_t i = 0; i < causes.size(); ++i) {
        // What comes in through a port travels the other direction of its link.
        LinkPause row{outputs_[port].directed_link ^ 1U, lane, outputs_[causes[i].port].directed_link, causes[i]};
        if (i == current) {
          row.cause.time += end.ps() - pause_causes_->since(queue);
          row.cause.last = end.ps();
        }
        rows.push_back(row);
      }
    }
  }
  return rows;
}

}  // namespace weft
