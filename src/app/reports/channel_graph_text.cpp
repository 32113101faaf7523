// SPDX-License-Identifier: GPL-2.0-only
#include "app/reports/channel_graph_text.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "graph/shapes/reduction_shape.hpp"
#include "graph/topology/topology_builder.hpp"
#include "nccl/machine_channels.hpp"
#include "support/basics/error.hpp"

namespace weft {
namespace {

/// The servers that show all there is: the first two of a uniform machine, else all.
std::uint32_t servers_to_show(const ChannelGraph& graph) {
  return graph.per_server() != 0 ? std::min(2U, graph.servers()) : graph.servers();
}

std::vector<std::uint32_t> accelerators_of(const ServerChannels& server, const ServerChannels::Channel& channel) {
  std::vector<std::uint32_t> result;
  for (const std::uint32_t place : channel.places) result.push_back(server.accelerators[place]);
  return result;
}

/// Calls visit(channel, server, the channel's part in this server).
template <class Visit>
void for_each_channel(const ChannelGraph& graph, bool rings, Visit visit) {
  for (std::uint32_t channel = 0; channel < graph.found(); ++channel)
    for (std::uint32_t server = 0; server < servers_to_show(graph); ++server)
      visit(channel, server, rings ? graph.ring_in(server, channel) : graph.tree_in(server, channel));
}

}  // namespace

MachineOfChannels channels_of_machine(const std::string& path, std::uint32_t ranks) {
  const Spec spec = Spec::load(path);
  const bool experiment = spec.is_map() && spec.has("topology");
  const Topology topology = build_topology(experiment ? spec.at("topology") : spec);
  const auto servers = std::dynamic_pointer_cast<const ServerShape>(machine_of(topology).shape);
  if (!servers)
    throw InputError(SourceLine{path, 0},
                     "this machine has no servers; give its topology `server` (docs/reference/topologies.md)");
  if (ranks > servers->hosts())
    throw InputError(SourceLine{path, 0},
                     fmt::format("{} ranks, but the machine has {} accelerators", ranks, servers->hosts()));
  std::vector<std::uint32_t> hosts(ranks == 0 ? servers->hosts() : ranks);
  std::iota(hosts.begin(), hosts.end(), 0U);
  MachineChannels channels(servers);
  const auto graph = channels.graph(hosts);
  if (!graph) throw InputError(SourceLine{path, 0}, "its servers have no NICs over which they could reach each other");
  return {graph, channels.first_server_xml(hosts)};
}

std::string channel_graph_text(const ChannelGraph& graph) {
  const ChannelSpeeds& speeds = graph.speeds();
  const bool several = graph.servers() > 1;
  std::string text = fmt::format(
      "{} accelerators on {} server{}: {} rings and trees found, {} channels\n"
      "a ring has {:g} GB/s inside{}, a tree {:g}{}; {} heads of NVLink SHARP\n",
      graph.size(), graph.servers(), several ? "s" : "", graph.found(), graph.channels(), speeds.ring_intra,
      several ? fmt::format(" and {:g} between servers", speeds.ring_inter) : "", speeds.tree_intra,
      several ? fmt::format(" and {:g}", speeds.tree_inter) : "", speeds.nvls_heads);
  for (const bool rings : {true, false}) {
    for_each_channel(graph, rings, [&](std::uint32_t channel, std::uint32_t server, const auto& one) {
      text += fmt::format("{} {:>2}, server {}: ", rings ? "ring" : "tree", channel, server);
      const auto gpus = accelerators_of(graph.kind_of(server), one);
      text += several ? fmt::format("NIC {} -> {} -> NIC {}\n", one.nic_in, fmt::join(gpus, " "), one.nic_out)
                      : fmt::format("{}\n", fmt::join(gpus, " "));
    });
  }
  if (graph.channels() > graph.found())
    text += fmt::format("channels {} to {} are as these again\n", graph.found(), graph.channels() - 1);
  return text;
}

std::string channel_graph_json(const ChannelGraph& graph) {
  nlohmann::ordered_json json = {{"accelerators", graph.size()},
                                 {"servers", graph.servers()},
                                 {"found", graph.found()},
                                 {"channels", graph.channels()}};
  for (const bool rings : {true, false}) {
    auto& list = json[rings ? "rings" : "trees"] = nlohmann::ordered_json::array();
    for_each_channel(graph, rings, [&](std::uint32_t channel, std::uint32_t server, const auto& one) {
      nlohmann::ordered_json entry = {{"channel", channel}, {"server", server}};
      if (graph.servers() > 1) entry["nic_in"] = one.nic_in;
      entry["accelerators"] = accelerators_of(graph.kind_of(server), one);
      if (graph.servers() > 1) entry["nic_out"] = one.nic_out;
      list.push_back(std::move(entry));
    });
  }
  return json.dump(2);
}

}  // namespace weft
