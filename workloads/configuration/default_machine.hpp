// SPDX-License-Identifier: GPL-2.0-only
// The machine for a configuration without one.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace weft {

/// Hosts at one non-blocking switch, 400 Gb/s each, without congestion; H100 devices.
inline std::string experiment_on_default_machine(std::int64_t hosts, const std::string& keys) {
  return fmt::format(
      "topology: {{kind: star, hosts: {}, link_rate: 400 Gb/s, link_delay: 500 ns}}\n"
      "network: {{fidelity: ideal, mtu: 4096 B, header: 62 B, wire_overhead: 20 B, ack: 66 B, switch_latency: 0 ns, "
      "window: 256 KiB}}\n"
      "workload:\n  kind: training\n  device: h100-sxm\n  {}\n",
      hosts, keys);
}

}  // namespace weft
