// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/local/node_epochs.hpp"

#include <unistd.h>

namespace weft {
namespace {

/// How many nodes the second cache holds, roughly: half a KiB of ports and packets each is touched between two visits.
/// Measured: fetching ahead begins to pay at 1,000 nodes with 512 KiB, at 2,000 with 1 MiB.
std::size_t nodes_in_second_cache() {
  constexpr long usual = 1 << 20;
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return static_cast<std::size_t>(bytes > 0 ? bytes : usual) / 512;
}

}  // namespace

// What comes from another process has passed through no cache of this one, and the last cache is shared.
NodeEpochs::NodeEpochs(LocalNetwork& net)
    : net_(net), nodes_in_cache_(nodes_in_second_cache() / (net.cut.neighbours().empty() ? 1 : 2)) {}

Time NodeEpochs::next_time() const {
  const std::uint64_t epoch = net_.clock.calendar.first();
  const Time here = epoch == NodeCalendar::none ? never : static_cast<std::int64_t>(epoch) * net_.clock.epoch_length();
  const Time there = net_.cut.first_arrival();
  return there == never ? here : std::min(here, net_.clock.epoch_start(there));
}

// Nodes on the boundary run first, which is backwards; returns how many are not.
std::size_t NodeEpochs::put_boundary_last() {
  const auto begin = nodes_.begin();
  return static_cast<std::size_t>(
      std::stable_partition(begin, nodes_.end(), [this](std::uint32_t local) { return !net_.cut.on_boundary(local); }) -
      begin);
}

void NodeEpochs::fetch_arrivals(const LocalNode& node, Time epoch_end) const {
  for (PortId p = node.first_port; p < node.end_port(); ++p) {
    if (net_.heads[p] >= epoch_end) continue;
    const Packet* packet = &net_.inputs[p].front();
    fetch(packet, PacketBlock::end_of(packet));
  }
}

void NodeEpochs::fetch_later_arrivals(const LocalNode& node, Time epoch_end) const {
  for (PortId p = node.first_port; p < node.end_port(); ++p) {
    if (net_.heads[p] >= epoch_end) continue;
    const auto* block = static_cast<const std::byte*>(net_.inputs[p].second_block());
    fetch(block, block + PacketBlock::size);
  }
}

}  // namespace weft
