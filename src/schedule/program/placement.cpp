// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/program/placement.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "support/basics/random.hpp"

namespace weft {
namespace {

/// Entities of random numbers: ranks have those below 2^40, permutations of traffic those from there on.
constexpr std::uint64_t placement_entity = std::uint64_t{1} << 48;

std::vector<std::uint32_t> consecutive(std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t> hosts(count);
  std::iota(hosts.begin(), hosts.end(), first);
  return hosts;
}

bool is_storage(const PlacementRequest& request, std::uint32_t host) {
  return std::binary_search(request.storage.begin(), request.storage.end(), host);
}

/// Hosts from `first` on that are no storage.
std::vector<std::uint32_t> compute_hosts(const PlacementRequest& request, std::uint32_t first) {
  std::vector<std::uint32_t> hosts = consecutive(first, request.hosts - std::min(first, request.hosts));
  std::erase_if(hosts, [&](std::uint32_t host) { return is_storage(request, host); });
  return hosts;
}

/// The first `count` draws of a shuffle (Fisher, Yates; Knuth, TAOCP vol. 2, 3.4.2, algorithm P).
std::vector<std::uint32_t> drawn(std::uint32_t count, std::vector<std::uint32_t> pool, std::uint64_t seed) {
  for (std::uint32_t i = 0; i < count; ++i)
    std::swap(pool[i], pool[i + random_below(pool.size() - i, seed, placement_entity, i)]);
  pool.resize(count);
  pool.shrink_to_fit();
  return pool;
}

std::uint32_t read_host(const Spec& value, const PlacementRequest& request) {
  const std::int64_t host = value.integer();
  if (host < 0 || host >= request.hosts)
    throw value.error(fmt::format("there is no host {}; this machine has hosts 0 to {}", host, request.hosts - 1));
  return static_cast<std::uint32_t>(host);
}

std::vector<std::uint32_t> read_hosts(const Spec& list, const PlacementRequest& request) {
  std::vector<std::uint32_t> hosts;
  for (const Spec& item : list.items()) hosts.push_back(read_host(item, request));
  return hosts;
}

std::vector<std::uint32_t> servers_without_storage(const PlacementRequest& request, std::uint32_t first,
                                                   std::uint32_t count) {
  std::vector<std::uint32_t> servers = consecutive(first, count);
  std::erase_if(servers, [&](std::uint32_t server) {
    for (std::uint32_t gpu = 0; gpu < request.servers.gpus; ++gpu)
      if (is_storage(request, request.servers.host(server, gpu))) return true;
    return false;
  });
  return servers;
}

/// Of the keys first_server and servers; `usable` has those without storage hosts.
struct ChosenServers {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::vector<std::uint32_t> usable;
};

ChosenServers read_servers(const Spec& spec, const PlacementRequest& request, const std::string& kind) {
  const ServerGrid& grid = request.servers;
  if (grid.gpus == 0)
    throw spec.error(
        fmt::format("'{}' needs a machine of servers, and this one has none; give its topology the key "
                    "'server', such as server: {{design: hgx_h100}} (docs/reference/topologies.md), or "
                    "use 'packed', 'random', a stride or a list of hosts",
                    kind));
  ChosenServers chosen;
  chosen.count = grid.servers;
  if (spec.is_map()) {
    if (const auto value = spec.find("first_server"))
      chosen.first = static_cast<std::uint32_t>(value->integer(0, grid.servers - 1));
    chosen.count = grid.servers - chosen.first;
    if (const auto value = spec.find("servers"))
      chosen.count = static_cast<std::uint32_t>(value->integer(1, chosen.count));
  }
  chosen.usable = servers_without_storage(request, chosen.first, chosen.count);
  const std::size_t room = chosen.usable.size() * grid.gpus;
  if (request.ranks > room)
    throw spec.error(fmt::format("{} ranks on {} servers of {} accelerators; at most {} fit", request.ranks,
                                 chosen.usable.size(), grid.gpus, room));
  return chosen;
}

Placement read_by_rail(const Spec& spec, const PlacementRequest& request) {
  const ServerGrid& grid = request.servers;
  const ChosenServers chosen = read_servers(spec, request, "by_rail");
  const std::vector<std::uint32_t>& usable = chosen.usable;
  if (usable.size() == chosen.count) return Placement::by_rail(request.ranks, grid, chosen.first, chosen.count);
  std::vector<std::uint32_t> hosts;
  for (std::uint32_t rank = 0; rank < request.ranks; ++rank)
    hosts.push_back(grid.host(usable[rank % usable.size()], static_cast<std::uint32_t>(rank / usable.size())));
  return Placement::listed(std::move(hosts));
}

Placement read_random_servers(const Spec& spec, const PlacementRequest& request) {
  ChosenServers chosen = read_servers(spec, request, "random_servers");
  std::uint64_t seed = request.seed;
  if (spec.is_map())
    if (const auto value = spec.find("seed")) seed = value->natural();
  return Placement::random_servers(request.ranks, request.servers, std::move(chosen.usable), seed);
}

Placement read_random(const Spec& spec, const PlacementRequest& request) {
  std::uint64_t seed = request.seed;
  std::vector<std::uint32_t> pool;
  if (spec.is_map()) {
    if (const auto value = spec.find("seed")) seed = value->natural();
    const auto list = spec.find("hosts");
    const auto first = spec.find("first");
    const auto count = spec.find("count");
    if (list && (first || count)) throw list->error("found with 'first' or 'count'; give the hosts in one way");
    const std::uint32_t from = first ? read_host(*first, request) : 0;
    pool = list ? read_hosts(*list, request)
           : first || count
               ? consecutive(from, count ? static_cast<std::uint32_t>(count->integer(1, request.hosts - from))
                                         : request.hosts - from)
               : compute_hosts(request, 0);
  } else {
    pool = compute_hosts(request, 0);
  }
  if (pool.size() < request.ranks)
    throw spec.error(fmt::format("{} ranks, but only {} hosts to choose from", request.ranks, pool.size()));
  return Placement::random(request.ranks, std::move(pool), seed);
}

Placement read_explicit(const Spec& spec, const PlacementRequest& request) {
  const Spec list = spec.at("hosts");
  std::vector<std::uint32_t> hosts = read_hosts(list, request);
  if (hosts.size() != request.ranks)
    throw list.error(fmt::format("found {} hosts; expected one for each of {} ranks{}", hosts.size(), request.ranks,
                                 request.ranks == request.hosts ? "; without the key `ranks` a workload has a rank on "
                                                                  "each host of the machine"
                                                                : ""));
  return Placement::listed(std::move(hosts));
}

Placement require_fit(const Spec& where, const PlacementRequest& request, std::uint32_t first, std::uint32_t stride) {
  const std::uint64_t last = first + (std::uint64_t{request.ranks} - 1) * stride;
  if (request.ranks > 0 && last >= request.hosts)
    throw where.error(fmt::format("rank {} would be on host {}, but this machine has hosts 0 to {}", request.ranks - 1,
                                  last, request.hosts - 1));
  return Placement::regular(request.ranks, first, stride);
}

/// From request.first on, past storage hosts.
Placement consecutive_compute_hosts(const Spec& where, const PlacementRequest& request) {
  const auto next = std::lower_bound(request.storage.begin(), request.storage.end(), request.first);
  if (next == request.storage.end() || *next - request.first >= request.ranks)
    return require_fit(where, request, request.first, 1);
  std::vector<std::uint32_t> hosts = compute_hosts(request, request.first);
  if (hosts.size() < request.ranks)
    throw where.error(fmt::format("{} ranks, but from host {} on this machine has {} hosts that are no storage",
                                  request.ranks, request.first, hosts.size()));
  hosts.resize(request.ranks);
  return Placement::listed(std::move(hosts));
}

Placement read_packed(const Spec& spec, const PlacementRequest& request) {
  const auto first = spec.find("first");
  const auto stride = spec.find("stride");
  if (!first && !stride) {
    PlacementRequest from_zero = request;
    from_zero.first = 0;
    return consecutive_compute_hosts(spec, from_zero);
  }
  return require_fit(spec, request, first ? read_host(*first, request) : 0,
                     stride ? static_cast<std::uint32_t>(stride->integer(1, request.hosts)) : 1);
}

Placement read_map(const Spec& spec, const PlacementRequest& request) {
  const auto kind = spec.find("kind");
  const std::string name = kind ? kind->one_of({"packed", "by_rail", "random", "random_servers", "explicit"})
                           : spec.has("hosts") ? "explicit"
                                               : "packed";
  Placement placement = name == "by_rail"          ? read_by_rail(spec, request)
                        : name == "random"         ? read_random(spec, request)
                        : name == "random_servers" ? read_random_servers(spec, request)
                        : name == "explicit"       ? read_explicit(spec, request)
                                                   : read_packed(spec, request);
  spec.finish();
  return placement;
}

/// Maps for some of the ranks each; the last one takes those that are left.
Placement read_pieces(const Spec& spec, const PlacementRequest& request) {
  Placement placement;
  const auto pieces = spec.items();
  if (pieces.empty()) throw spec.error("no placement; expected at least one");
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!pieces[i].is_map())
      throw pieces[i].error(fmt::format(
          "a list is of pieces, such as {{ranks: 2, first: 8}}, and found '{}'; expected hosts one by one as "
          "placement: {{hosts: [0, 1, ...]}}, a kind alone as placement: packed",
          pieces[i].is_scalar() ? pieces[i].text() : "a list"));
    PlacementRequest part = request;
    const std::uint32_t left = request.ranks - placement.ranks();
    const auto ranks = pieces[i].find("ranks");
    if (!ranks && i + 1 < pieces.size()) throw pieces[i].error("'ranks' is missing: how many ranks this is for");
    part.ranks = ranks ? static_cast<std::uint32_t>(ranks->integer(1, left)) : left;
    if (i + 1 == pieces.size() && part.ranks != left)
      throw ranks->error(
          fmt::format("the pieces place {} ranks; there are {}", placement.ranks() + part.ranks, request.ranks));
    placement.append(read_map(pieces[i], part));
  }
  return placement;
}

Placement read_any(const Spec& spec, const PlacementRequest& request) {
  if (spec.is_sequence()) return read_pieces(spec, request);
  if (spec.is_map()) return read_map(spec, request);
  const std::string name = spec.one_of({"packed", "by_rail", "random", "random_servers"});
  if (name == "by_rail") return read_by_rail(spec, request);
  if (name == "random") return read_random(spec, request);
  if (name == "random_servers") return read_random_servers(spec, request);
  return consecutive_compute_hosts(spec, request);
}

/// Pieces and lists place all ranks, storage ranks among them.
bool places_all(const Spec& spec) {
  if (!spec.is_map()) return spec.is_sequence();
  return spec.has("kind") ? spec.at("kind").text() == "explicit" : spec.has("hosts");
}

Placement read_with_storage(const std::optional<Spec>& spec, const Spec& where, PlacementRequest request) {
  const std::uint32_t targets = request.storage_ranks;
  const Spec& place = spec ? *spec : where;
  if (targets > request.storage.size())
    throw place.error(
        fmt::format("{} storage targets, but the machine has {} storage hosts; use fewer, or give hosts "
                    "to all ranks: placement: {{hosts: [...]}}",
                    targets, request.storage.size()));
  request.ranks -= targets;
  Placement placement = spec ? read_any(*spec, request) : consecutive_compute_hosts(where, request);
  placement.append(Placement::listed({request.storage.begin(), request.storage.begin() + targets}));
  return placement;
}

void refuse_shared_hosts(const Spec& where, const Placement& placement, std::uint32_t hosts) {
  std::vector<bool> taken(hosts);
  for (std::uint32_t rank = 0; rank < placement.ranks(); ++rank) {
    const std::uint32_t host = placement.host(rank).value();
    if (taken[host]) throw where.error(fmt::format("host {} gets two ranks, the second is rank {}", host, rank));
    taken[host] = true;
  }
}

}  // namespace

Placement Placement::regular(std::uint32_t ranks, std::uint32_t first, std::uint32_t stride) {
  Piece piece;
  piece.end = ranks;
  piece.first = first;
  piece.stride = stride;
  piece.period = std::max(1U, ranks);
  Placement placement;
  placement.pieces_.push_back(std::move(piece));
  return placement;
}

Placement Placement::by_rail(std::uint32_t ranks, const ServerGrid& grid, std::uint32_t first_server,
                             std::uint32_t servers) {
  Placement placement = regular(ranks, first_server * grid.server_stride, grid.server_stride);
  placement.pieces_.back().period = servers;
  placement.pieces_.back().step = grid.gpu_stride;
  return placement;
}

Placement Placement::listed(std::vector<std::uint32_t> hosts) {
  Placement placement = regular(static_cast<std::uint32_t>(hosts.size()));
  placement.pieces_.back().hosts = std::move(hosts);
  return placement;
}

Placement Placement::random(std::uint32_t ranks, std::vector<std::uint32_t> pool, std::uint64_t seed) {
  WEFT_EXPECT(ranks <= pool.size(), "{} ranks on {} hosts", ranks, pool.size());
  return listed(drawn(ranks, std::move(pool), seed));
}

Placement Placement::random_servers(std::uint32_t ranks, const ServerGrid& grid, std::vector<std::uint32_t> pool,
                                    std::uint64_t seed) {
  const std::uint32_t needed = (ranks + grid.gpus - 1) / grid.gpus;
  WEFT_EXPECT(needed <= pool.size(), "{} ranks on {} servers", ranks, pool.size());
  const std::vector<std::uint32_t> servers = drawn(needed, std::move(pool), seed);
  std::vector<std::uint32_t> hosts(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    hosts[rank] = grid.host(servers[rank / grid.gpus], rank % grid.gpus);
  return listed(std::move(hosts));
}

void Placement::append(const Placement& other) {
  const std::uint32_t before = ranks();
  for (Piece piece : other.pieces_) {
    piece.begin += before;
    piece.end += before;
    if (piece.begin < piece.end) pieces_.push_back(std::move(piece));
  }
}

NodeId Placement::host(std::uint32_t rank) const {
  if (rank >= ranks() && units_) return NodeId(units_->first_host + (rank - ranks()) / AggregatorSite::max_units);
  const auto piece = pieces_.size() == 1
                         ? pieces_.begin()
                         : std::upper_bound(pieces_.begin(), pieces_.end(), rank,
                                            [](std::uint32_t value, const Piece& one) { return value < one.end; });
  WEFT_EXPECT(piece != pieces_.end() && rank < piece->end, "rank {} of {}", rank, ranks());
  const std::uint32_t i = rank - piece->begin;
  if (!piece->hosts.empty()) return NodeId(piece->hosts[i]);
  return NodeId(piece->first + i % piece->period * piece->stride + i / piece->period * piece->step);
}

Placement read_placement(const std::optional<Spec>& spec, const Spec& where, const PlacementRequest& request) {
  const bool to_storage = request.storage_ranks > 0 && !request.storage.empty() && !(spec && places_all(*spec));
  if (!spec && !to_storage) return consecutive_compute_hosts(where, request);
  Placement placement = to_storage ? read_with_storage(spec, where, request) : read_any(*spec, request);
  if (!spec) return placement;
  refuse_shared_hosts(*spec, placement, request.hosts);
  return placement;
}

}  // namespace weft
