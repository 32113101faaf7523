// SPDX-License-Identifier: GPL-2.0-only
// The channels of communicators on a machine of servers: NCCL's search in each kind of server, and how servers are
// joined.
//
// NCCL src/graph/connect.cc (ncclTopoPreset, ncclTopoPostset), src/init.cc (initTransportsRank), v2.30.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/shapes/server_shape.hpp"
#include "nccl/server_graphs.hpp"
#include "schedule/collective/channel_graph.hpp"

namespace weft {

/// Over how many channels NCCL spreads sends to one peer (src/graph/paths.cc, ncclTopoGetNchannels), before it looks at
/// the number of ranks: two for each NVLink or for PCIe inside a server; over the network one for each NIC of a GPU,
/// and since 2.29 one for each 14 GB/s of these.
struct PeerChannels {
  std::uint32_t inside = max_nccl_channels;
  std::uint32_t nics = 1;
  std::uint32_t by_rate = 1;
};

/// Answers for communicators of one machine, and remembers what it has searched.
class MachineChannels {
 public:
  explicit MachineChannels(std::shared_ptr<const ServerShape> shape);
  /// `nic_rate`: of a port of a NIC, instead of that of the network's links to it.
  MachineChannels(std::shared_ptr<const ServerShape> shape, Bandwidth nic_rate);

  /// The graph of a communicator, by the hosts of its members in order. Null if it is none that NCCL could do: several
  /// members on one accelerator, or hosts that are none of the servers'.
  std::shared_ptr<const ChannelGraph> graph(const std::vector<std::uint32_t>& hosts);
  /// nccl_graphs_xml() of the server of the first of these hosts, as a communicator of all of them sees it.
  std::string first_server_xml(const std::vector<std::uint32_t>& hosts) const;

 private:
  struct Kind {
    ServerGraphs graphs;
    ServerChannels channels;
    double rings_on_links = 1;
    PeerChannels peer;
  };
  /// Those of a communicator, and of which kind each is.
  struct Servers {
    std::vector<ChannelGraph::Server> servers;
    std::vector<const Kind*> kinds;
  };
  std::optional<Servers> servers_of(const std::vector<std::uint32_t>& hosts);
  /// What servers of all of these kinds can do.
  ChannelSpeeds common_speeds(const std::vector<const Kind*>& kinds) const;
  static std::uint32_t common_rings(const std::vector<const Kind*>& kinds);
  /// Channels of sends and receives between two members; the other: up to 2.28.
  static std::uint32_t peer_channels(const Servers& found, std::size_t members, std::uint32_t channels);
  static std::uint32_t early_peer_channels(const Servers& found, std::size_t members, std::uint32_t channels);
  ServerGraphs searched_or_given(const NcclSystem& system) const;
  const Kind& kind(const std::vector<std::uint32_t>& accelerators, bool several_servers);

  std::shared_ptr<const ServerShape> shape_;
  Bandwidth nic_rate_;
  std::map<std::pair<bool, std::vector<std::uint32_t>>, Kind> kinds_;
};

}  // namespace weft
