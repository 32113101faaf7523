// SPDX-License-Identifier: GPL-2.0-only
// Who talks to whom on each channel of a communicator whose members sit in servers: orders of rings, chains of trees,
// networks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "units/time.hpp"

namespace weft {

/// What the channels of all servers of one kind look like inside. Places are the members of a server in the order of
/// their accelerators.
struct ServerChannels {
  struct Channel {
    std::vector<std::uint32_t> places;  ///< in the order of the ring, or of the tree's chain
    std::uint32_t nic_in = 0;           ///< of the server, if there are several servers
    std::uint32_t nic_out = 0;
  };
  std::vector<std::uint32_t> accelerators;  ///< [places] their numbers in the server
  std::vector<Channel> rings;
  std::vector<Channel> backward_rings;  ///< of every second server, so that messages stay with a NIC's number; or empty
  std::vector<Channel> trees;
  std::vector<std::uint32_t> heads;  ///< places that reduce through the switch (NVLink SHARP), each once
  /// In every second server the rings of each pair change places, so that each stays with its NIC.
  bool swaps_pairs = false;
  /// Instead of `rings` in the last server but one and in the last one, with backward_rings and an odd number of
  /// servers; or empty.
  std::vector<Channel> last_but_one;
  std::vector<Channel> last;
  /// Which place of the chain the children of a server hang on, the parent always being that of place 0.
  bool first_child_at_second_place = true;
  bool second_child_at_second_place = false;
};

/// What the search found, for those who choose between algorithms: speeds are model values in GB/s.
struct ChannelSpeeds {
  enum class Generation : std::uint8_t { volta, ampere, hopper, blackwell } generation = Generation::hopper;
  double ring_intra = 0;
  double ring_inter = 0;
  double tree_intra = 0;
  double tree_inter = 0;
  double nvls_intra = 0;
  double nvls_inter = 0;
  std::uint32_t nvls_heads = 0;
  bool nvlink = true;           ///< inside servers, else PCIe
  bool tree_is_simple = false;  ///< all links of a server at one GPU
  bool same_rings = false;
  double rings_on_links = 1;  ///< of the rings, those that an accelerator sends on over its links and not to its NIC
  double nic = 0;             ///< of one NIC
  std::uint32_t peer_channels = 1;        ///< that sends and receives to a peer may use
  std::uint32_t early_peer_channels = 1;  ///< the same up to 2.28
  enum class Cpu : std::uint8_t { intel, amd, arm } cpu = Cpu::intel;
  std::string kernel;     ///< how fast the accelerators run collectives, by name; empty: not known
  std::string transport;  ///< how fast messages get from them to the network, by name; empty: not known
  std::string tuner;      ///< numbers by which algorithms are chosen, by name; empty: NCCL's
  /// What a plugin sets instead of NCCL, in bytes; 0: NCCL's own.
  struct Settings {
    double net_latency_us = 0;
    std::int64_t buffer = 0;  ///< NCCL_BUFFSIZE
    std::int64_t p2p_chunk = 0;
    std::int64_t nvls_chunk = 0;
    std::int64_t nvls_tree_chunk = 0;
  } settings;
  bool gpudirect = true;          ///< NICs read and write their memory
  std::optional<Time> host_read;  ///< time of their reads of the host's memory; none: that of the transport
  bool nics_behind_cpu = false;
};

/// The members of a communicator by servers, with the channels of each.
class ChannelGraph {
 public:
  /// Servers in the order of their first members. Uniform ones (all of one kind, members numbered server by server and
  /// place by place) take no memory per member.
  struct Server {
    std::uint32_t kind = 0;
    std::vector<std::uint32_t> members;  ///< [places] index in the communicator
  };
  static std::shared_ptr<const ChannelGraph> uniform(ServerChannels kind, std::uint32_t servers, std::uint32_t found,
                                                     std::uint32_t channels, const ChannelSpeeds& speeds);
  static std::shared_ptr<const ChannelGraph> listed(std::vector<ServerChannels> kinds, const std::vector<Server>& all,
                                                    std::uint32_t found, std::uint32_t channels,
                                                    const ChannelSpeeds& speeds);

  std::uint32_t size() const { return size_; }
  std::uint32_t servers() const { return servers_; }
  /// Members of each server if all have as many and they are numbered one after another, else 0.
  std::uint32_t per_server() const { return per_server_; }
  /// Different channels that the search has found; channel c is like c % found().
  std::uint32_t found() const { return found_; }
  /// Channels that a call has at most.
  std::uint32_t channels() const { return channels_; }
  const ChannelSpeeds& speeds() const { return speeds_; }

  std::uint32_t server_of(std::uint32_t member) const;
  std::uint32_t place_of(std::uint32_t member) const;
  std::uint32_t member_at(std::uint32_t server, std::uint32_t place) const;
  const ServerChannels& kind_of(std::uint32_t server) const { return kinds_[kind_number(server)]; }

  /// Of a server on a channel, with the exchange within pairs.
  const ServerChannels::Channel& ring_in(std::uint32_t server, std::uint32_t channel) const;
  const ServerChannels::Channel& tree_in(std::uint32_t server, std::uint32_t channel) const;
  /// A member's position in the ring of a channel, and back.
  std::uint32_t ring_position(std::uint32_t channel, std::uint32_t member) const;
  std::uint32_t ring_member(std::uint32_t channel, std::uint32_t position) const;

 private:
  ChannelGraph() = default;
  std::uint32_t kind_number(std::uint32_t server) const {
    return kind_of_server_.empty() ? 0 : kind_of_server_[server];
  }
  /// Members of the servers before.
  std::uint32_t first_position(std::uint32_t server) const;

  std::uint32_t size_ = 0;
  std::uint32_t servers_ = 0;
  std::uint32_t per_server_ = 0;
  std::uint32_t found_ = 1;
  std::uint32_t channels_ = 1;
  ChannelSpeeds speeds_;
  std::vector<ServerChannels> kinds_;
  // Listed ones only:
  std::vector<std::uint32_t> kind_of_server_;
  std::vector<std::uint32_t> begin_;      // [servers + 1] in members_
  std::vector<std::uint32_t> members_;    // server by server, place by place
  std::vector<std::uint32_t> server_of_;  // [members]
  std::vector<std::uint32_t> place_of_;   // [members]
};

}  // namespace weft
