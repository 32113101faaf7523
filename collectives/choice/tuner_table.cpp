// SPDX-License-Identifier: GPL-2.0-only
#include "collectives/choice/tuner_table.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "collectives/steps/exchange.hpp"
#include "collectives/steps/nccl_sizes.hpp"
#include "support/basics/kept_for_command.hpp"
#include "support/documents/spec.hpp"
#include "support/system/data_directory.hpp"

namespace weft {
namespace {

constexpr std::array<const char*, 3> protocol_names = {"ll", "ll128", "simple"};

/// One value of each protocol.
template <typename Value, typename Read>
std::array<Value, 3> of_protocols(const Spec& map, const Read& read) {
  std::array<Value, 3> result;
  for (std::size_t p = 0; p < 3; ++p) result[p] = read(map.at(protocol_names[p]));
  map.finish();
  return result;
}

TunerTable::ByProtocol times_of(const Spec& map) {
  return of_protocols<double>(map, [](const Spec& value) { return static_cast<double>(value.time().ps()) / 1e6; });
}

TunerTable::ByProtocol shares_of(const Spec& map) {
  return of_protocols<double>(map, [](const Spec& value) { return value.number(1e-6, 10); });
}

std::vector<double> factors_of(const Spec& list) {
  std::vector<double> factors;
  for (const Spec& one : list.items()) factors.push_back(one.number(1e-6, 10));
  if (factors.empty()) throw list.error("found no factor; expected those of 64 B, 128 B and so on");
  return factors;
}

TunerTable::Algorithm algorithm_of(const Spec& map) {
  TunerTable::Algorithm result;
  result.link_us = times_of(map.at("link"));
  result.network_us = times_of(map.at("network"));
  result.share_of_two = shares_of(map.at("share_of_two"));
  result.share_of_more = shares_of(map.at("share_of_more"));
  result.correction = of_protocols<std::vector<double>>(map.at("correction"), factors_of);
  map.finish();
  return result;
}

TunerTable::Protocols protocols_in(const Spec& map) {
  TunerTable::Protocols result;
  result.ll_up_to = map.at("ll_up_to").bytes().count();
  result.ll128_from = map.at("ll128_from").bytes().count();
  result.ll128_up_to = map.at("ll128_up_to").bytes().count();
  if (const auto more = map.find("more_servers")) result.more_servers = more->number(1, 1000);
  if (const auto threshold = map.find("threshold")) {
    result.ll = threshold->at("ll").bytes().count();
    result.ll128 = threshold->at("ll128").bytes().count();
    threshold->finish();
  }
  map.finish();
  return result;
}

std::int64_t positive_bytes(const Spec& value) {
  if (value.bytes() == Bytes(0)) throw value.error("found 0 B; expected a size such as '16 KiB'");
  return value.bytes().count();
}

TunerTable table_of(const Spec& spec) {
  TunerTable table;
  table.least_servers = static_cast<std::uint32_t>(spec.at("least_servers").integer(1, 1 << 20));
  table.bus_gbps = static_cast<double>(spec.at("bus_rate").bandwidth().bps()) / 8e9;
  table.threads = spec.at("threads").integer(1, 1024);
  table.base_us = times_of(spec.at("base_latency"));
  table.tree = algorithm_of(spec.at("tree"));
  table.ring = algorithm_of(spec.at("ring"));
  const Spec protocols = spec.at("protocols");
  table.all_reduce = protocols_in(protocols.at("all_reduce"));
  table.all_gather = protocols_in(protocols.at("all_gather"));
  table.reduce_scatter = protocols_in(protocols.at("reduce_scatter"));
  protocols.finish();
  const Spec steps = spec.at("steps");
  table.ll_step = positive_bytes(steps.at("ll"));
  table.ll128_step = positive_bytes(steps.at("ll128"));
  table.ll128_grain = positive_bytes(steps.at("ll128_grain"));
  steps.finish();
  if (table.ll128_grain > table.ll128_step) throw steps.at("ll128_grain").error("found a grain larger than a step");
  for (const Spec& chunks : spec.at("tree_chunks").items()) {
    table.tree_chunks.push_back({chunks.at("levels").integer(1, 1024), chunks.at("down_to").bytes().count()});
    chunks.finish();
  }
  spec.finish();
  return table;
}

TunerRegions::Region region_of(const Spec& map) {
  TunerRegions::Region region;
  region.algorithm = map.at("algorithm").one_of({"double_binary_tree", "ring", "nvls_tree", "pat"});
  const std::string protocol = map.at("protocol").one_of({"ll", "ll128", "simple"});
  region.protocol = protocol == "ll" ? Protocol::ll : protocol == "ll128" ? Protocol::ll128 : Protocol::simple;
  const Spec vertices = map.at("vertices");
  for (const Spec& vertex : vertices.items()) {
    if (!vertex.is_sequence() || vertex.size() != 2) throw vertex.error("expected [bytes, ranks]");
    const double bytes = static_cast<double>(positive_bytes(vertex[0]));
    region.vertices.push_back({std::log2(bytes), std::log2(vertex[1].number(1, 1 << 30))});
  }
  if (region.vertices.size() < 3) throw vertices.error("a region has at least three vertices");
  map.finish();
  return region;
}

TunerRegions::OfServers regions_of_servers(const Spec& map) {
  TunerRegions::OfServers result;
  result.ranks_per_server = static_cast<std::uint32_t>(map.at("ranks_per_server").integer(1, 1 << 20));
  for (const auto& [key, kind] :
       {std::pair("all_reduce", CollectiveKind::all_reduce), std::pair("all_gather", CollectiveKind::all_gather),
        std::pair("reduce_scatter", CollectiveKind::reduce_scatter)}) {
    const auto list = map.find(key);
    if (!list) continue;
    for (const Spec& one : list->items()) result.of_kind[kind].push_back(region_of(one));
  }
  map.finish();
  return result;
}

std::optional<TunerRegions> regions_of(const Spec& spec) {
  if (!spec.has("regions")) return std::nullopt;
  TunerRegions result;
  result.least_servers = static_cast<std::uint32_t>(spec.at("least_servers").integer(1, 1 << 20));
  spec.find("settings");  // topologies/keys/server.cpp reads them
  for (const Spec& one : spec.at("regions").items()) result.of_servers.push_back(regions_of_servers(one));
  spec.finish();
  return result;
}

bool on_edge(TunerRegions::Vertex p, TunerRegions::Vertex a, TunerRegions::Vertex b) {
  constexpr double near = 1e-10;
  const double length = std::hypot(b.bytes - a.bytes, b.ranks - a.ranks);
  if (std::hypot(p.bytes - a.bytes, p.ranks - a.ranks) < near) return true;
  if (length < near) return false;
  const double along = ((p.bytes - a.bytes) * (b.bytes - a.bytes) + (p.ranks - a.ranks) * (b.ranks - a.ranks)) / length;
  const double away = ((p.bytes - a.bytes) * (b.ranks - a.ranks) - (p.ranks - a.ranks) * (b.bytes - a.bytes)) / length;
  return std::abs(away) < near && along > -near && along < length + near;
}

std::filesystem::path tuner_file(const std::string& name) {
  return data_directory("collectives") / "tuners" / (name + ".yaml");
}

}  // namespace

bool TunerRegions::Region::contains(Vertex point) const {
  bool inside = false;
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    const Vertex a = vertices[i];
    const Vertex b = vertices[(i + 1) % vertices.size()];
    if (on_edge(point, a, b)) return true;
    if ((a.ranks > point.ranks) == (b.ranks > point.ranks)) continue;
    const double crossing = a.bytes + (b.bytes - a.bytes) * (point.ranks - a.ranks) / (b.ranks - a.ranks);
    if (point.bytes < crossing) inside = !inside;
  }
  return inside;
}

const TunerRegions::Region* TunerRegions::region(CollectiveKind kind, std::int64_t bytes, std::uint32_t ranks,
                                                 std::uint32_t servers,
                                                 const std::function<bool(const Region&)>& possible) const {
  if (servers < least_servers || bytes < 1) return nullptr;
  const Vertex point{std::log2(static_cast<double>(bytes)), std::log2(static_cast<double>(ranks))};
  for (const OfServers& one : of_servers) {
    if (std::uint64_t{one.ranks_per_server} * servers != ranks) continue;
    const auto regions = one.of_kind.find(kind);
    if (regions == one.of_kind.end()) return nullptr;
    for (const Region& region : regions->second)
      if (possible(region) && region.contains(point)) return &region;
  }
  return nullptr;
}

const TunerTable::Protocols* TunerTable::protocols_of(CollectiveKind kind) const {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return &all_reduce;
    case CollectiveKind::all_gather:
      return &all_gather;
    case CollectiveKind::reduce_scatter:
      return &reduce_scatter;
    default:
      return nullptr;
  }
}

Protocol TunerTable::protocol(CollectiveKind kind, std::int64_t bytes, std::uint32_t ranks,
                              std::uint32_t servers) const {
  const Protocols& limits = *protocols_of(kind);
  const std::int64_t of_a_rank = kind == CollectiveKind::all_reduce ? bytes : bytes / ranks;
  const double up_to = static_cast<double>(limits.ll128_up_to) * (servers > 2 ? limits.more_servers : 1);
  if (of_a_rank > limits.ll128_from && static_cast<double>(of_a_rank) <= up_to) return Protocol::ll128;
  return of_a_rank <= limits.ll_up_to ? Protocol::ll : Protocol::simple;
}

std::int64_t TunerTable::tree_chunk(std::int64_t bytes, std::uint32_t channels, std::uint32_t ranks_per_server,
                                    std::uint32_t servers, std::int64_t largest) const {
  const std::int64_t depth = std::int64_t{ranks_per_server} - 1 + std::bit_width(servers) - 1;
  std::int64_t chunk = largest;
  for (const Chunks& step : tree_chunks)
    while (bytes / (channels * chunk) < depth * step.levels && chunk > step.down_to) chunk /= 2;
  return chunk;
}

std::int64_t TunerTable::chunk(bool tree, Protocol protocol, std::int64_t bytes, std::uint32_t channels,
                               std::uint32_t ranks_per_server, std::uint32_t servers) const {
  switch (protocol) {
    case Protocol::ll:
      return ll_step;
    case Protocol::ll128:
      return tree ? ll128_tree_chunk(bytes, channels, servers, static_cast<float>(ranks_per_server), ll128_step,
                                     ll128_grain)
                  : ll128_step;
    default:
      return tree ? tree_chunk(bytes, channels, ranks_per_server, servers, MessageSizes::nccl_step_bytes(protocol)) : 0;
  }
}

const TunerTable& tuner_table(const std::string& name) {
  static KeptForCommand<std::string, TunerTable> kept;
  auto& known = kept.values();
  if (const auto at = known.find(name); at != known.end()) return at->second;
  return known.emplace(name, table_of(Spec::load(tuner_file(name)))).first->second;
}

const TunerRegions* tuner_regions(const std::string& name) {
  if (name.empty()) return nullptr;
  static KeptForCommand<std::string, std::optional<TunerRegions>> kept;
  auto& known = kept.values();
  auto at = known.find(name);
  if (at == known.end()) {
    const auto path = tuner_file(name);
    at = known.emplace(name, std::filesystem::exists(path) ? regions_of(Spec::load(path)) : std::nullopt).first;
  }
  return at->second ? &*at->second : nullptr;
}

}  // namespace weft
