// SPDX-License-Identifier: GPL-2.0-only
// When packets make a detour: over another group of a dragonfly or dragonfly+, over another switch of any machine.
#pragma once

#include <algorithm>
#include <cstdint>

#include "routing/algorithm/routing_algorithm.hpp"
#include "units/bytes.hpp"

namespace weft {

enum class Detours : std::uint8_t {
  never,
  always,              ///< Valiant
  by_queues,           ///< UGAL-L: the queues of the first router
  by_reported_queues,  ///< UGAL-G: those of the group's global links, too, as their routers have reported them
  progressive,         ///< as by_queues, and again at the second router
  within_groups,       ///< as by_queues, and within a group over another of its routers
};

/// Two packets of one flow may then take different ways. Otherwise the flow alone decides.
constexpr bool looks_at_queues(Detours detours) { return detours != Detours::never && detours != Detours::always; }

/// The group (or switch) over which a packet would make its detour: one of the `groups` - 2 others, the same at all
/// nodes. UGAL draws it for each packet (Kim et al. 2008, section 4.2; Jiang et al. 2009), which spreads a single flow
/// over all groups; Valiant's ways keep the order of a flow here, so that the flow alone chooses.
inline std::uint32_t detour_group(Detours detours, const AdaptiveRequest& request, std::uint64_t seed,
                                  std::uint32_t groups, std::uint32_t source, std::uint32_t target) {
  constexpr NodeId no_node(0xffffffffU);
  const std::uint64_t entropy = looks_at_queues(detours) ? mix64(seed + request.psn + 1) : seed;
  std::uint32_t group = ecmp_choice(ecmp_hash(request.flow, no_node, entropy), groups - 2);
  if (group >= std::min(source, target)) ++group;
  if (group >= std::max(source, target)) ++group;
  return group;
}

/// In favour of the minimal way, in bytes times hops: three hops of one full frame of 4 KiB. Shorter queues say little,
/// and without a bias uniform traffic makes needless detours (Jiang, Kim, Dally, ISCA 2009, section 3.2, have a
/// threshold for that, too).
constexpr Bytes detour_bias = 3 * Bytes::kib(4);

/// Routing state in a packet: the phase, global links so far (2 bits each).
struct DetourProgress {
  enum Phase : std::uint8_t { undecided, minimal, to_intermediate, from_intermediate };
  Phase phase = undecided;
  std::uint8_t globals = 0;
  bool second_look = false;  ///< progressive: may still turn away

  static DetourProgress of(std::uint8_t state) {
    return {static_cast<Phase>(state & 3U), static_cast<std::uint8_t>(state >> 2 & 3U), (state & 16U) != 0};
  }
  std::uint8_t state() const { return static_cast<std::uint8_t>(phase | globals << 2 | (second_look ? 16U : 0U)); }
};

}  // namespace weft
