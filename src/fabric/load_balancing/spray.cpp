// SPDX-License-Identifier: GPL-2.0-only
// Packet spraying: A. Dixit et al., "On the impact of packet spraying in data center networks", INFOCOM 2013,
// doi:10.1109/INFCOM.2013.6567015.
#include "fabric/load_balancing/load_balancing.hpp"

namespace weft {
namespace {

class Spray final : public SpreadingBalancing<Spray> {
 public:
  // In hardware UDP source ports select paths: one per path that the sender wants. An answer takes the one of the
  // packet that it answers, whose distance from its own number is its payload.
  static std::uint32_t flow_of(const Packet& packet) {
    const bool answers = packet.kind != PacketKind::data;
    const auto ahead = static_cast<std::uint32_t>(answers ? static_cast<std::int16_t>(packet.payload) : 0);
    return static_cast<std::uint32_t>(
        mix64(static_cast<std::uint64_t>(packet.queue_pair) << 32 | (packet.psn + ahead)));
  }
};

const Registration<LoadBalancing, Spray> spray_registration("spray", "each packet by a hash of its number: oblivious");

}  // namespace
}  // namespace weft
