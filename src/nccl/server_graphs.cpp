// SPDX-License-Identifier: GPL-2.0-only
#include "nccl/server_graphs.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "support/basics/error.hpp"

namespace weft {
namespace {

using Kind = NcclNode::Kind;

/// A graph's names and numbers in the file.
PathType path_type_of(const std::string& name) {
  for (auto type = PathType::local; type < PathType::none; type = static_cast<PathType>(static_cast<int>(type) + 1))
    if (to_text(type) == name) return type;
  return PathType::none;
}

/// Number in the system of a node of that kind with the user's number.
std::uint32_t number_of(const NcclSystem& system, Kind kind, std::uint32_t label) {
  for (std::uint32_t number = 0; number < system.count(kind); ++number)
    if (system.label(kind, number) == label) return number;
  throw InputError(SourceLine{},
                   fmt::format("nccl_graphs: a channel visits {} {}, which the communicator does not have; "
                               "the file is for all accelerators of a server",
                               kind == Kind::gpu ? "GPU" : "NIC", label));
}

NcclSearchGraph graph_of(const NcclSystem& system, const ServerDesign::GivenGraph& given) {
  NcclSearchGraph graph;
  graph.pattern = static_cast<GraphPattern>(given.pattern);
  graph.intra = given.intra;
  graph.inter = given.inter;
  graph.intra_type = path_type_of(given.intra_type);
  graph.inter_type = path_type_of(given.inter_type);
  graph.cross_nic = given.cross_nic;
  graph.same_channels = given.same_channels;
  const bool nets = system.several_servers();
  for (const auto& channel : given.channels) {
    NcclSearchChannel one;
    for (const std::uint32_t gpu : channel.gpus) one.gpus.push_back(number_of(system, Kind::gpu, gpu));
    one.net_in = nets ? number_of(system, Kind::net, channel.net_in) : 0;
    one.net_out = nets ? number_of(system, Kind::net, channel.net_out) : 0;
    if (graph.pattern != GraphPattern::nvls && one.gpus.size() != system.count(Kind::gpu))
      throw InputError(SourceLine{},
                       fmt::format("nccl_graphs: a channel visits {} accelerators, and the communicator has "
                                   "{} in the server",
                                   one.gpus.size(), system.count(Kind::gpu)));
    graph.channels.push_back(std::move(one));
  }
  return graph;
}

void write_graph(std::string& xml, const NcclSystem& system, int id, const NcclSearchGraph& graph) {
  xml += fmt::format(
      "  <graph id=\"{}\" pattern=\"{}\" crossnic=\"{}\" nchannels=\"{}\" speedintra=\"{:g}\" speedinter=\"{:g}\" "
      "latencyinter=\"0\" typeintra=\"{}\" typeinter=\"{}\" samechannels=\"{}\">\n",
      id, static_cast<int>(graph.pattern), graph.cross_nic, graph.channels.size(), graph.intra, graph.inter,
      to_text(graph.intra_type), to_text(graph.inter_type), graph.same_channels ? 1 : 0);
  const auto net = [&](std::uint32_t number) {
    if (system.several_servers()) xml += fmt::format("      <net dev=\"{}\"/>\n", system.label(Kind::net, number));
  };
  for (const NcclSearchChannel& channel : graph.channels) {
    xml += "    <channel>\n";
    net(channel.net_in);
    for (const std::uint32_t gpu : channel.gpus)
      xml += fmt::format("      <gpu dev=\"{}\"/>\n", system.label(Kind::gpu, gpu));
    net(channel.net_out);
    xml += "    </channel>\n";
  }
  xml += "  </graph>\n";
}

}  // namespace

// src/init.cc: the tree has as many channels as the ring, NVLink SHARP a head for each GPU at most.
ServerGraphs search_server(const NcclSystem& system, const NcclSearchOptions& options) {
  ServerGraphs graphs;
  graphs.ring = search_nccl_graph(system, GraphPattern::ring, 1, max_nccl_channels / 2, options);
  const auto count = static_cast<std::uint32_t>(graphs.ring.channels.size());
  graphs.tree = search_nccl_graph(system, GraphPattern::balanced_tree, count, count, options);
  graphs.nvls = search_nccl_graph(system, GraphPattern::nvls, 1, max_nccl_channels, options);
  return graphs;
}

ServerGraphs given_server(const NcclSystem& system, const std::vector<ServerDesign::GivenGraph>& given) {
  ServerGraphs graphs = search_server(system);
  for (const auto& one : given) {
    if (one.channels.empty()) continue;
    if (one.id == 0) graphs.ring = graph_of(system, one);
    if (one.id == 1) graphs.tree = graph_of(system, one);
    if (one.id == 3) graphs.nvls = graph_of(system, one);
  }
  return graphs;
}

// RCCL, github.com/ROCm/rccl, src/graph/rome_models.cc: parseRome4P2H fills graphs of any pattern from the table, so
// that trees are chains along the rings. A channel's speed is its share of a link, and of a NIC.
std::optional<ServerGraphs> tabled_server(const NcclSystem& system, const ServerDesign& design) {
  const bool several = system.several_servers();
  const ServerDesign::RingTable& table = several ? design.rings_of_several_servers : design.rings_of_one_server;
  if (table.orders.empty() || system.count(Kind::gpu) != design.gpus) return std::nullopt;
  NcclSearchGraph ring;
  ring.same_channels = false;
  ring.cross_nic = 1;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> rings_on;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> rings_from;  // NIC, its GPU
  for (const auto& order : table.orders) {
    NcclSearchChannel channel;
    for (const std::uint32_t gpu : order) channel.gpus.push_back(number_of(system, Kind::gpu, gpu));
    if (several) {
      channel.net_in = number_of(system, Kind::net, design.nic_of_gpu[order.front()]);
      channel.net_out = number_of(system, Kind::net, design.nic_of_gpu[order.back()]);
      ++rings_from[{channel.net_in, channel.gpus.front()}];
    }
    for (std::size_t i = 0; i < channel.gpus.size() - (several ? 1 : 0); ++i)
      ++rings_on[{channel.gpus[i], channel.gpus[(i + 1) % channel.gpus.size()]}];
    ring.channels.push_back(std::move(channel));
  }
  // The whole table again, so that the first channels are on different links.
  const std::size_t count = ring.channels.size();
  for (std::size_t i = count; i < count * table.repeat; ++i) ring.channels.push_back(ring.channels[i - count]);
  ring.intra = std::numeric_limits<double>::max();
  for (const auto& [pair, rings] : rings_on) {
    const NcclPath& path = system.path(Kind::gpu, pair.first, Kind::gpu, pair.second);
    ring.intra = std::min(ring.intra, path.bandwidth / (rings * table.repeat));
    ring.intra_type = std::max(ring.intra_type, path.type);
  }
  ring.inter = ring.intra;
  for (const auto& [ends, rings] : rings_from) {
    const NcclPath& path = system.path(Kind::net, ends.first, Kind::gpu, ends.second);
    ring.inter = std::min(ring.inter, path.bandwidth / (rings * table.repeat));
    ring.inter_type = std::max(ring.inter_type, path.type);
  }
  ServerGraphs graphs{ring, ring, {}};
  graphs.tree.pattern = GraphPattern::balanced_tree;
  return graphs;
}

std::string nccl_graphs_xml(const NcclSystem& system, const ServerGraphs& graphs) {
  std::string xml = "<graphs version=\"1\">\n";
  write_graph(xml, system, 0, graphs.ring);
  write_graph(xml, system, 1, graphs.tree);
  if (!graphs.nvls.channels.empty()) write_graph(xml, system, 3, graphs.nvls);
  return xml + "</graphs>\n";
}

}  // namespace weft
