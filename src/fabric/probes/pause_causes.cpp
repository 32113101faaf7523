// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/probes/pause_causes.hpp"

#include <algorithm>

namespace weft {

void PauseCauses::stopped(std::size_t queue, PortId port, Time now) {
  std::vector<PauseCause>& causes = causes_[queue];
  auto at = std::find_if(causes.begin(), causes.end(), [&](const PauseCause& cause) { return cause.port == port; });
  if (at == causes.end()) at = causes.insert(at, {port, 0, Time(), now, now});
  ++at->stops;
  current_[queue] = static_cast<std::uint32_t>(at - causes.begin());
  since_[queue] = now;
}

void PauseCauses::resumed(std::size_t queue, Time now) {
  if (current_[queue] == none) return;
  PauseCause& cause = causes_[queue][current_[queue]];
  cause.time += now - since_[queue];
  cause.last = now;
  current_[queue] = none;
}

void PauseCauses::give_credits(std::size_t queue, Bytes room, Bytes largest) {
  if (rooms_.empty()) rooms_.resize(causes_.size());
  rooms_[queue].max = room - largest;
}

bool PauseCauses::waits(std::size_t queue, Bytes frame) {
  Room& room = rooms_[queue];
  room.held += frame;
  return room.held > room.max && current_[queue] == none;
}

void PauseCauses::leaves(std::size_t queue, Bytes frame, Time now) {
  Room& room = rooms_[queue];
  room.held -= frame;
  if (room.held <= room.max) resumed(queue, now);
}

std::uint64_t PauseCauses::memory_bytes() const {
  std::uint64_t bytes =
      current_.capacity() * sizeof(std::uint32_t) + since_.capacity() * sizeof(Time) + rooms_.capacity() * sizeof(Room);
  for (const auto& causes : causes_) bytes += sizeof(causes) + causes.capacity() * sizeof(PauseCause);
  return bytes;
}

}  // namespace weft
