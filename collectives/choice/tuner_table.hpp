// SPDX-License-Identifier: GPL-2.0-only
// Numbers of a library that chooses by NCCL's formulas with values of its own: collectives/tuners/*.yaml explains each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedule/collective/collective.hpp"

namespace weft {

struct TunerTable {
  using ByProtocol = std::array<double, 3>;  ///< LL, LL128, Simple
  struct Algorithm {
    ByProtocol link_us = {};  ///< of a step inside a server
    ByProtocol network_us = {};
    ByProtocol share_of_two = {};  ///< of the bus, over two servers
    ByProtocol share_of_more = {};
    std::array<std::vector<double>, 3> correction;  ///< [protocol][log2(bytes / 64)], the last one of all larger sizes
  };
  /// Of a kind of collective. Bytes are of a rank's block where results are blocks.
  struct Protocols {
    std::int64_t ll_up_to = 0;
    std::int64_t ll128_from = 0;  ///< more than these
    std::int64_t ll128_up_to = 0;
    double more_servers = 1;         ///< times ll128_up_to over more than two servers
    std::optional<std::int64_t> ll;  ///< bytes of a thread and rank from which on there are more channels
    std::optional<std::int64_t> ll128;
  };
  struct Chunks {
    std::int64_t levels = 1;
    std::int64_t down_to = 1;
  };
  std::uint32_t least_servers = 1;
  double bus_gbps = 0;
  std::int64_t threads = 512;
  ByProtocol base_us = {};
  Algorithm tree;
  Algorithm ring;
  Protocols all_reduce;
  Protocols all_gather;
  Protocols reduce_scatter;
  std::vector<Chunks> tree_chunks;
  std::int64_t ll_step = 1;  ///< data of a step of a channel's buffer
  std::int64_t ll128_step = 1;
  std::int64_t ll128_grain = 1;  ///< of which chunks have a whole number

  /// Null: NCCL's formulas choose for collectives of this kind.
  const Protocols* protocols_of(CollectiveKind kind) const;
  Protocol protocol(CollectiveKind kind, std::int64_t bytes, std::uint32_t ranks, std::uint32_t servers) const;
  /// Of a tree with Simple.
  std::int64_t tree_chunk(std::int64_t bytes, std::uint32_t channels, std::uint32_t ranks_per_server,
                          std::uint32_t servers, std::int64_t largest) const;
  /// 0: NCCL's.
  std::int64_t chunk(bool tree, Protocol protocol, std::int64_t bytes, std::uint32_t channels,
                     std::uint32_t ranks_per_server, std::uint32_t servers) const;
};

/// Regions of bytes and ranks, each with an algorithm and a protocol: a plugin's choice. Outside of them NCCL's own
/// model chooses.
struct TunerRegions {
  struct Vertex {
    double bytes = 0;  ///< log2
    double ranks = 0;
  };
  struct Region {
    std::string algorithm;
    Protocol protocol = Protocol::simple;
    std::vector<Vertex> vertices;  ///< of a polygon, which its edges belong to

    bool contains(Vertex point) const;
  };
  /// For communicators with so many accelerators of each server.
  struct OfServers {
    std::uint32_t ranks_per_server = 1;
    std::map<CollectiveKind, std::vector<Region>> of_kind;
  };
  std::uint32_t least_servers = 1;  ///< for which it chooses
  std::vector<OfServers> of_servers;

  /// The first that contains a call and is `possible`; null: none.
  const Region* region(CollectiveKind kind, std::int64_t bytes, std::uint32_t ranks, std::uint32_t servers,
                       const std::function<bool(const Region&)>& possible) const;
};

/// The file with that name in collectives/tuners, read once for a command. Throws InputError.
const TunerTable& tuner_table(const std::string& name);
/// Null: there is no such name, or the file is a table.
const TunerRegions* tuner_regions(const std::string& name);

}  // namespace weft
