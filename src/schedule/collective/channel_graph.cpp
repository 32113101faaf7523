// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/collective/channel_graph.hpp"

#include <algorithm>

#include "support/basics/contract.hpp"

namespace weft {

std::shared_ptr<const ChannelGraph> ChannelGraph::uniform(ServerChannels kind, std::uint32_t servers,
                                                          std::uint32_t found, std::uint32_t channels,
                                                          const ChannelSpeeds& speeds) {
  std::shared_ptr<ChannelGraph> graph(new ChannelGraph);
  graph->servers_ = servers;
  graph->per_server_ = static_cast<std::uint32_t>(kind.accelerators.size());
  graph->size_ = servers * graph->per_server_;
  graph->found_ = found;
  graph->channels_ = channels;
  graph->speeds_ = speeds;
  graph->kinds_ = {std::move(kind)};
  return graph;
}

std::shared_ptr<const ChannelGraph> ChannelGraph::listed(std::vector<ServerChannels> kinds,
                                                         const std::vector<Server>& all, std::uint32_t found,
                                                         std::uint32_t channels, const ChannelSpeeds& speeds) {
  std::shared_ptr<ChannelGraph> graph(new ChannelGraph);
  graph->servers_ = static_cast<std::uint32_t>(all.size());
  graph->found_ = found;
  graph->channels_ = channels;
  graph->speeds_ = speeds;
  graph->kinds_ = std::move(kinds);
  graph->begin_ = {0};
  for (const Server& server : all) {
    graph->kind_of_server_.push_back(server.kind);
    graph->members_.insert(graph->members_.end(), server.members.begin(), server.members.end());
    graph->begin_.push_back(static_cast<std::uint32_t>(graph->members_.size()));
  }
  graph->size_ = graph->begin_.back();
  graph->server_of_.resize(graph->size_);
  graph->place_of_.resize(graph->size_);
  bool in_order = true;
  for (std::uint32_t server = 0; server < graph->servers_; ++server) {
    const std::uint32_t first = graph->begin_[server];
    for (std::uint32_t at = first; at < graph->begin_[server + 1]; ++at) {
      const std::uint32_t member = graph->members_[at];
      WEFT_EXPECT(member < graph->size_, "member {} of {}", member, graph->size_);
      graph->server_of_[member] = server;
      graph->place_of_[member] = at - first;
      in_order &= member >= first && member < graph->begin_[server + 1];
    }
    in_order &= all[server].members.size() == all.front().members.size();
  }
  if (in_order) graph->per_server_ = static_cast<std::uint32_t>(all.front().members.size());
  return graph;
}

std::uint32_t ChannelGraph::server_of(std::uint32_t member) const {
  return server_of_.empty() ? member / per_server_ : server_of_[member];
}

std::uint32_t ChannelGraph::place_of(std::uint32_t member) const {
  return place_of_.empty() ? member % per_server_ : place_of_[member];
}

std::uint32_t ChannelGraph::first_position(std::uint32_t server) const {
  return begin_.empty() ? server * per_server_ : begin_[server];
}

std::uint32_t ChannelGraph::member_at(std::uint32_t server, std::uint32_t place) const {
  const std::uint32_t at = first_position(server) + place;
  return members_.empty() ? at : members_[at];
}

const ServerChannels::Channel& ChannelGraph::ring_in(std::uint32_t server, std::uint32_t channel) const {
  const ServerChannels& kind = kind_of(server);
  std::uint32_t number = channel % found_;
  // NCCL src/graph/connect.cc, connectRings: alternating rings.
  if (kind.swaps_pairs && found_ % 2 == 0 && server % 2 == 1) number ^= 1U;
  // ROCm/rccl src/graph/rome_models.cc, parseRome4P2H.
  if (servers_ % 2 == 1 && servers_ > 1 && !kind.last.empty() && server + 2 >= servers_)
    return (server + 1 == servers_ ? kind.last : kind.last_but_one)[number];
  if (server % 2 == 1 && !kind.backward_rings.empty()) return kind.backward_rings[number];
  return kind.rings[number];
}

const ServerChannels::Channel& ChannelGraph::tree_in(std::uint32_t server, std::uint32_t channel) const {
  return kind_of(server).trees[channel % found_];
}

std::uint32_t ChannelGraph::ring_position(std::uint32_t channel, std::uint32_t member) const {
  const std::uint32_t server = server_of(member);
  const auto& places = ring_in(server, channel).places;
  const auto found = std::find(places.begin(), places.end(), place_of(member));
  return first_position(server) + static_cast<std::uint32_t>(found - places.begin());
}

std::uint32_t ChannelGraph::ring_member(std::uint32_t channel, std::uint32_t position) const {
  std::uint32_t server = 0;
  if (begin_.empty()) {
    server = position / per_server_;
  } else {
    server = static_cast<std::uint32_t>(std::upper_bound(begin_.begin(), begin_.end(), position) - begin_.begin()) - 1;
  }
  return member_at(server, ring_in(server, channel).places[position - first_position(server)]);
}

}  // namespace weft
