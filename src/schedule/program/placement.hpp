// SPDX-License-Identifier: GPL-2.0-only
// Which host each rank runs on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/program/aggregation.hpp"
#include "support/documents/spec.hpp"

namespace weft {

/// Where the accelerators of servers are: GPU g of server s is host s * server_stride + g * gpu_stride. Without servers
/// all is 0.
struct ServerGrid {
  std::uint32_t servers = 0;
  std::uint32_t gpus = 0;  ///< of each server, which are its rails
  std::uint32_t server_stride = 0;
  std::uint32_t gpu_stride = 0;

  std::uint32_t host(std::uint32_t server, std::uint32_t gpu) const {
    return server * server_stride + gpu * gpu_stride;
  }
  std::uint32_t server_of(NodeId host) const { return host.value() / server_stride % servers; }
};

/// Hosts of ranks 0, 1, ...: a sequence of pieces, each given by a formula or a list, so that memory does not grow with
/// the ranks unless they are listed. Several ranks may share a host.
class Placement {
 public:
  Placement() = default;  ///< of no rank

  /// Rank r on host first + r * stride.
  static Placement regular(std::uint32_t ranks, std::uint32_t first = 0, std::uint32_t stride = 1);
  /// Consecutive ranks on the same rail of `servers` consecutive servers from `first_server` on; then the next rail.
  static Placement by_rail(std::uint32_t ranks, const ServerGrid& grid, std::uint32_t first_server,
                           std::uint32_t servers);
  static Placement listed(std::vector<std::uint32_t> hosts);
  /// `ranks` of the hosts in `pool`, in an order that is uniform among all. A function of the seed, the pool and
  /// `ranks`. Requires ranks <= pool size.
  static Placement random(std::uint32_t ranks, std::vector<std::uint32_t> pool, std::uint64_t seed);
  /// Whole servers of `pool` in an order that is uniform among all, consecutive ranks on the accelerators of each, as a
  /// scheduler leaves them that gives out whole servers of a fragmented machine. Requires that the ranks fit.
  static Placement random_servers(std::uint32_t ranks, const ServerGrid& grid, std::vector<std::uint32_t> pool,
                                  std::uint64_t seed);

  /// The ranks of `other` follow.
  void append(const Placement& other);

  std::uint32_t ranks() const { return pieces_.empty() ? 0 : pieces_.back().end; }
  /// Requires rank < ranks(), or that of an aggregator (rank_of()): it is on the host of its unit.
  NodeId host(std::uint32_t rank) const;
  /// Switches that reduce; null: none does.
  const ReductionUnits* units() const { return units_.get(); }
  void set_units(std::shared_ptr<const ReductionUnits> units) { units_ = std::move(units); }

 private:
  struct Piece {
    std::uint32_t end = 0;    // behind its last rank
    std::uint32_t begin = 0;  // its first rank
    std::uint32_t first = 0;  // i-th rank: first + i % period * stride + i / period * step
    std::uint32_t stride = 1;
    std::uint32_t period = 1;
    std::uint32_t step = 0;
    std::vector<std::uint32_t> hosts;  // or this list
  };
  std::vector<Piece> pieces_;
  std::shared_ptr<const ReductionUnits> units_;
};

/// What a placement is read for.
struct PlacementRequest {
  std::uint32_t ranks = 0;
  std::uint32_t hosts = 0;  ///< of the machine
  ServerGrid servers;
  std::uint64_t seed = 1;                   ///< of a random one that has none of its own
  std::uint32_t first = 0;                  ///< host of the first rank of one that is absent or just `packed`
  std::vector<std::uint32_t> storage = {};  ///< hosts that are storage, ascending
  std::uint32_t storage_ranks = 0;          ///< of the ranks, the last ones, which belong on them
};

/// The value of a key `placement` (docs/reference/jobs.md), or ranks on consecutive hosts if it is absent. Errors then
/// name `where`. Unless hosts are given by their numbers, ranks stay off storage hosts, and storage ranks go there, the
/// first to the first; pieces and lists place all ranks. Throws InputError if a rank is on no host of the machine, or
/// two are on one.
Placement read_placement(const std::optional<Spec>& spec, const Spec& where, const PlacementRequest& request);

}  // namespace weft
