// SPDX-License-Identifier: GPL-2.0-only
// A machine's channels for people and programs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "schedule/collective/channel_graph.hpp"

namespace weft {

/// The channels of a communicator, and its first server as NCCL's graph file (NCCL_GRAPH_DUMP_FILE).
struct MachineOfChannels {
  std::shared_ptr<const ChannelGraph> graph;
  std::string xml;
};
/// Of the first `ranks` accelerators (0: of all) of the machine in a file: a `topology:` map, or an experiment. Throws
/// InputError if it has no servers of several accelerators.
MachineOfChannels channels_of_machine(const std::string& path, std::uint32_t ranks);

/// A line per channel and kind of server: NIC, accelerators in order, NIC. Rings, then trees.
std::string channel_graph_text(const ChannelGraph& graph);
/// The same as JSON: {servers, channels, found, rings: [{channel, server, nic_in, accelerators, nic_out}], trees:
/// [...]}.
std::string channel_graph_json(const ChannelGraph& graph);

}  // namespace weft
