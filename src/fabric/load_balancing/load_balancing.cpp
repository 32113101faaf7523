// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/load_balancing/load_balancing.hpp"

namespace weft {

std::uint16_t SwitchPorts::least_loaded(std::span<const std::uint16_t> ports, const RouteRequest& flow,
                                        std::uint32_t psn, Time now) const {
  Time min = Time::max();
  for (const std::uint16_t port : ports) min = std::min(min, load(port, now));
  const std::uint32_t hash =
      ecmp_hash({flow.source, flow.destination, flow.queue_pair ^ (psn * 0x9e3779b9U)}, node_, seed_);
  const std::size_t first = ecmp_choice(hash, static_cast<std::uint32_t>(ports.size()));
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::uint16_t port = ports[(first + i) % ports.size()];
    if (load(port, now) <= min + packet_time(port)) return port;
  }
  return ports[first];
}

}  // namespace weft
