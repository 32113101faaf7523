// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/local/node_epochs.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "support/basics/error.hpp"

namespace weft {
namespace {

// Bytes. Virtual machines and emulators may know nothing of it, or something else than the processor has: then
// WEFT_SECOND_CACHE sets it. No result depends on it.
std::size_t second_cache() {
  constexpr long usual = 1 << 20;
  if (const char* text = std::getenv("WEFT_SECOND_CACHE")) {
    std::size_t bytes = 0;
    const char* end = text + std::strlen(text);
    if (const auto [rest, failure] = std::from_chars(text, end, bytes); failure != std::errc() || rest != end)
      throw EnvironmentError(fmt::format("WEFT_SECOND_CACHE: found '{}'; expected a number of bytes", text));
    return bytes;
  }
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return static_cast<std::size_t>(bytes > 0 ? bytes : usual);
}

}  // namespace

// Packets from another process have passed through no cache of this one, and the last cache is shared.
NodeEpochs::NodeEpochs(LocalNetwork& net)
    : net_(net), cache_(second_cache() / (net.cut.neighbours().empty() ? 1 : 2)) {}

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
