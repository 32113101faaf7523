// SPDX-License-Identifier: GPL-2.0-only
// Pictures of NCCL's channels.
#pragma once

#include <string>

#include "schedule/collective/channel_graph.hpp"

namespace weft {

/// The content of an SVG or PNG file, by the ending of `path`: a panel for each ring and tree that was found, with the
/// first servers (at most three) side by side, their accelerators on a circle and their NICs below. The first
/// accelerator of a channel is larger; blue lines lead from it through the others to the last one, orange ones to and
/// from NICs and between these.
std::string draw_channel_graph(const ChannelGraph& graph, const std::string& path);

}  // namespace weft
