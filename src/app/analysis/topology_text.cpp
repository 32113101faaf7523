// SPDX-License-Identifier: GPL-2.0-only
// The report of `weft topology` as JSON and as text.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/analysis/topology_report.hpp"
#include "app/reports/report_line.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

template <class Key>
Json object_of(const std::map<Key, std::uint64_t>& counts) {
  Json result = Json::object();
  for (const auto& [key, count] : counts) {
    if constexpr (std::is_same_v<Key, std::string>)
      result[key] = count;
    else
      result[std::to_string(key)] = count;
  }
  return result;
}

double mean(const std::map<std::uint32_t, std::uint64_t>& histogram) {
  double sum = 0;
  double count = 0;
  for (const auto& [value, times] : histogram) {
    sum += static_cast<double>(value) * static_cast<double>(times);
    count += static_cast<double>(times);
  }
  return count > 0 ? sum / count : 0;
}

template <class Map>
std::string list(const Map& counts, const std::string& format) {
  std::string text;
  for (const auto& [key, count] : counts)
    text += (text.empty() ? "" : ", ") + fmt::format(fmt::runtime(format), count, key);
  return text;
}

std::string lookahead(const Partition& partition) {
  return partition.lookahead == Time::max() ? "unlimited" : to_text(partition.lookahead);
}

}  // namespace

std::string to_json(const TopologyReport& report) {
  Json json;
  json["kind"] = report.kind;
  json["routing"] = report.routing;
  json["hosts"] = report.hosts;
  json["storage_hosts"] = report.storage_hosts;
  json["reduction_units"] = report.reduction_units;
  json["switches"] = report.switches;
  json["links"] = report.links;
  json["switch_links"] = report.switch_links;
  json["links_by_class"] = Json::array();
  for (const LinkCount& item : report.classes)
    json["links_by_class"].push_back({{"class", item.link_class},
                                      {"count", item.count},
                                      {"rate_bps", item.rate.bps()},
                                      {"delay_ps", item.delay.ps()},
                                      {"network_ends", item.network_ends}});
  json["switches_by_ports"] = object_of(report.switch_ports);
  json["cables_by_length"] = object_of(report.cables);
  json["bill_of_materials"] = {{"accelerators", report.hosts - report.storage_hosts},
                               {"storage_hosts", report.storage_hosts},
                               {"servers", report.bill.servers},
                               {"nics", report.bill.nics},
                               {"network_switches_by_ports", object_of(report.bill.switch_ports)}};
  json["diameter"] = report.distances.diameter;
  json["mean_distance"] = report.distances.mean;
  json["hop_histogram"] = object_of(report.distances.histogram);
  json["distance_sources"] = report.distances.sources;
  json["routed_mean"] = mean(report.routed);
  json["routed_histogram"] = object_of(report.routed);
  json["lanes"] = report.lanes;
  json["deadlock_possible"] = report.deadlock_searched ? Json(report.deadlock_possible) : Json();
  if (report.deadlock_possible) json["deadlock_cycle"] = report.deadlock_cycle;
  json["shortest_paths"] = {{"min", report.distances.fewest_paths},
                            {"mean", report.distances.mean_paths},
                            {"max", report.distances.max_paths}};
  json["edge_disjoint_paths"] = {{"min", report.fewest_disjoint}, {"max", report.max_disjoint}};
  json["bisection_bps"] = report.bisection_bps();
  json["bisection_formula_bps"] = report.formula_bps > 0 ? Json(report.formula_bps) : Json();
  json["bisection_cut_bps"] = report.estimate.cut_bps;
  json["bisection_flow_bps"] = report.estimate.flow_bps >= 0 ? Json(report.estimate.flow_bps) : Json();
  json["partitions"] = Json::array();
  for (const Partition& partition : report.partitions)
    json["partitions"].push_back(
        {{"processes", partition.parts},
         {"method", partition.method},
         {"cut_links", partition.cut_links},
         {"balance", partition.balance},
         {"lookahead_ps", partition.lookahead == Time::max() ? Json() : Json(partition.lookahead.ps())}});
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string to_table(const TopologyReport& report) {
  std::string text =
      report_line("kind", report.kind) +
      report_line("hosts", report.storage_hosts == 0
                               ? std::to_string(report.hosts)
                               : fmt::format("{}, {} of them storage", report.hosts, report.storage_hosts)) +
      report_line("switches", fmt::format("{} ({})", report.switches, list(report.switch_ports, "{} of {} ports"))) +
      (report.reduction_units == 0
           ? ""
           : report_line("reduction units", fmt::format("{}, in switches", report.reduction_units))) +
      report_line("links", fmt::format("{}, {} of them between switches", report.links, report.switch_links));
  for (const LinkCount& item : report.classes)
    text += report_line("  " + item.link_class,
                        fmt::format("{} of {}, {}", item.count, to_text(item.rate), to_text(item.delay)));
  text += report_line("cables", list(report.cables, "{} {}"));
  text += report_line("servers, NICs", fmt::format("{}, {}; switches outside servers: {}", report.bill.servers,
                                                   report.bill.nics, list(report.bill.switch_ports, "{} of {} ports")));
  const HostDistances& distances = report.distances;
  text += report_line("diameter", fmt::format("{} links", distances.diameter));
  text += report_line("mean distance", fmt::format("{:.6f} links", distances.mean));
  text += report_line("pairs by distance", list(distances.histogram, "{} at {}"));
  if (distances.sources < report.hosts)
    text += report_line("", fmt::format("searched from {} hosts of {}", distances.sources, report.hosts));
  text +=
      report_line("routing", fmt::format("{}, ways of {:.6f} links in the mean", report.routing, mean(report.routed)));
  if (report.deadlock_searched)
    text += report_line("on lossless links",
                        report.deadlock_possible
                            ? fmt::format("deadlock is possible in {} lane{}: {}", report.lanes,
                                          report.lanes == 1 ? "" : "s", report.deadlock_cycle)
                            : fmt::format("no deadlock in {} lane{}", report.lanes, report.lanes == 1 ? "" : "s"));
  text += report_line("shortest paths", fmt::format("{:.0f} to {:.0f} of a pair, {:.4g} in the mean",
                                                    distances.fewest_paths, distances.max_paths, distances.mean_paths));
  text += report_line("edge-disjoint paths", fmt::format("{} to {} between switches with hosts (sample)",
                                                         report.fewest_disjoint, report.max_disjoint));
  const auto rate = [](std::int64_t bps) { return bps > 0 ? to_text(Bandwidth::from_bps(bps)) : std::string("none"); };
  text += report_line("bisection", fmt::format("{} (formula {}; cut {}; flow {})", rate(report.bisection_bps()),
                                               rate(report.formula_bps), rate(report.estimate.cut_bps),
                                               rate(std::max<std::int64_t>(report.estimate.flow_bps, 0))));
  for (const Partition& partition : report.partitions)
    text += report_line(fmt::format("on {} processes", partition.parts),
                        fmt::format("{}: {} links cut, balance {:.3f}, lookahead {}", partition.method,
                                    partition.cut_links, partition.balance, lookahead(partition)));
  return text;
}

}  // namespace weft
