// SPDX-License-Identifier: GPL-2.0-only
// Lossless links that wait for each other in a cycle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/machine/cluster_graph.hpp"

namespace weft {

/// One class of one direction of a link, as the buffer at whose end packets wait.
struct LinkLane {
  std::uint32_t directed_link = 0;
  std::uint32_t lane = 0;
  friend auto operator<=>(const LinkLane&, const LinkLane&) = default;
};

/// Packets that came through `from` wait to leave through `to`, which is stopped.
struct WaitEdge {
  LinkLane from;
  LinkLane to;
  friend auto operator<=>(const WaitEdge&, const WaitEdge&) = default;
};

/// A shortest cycle of waiting links, beginning with its smallest; empty if there is none. The same for any order of
/// the edges. A cycle of stopped buffers never dissolves: Dally and Seitz, "Deadlock-free message routing in
/// multiprocessor interconnection networks", IEEE ToC C-36(5), 1987, doi:10.1109/TC.1987.1676939.
std::vector<LinkLane> find_waiting_cycle(std::vector<WaitEdge> edges);

/// "switch0 -> switch1 -> switch2 -> switch0"
std::string describe_cycle(const std::vector<LinkLane>& cycle, const ClusterGraph& graph);

}  // namespace weft
