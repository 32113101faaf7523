// SPDX-License-Identifier: GPL-2.0-only
#include "app/reports/summary.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/reports/job_results.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

double hops_per_second(const Summary& summary) {
  return summary.facts.wall_seconds > 0 ? static_cast<double>(summary.facts.packet_hops) / summary.facts.wall_seconds
                                        : 0;
}

nlohmann::ordered_json collective_json(const CollectiveResult& result) {
  return {{"id", result.info.id},
          {"kind", result.info.kind},
          {"algorithm", result.info.algorithm},
          {"label", result.info.label},
          {"ranks", result.info.ranks},
          {"bytes", result.info.bytes},
          {"start_ps", result.start},
          {"time_ps", result.time()},
          {"algbw_GBps", result.algorithm_bandwidth()},
          {"busbw_GBps", result.bus_bandwidth()}};
}

std::string congestion_text(const CongestionTotals& totals) {
  std::string text;
  const auto add = [&text](std::uint64_t count, const char* what) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  add(totals.marked, "packets marked");
  add(totals.cnps, "congestion notifications");
  add(totals.pauses, "pause frames");
  add(totals.trimmed, "packets trimmed");
  add(totals.repeated, "sent again");
  add(totals.timeouts, "timeouts");
  add(totals.out_of_order, "out of order");
  return text;
}

// One line for equal calls, so that a training step with hundreds of buckets stays readable; the calls with the most
// time are first.
std::string collective_lines(const Summary& summary) {
  constexpr std::size_t max = 32;
  if (summary.call_groups.empty()) return "";
  std::vector<std::pair<CallGroupKey, CallGroup>> rows(summary.call_groups.begin(), summary.call_groups.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.total > b.second.total; });
  std::string text = fmt::format("\n  {:<16} {:<18} {:>6} {:>6} {:>14} {:>6} {:>12} {:>12} {:>12} {:>12} {:>10}\n",
                                 "collective", "algorithm", "ranks", "count", "size", "stride", "min time", "mean time",
                                 "max time", "own, mean", "busbw");
  const auto time = [](double ps) { return readable(Time::from_ps(static_cast<std::int64_t>(ps))); };
  for (std::size_t i = 0; i < std::min(max, rows.size()); ++i) {
    const auto& [key, group] = rows[i];
    text +=
        fmt::format("  {:<16} {:<18} {:>6} {:>6} {:>14} {:>6} {:>12} {:>12} {:>12} {:>12} {:>5.2f} GB/s\n", key.kind,
                    key.algorithm, key.ranks, group.calls, key.bytes < 0 ? "other sizes" : to_text(Bytes(key.bytes)),
                    key.stride == 0 ? "-" : std::to_string(key.stride), readable(Time::from_ps(group.min)),
                    time(group.mean(group.total)), readable(Time::from_ps(group.max)), time(group.mean(group.own)),
                    group.mean(group.bus_bandwidth));
  }
  if (rows.size() > max)
    text +=
        fmt::format("  (the {} of {} kinds of calls that took most time; --summary json has all)\n", max, rows.size());
  return text;
}

// The parts of all ranks, in ps; empty if times were not split.
nlohmann::ordered_json parts_json(const JobRecord& row) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::object();
  for (std::size_t part = 0; part < time_part_count && row.parts.total() > 0; ++part)
    parts[std::string(time_part_texts[part].column)] = row.parts[static_cast<TimePart>(part)];
  return parts;
}

nlohmann::ordered_json call_groups_json(const std::map<CallGroupKey, CallGroup>& groups) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& [key, group] : groups)
    json.push_back({{"kind", key.kind},
                    {"algorithm", key.algorithm},
                    {"ranks", key.ranks},
                    {"stride", key.stride == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(key.stride)},
                    {"bytes", key.bytes < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(key.bytes)},
                    {"count", group.calls},
                    {"min_time_ps", group.min},
                    {"mean_time_ps", group.mean(group.total)},
                    {"max_time_ps", group.max},
                    {"mean_own_ps", group.mean(group.own)},
                    {"mean_busbw_GBps", group.mean(group.bus_bandwidth)}});
  return json;
}

nlohmann::ordered_json job_json(const JobRecord& row, const RankShares& shares) {
  return {{"name", row.name},
          {"first_rank", row.first_rank},
          {"ranks", row.ranks},
          {"background", row.background},
          {"start_ps", row.start},
          {"end_ps", row.end},
          {"time_ps", row.time()},
          {"steps", row.steps},
          {"step_time_ps", row.complete ? nlohmann::ordered_json(row.step_time()) : nlohmann::ordered_json()},
          {"compute_ps", row.mean(row.compute)},
          {"communication_ps", row.mean(row.communication)},
          {"hidden_ps", shares.hidden},
          {"exposed_ps", shares.exposed},
          {"waiting_ps", shares.waiting},
          {"idle_ps", shares.idle},
          {"messages", row.messages},
          {"bytes", row.bytes},
          {"parts_ps", parts_json(row)}};
}

nlohmann::ordered_json transfer_json(const TransferRecord& row) {
  return {{"name", row.name},
          {"source", row.source},
          {"destination", row.destination},
          {"priority", row.priority},
          {"size", row.size},
          {"bytes", row.bytes},
          {"complete", row.complete()},
          {"start_ps", row.start},
          {"last_ps", row.last},
          {"repeated_bytes", row.repeated},
          {"goodput_bps", row.goodput()}};
}

std::string transfer_lines(const std::vector<TransferRecord>& rows) {
  if (rows.empty()) return "";
  constexpr std::size_t max = 16;
  std::string text = fmt::format("\n  {:<16} {:>6} {:>6} {:>12} {:>12} {:>12} {:>12} {:>14}\n", "transfer", "from",
                                 "to", "start", "last byte", "delivered", "sent again", "goodput");
  for (std::size_t i = 0; i < std::min(max, rows.size()); ++i) {
    const TransferRecord& row = rows[i];
    text += fmt::format("  {:<16} {:>6} {:>6} {:>12} {:>12} {:>12} {:>12} {:>14}{}\n", row.name, row.source,
                        row.destination, readable(Time::from_ps(row.start)), readable(Time::from_ps(row.last)),
                        in_unit(static_cast<double>(row.bytes), "B"), in_unit(static_cast<double>(row.repeated), "B"),
                        in_unit(row.goodput(), "bit/s"), row.size < 0 || row.complete() ? "" : "  incomplete");
  }
  if (rows.size() > max)
    text += fmt::format("  (the first {} of {} transfers; all are in the file)\n", max, rows.size());
  return text;
}

}  // namespace

std::string in_unit(double value, const char* unit) {
  const char* prefixes[] = {"", "k", "M", "G", "T", "P"};
  int step = 0;
  while (value >= 1000 && step < 5) {
    value /= 1000;
    ++step;
  }
  return fmt::format("{:.4g} {}{}", value, prefixes[step], unit);
}

std::string readable(Time time) {
  const double ps = static_cast<double>(time.ps());
  if (ps < 1e3) return fmt::format("{} ps", time.ps());
  if (ps < 1e6) return fmt::format("{:.3f} ns", ps * 1e-3);
  if (ps < 1e9) return fmt::format("{:.3f} us", ps * 1e-6);
  if (ps < 1e12) return fmt::format("{:.3f} ms", ps * 1e-9);
  return fmt::format("{:.3f} s", ps * 1e-12);
}

Throughput throughput_of(const WorkloadReport& step, const JobRecord& job) {
  const double seconds = job.step_time() * 1e-12;
  return {step.copies * step.sequences / seconds, step.copies * step.tokens / seconds,
          step.model_flops / seconds / job.ranks, step.model_flops_causal / seconds / job.ranks};
}

std::string summary_json(const Summary& summary) {
  nlohmann::ordered_json json;
  json["experiment"] = summary.experiment;
  json["fidelity"] = to_text(summary.fidelity);
  json["complete"] = summary.complete;
  json["simulated_time_ps"] = summary.facts.simulated.ps();
  json["wall_seconds"] = summary.facts.wall_seconds;
  json["build_seconds"] = summary.facts.build_seconds;
  json["processor_seconds"] = summary.facts.processor_seconds;
  json["packet_hops"] = summary.facts.packet_hops;
  json["packet_hops_per_second"] = hops_per_second(summary);
  json["events"] = summary.facts.events;
  json["engine"] = summary.engine;
  json["seed"] = summary.seed;
  json["mpi_ranks"] = summary.mpi_ranks;
  json["fingerprint"] = fmt::format("{:016x}", summary.fingerprint);
  json["operations"] = summary.operations;
  json["messages"] = summary.facts.messages;
  json["bytes_delivered"] = summary.facts.bytes_delivered;
  json["operations"] = summary.facts.operations;
  const CongestionTotals& congestion = summary.facts.congestion;
  json["packets_dropped"] = congestion.dropped;
  json["congestion"] = {{"packets_lost", congestion.lost},
                        {"packets_trimmed", congestion.trimmed},
                        {"packets_marked", congestion.marked},
                        {"packets_repeated", congestion.repeated},
                        {"packets_out_of_order", congestion.out_of_order},
                        {"pause_frames", congestion.pauses},
                        {"timeouts", congestion.timeouts},
                        {"congestion_notifications", congestion.cnps}};
  json["warnings"] = summary.warnings;
  json["verified"] = summary.verified;
  json["output"] = summary.output;
  json["parallel"] = {{"partition", summary.partition.method},
                      {"cut_links", summary.partition.cut_links},
                      {"balance", summary.partition.balance},
                      {"lookahead_ps", summary.partition.cut_links > 0 ? summary.partition.lookahead.ps() : 0},
                      {"epochs", summary.facts.epochs},
                      {"packet_hops_per_epoch", summary.facts.hops_per_epoch()},
                      {"wait_seconds", summary.facts.wait_seconds},
                      {"parallelism", summary.facts.parallelism()}};
  json["hot_links"] = nlohmann::ordered_json::array();
  for (const HotLinkLine& link : summary.hot_links) {
    json["hot_links"].push_back({{"from", link.from},
                                 {"to", link.to},
                                 {"utilization", link.utilization},
                                 {"mean_queue_bytes", link.mean_queue},
                                 {"peak_queue_bytes", link.peak_queue}});
    if (link.p99_queue >= 0) json["hot_links"].back()["p99_queue_bytes"] = link.p99_queue;
  }
  json["fabric_memory_bytes"] = summary.memory_bytes;
  json["jobs"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < summary.jobs.size(); ++i)
    json["jobs"].push_back(job_json(summary.jobs[i], summary.job_shares[i]));
  if (const auto& of_training = summary.throughput)
    json["throughput"] = {{"sequences_per_second", of_training->sequences},
                          {"tokens_per_second", of_training->tokens},
                          {"model_flops_per_second_of_a_rank", of_training->model_flops},
                          {"model_flops_causal_per_second_of_a_rank", of_training->model_flops_causal}};
  json["transfers"] = nlohmann::ordered_json::array();
  for (const TransferRecord& row : summary.transfers) json["transfers"].push_back(transfer_json(row));
  json["collective_count"] = summary.collective_count;
  json["collectives"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < summary.collectives.size(); ++i) {
    json["collectives"].push_back(collective_json(summary.collectives[i]));
    const bool ended = summary.collectives[i].finished();
    json["collectives"].back()["own_ps"] = ended ? summary.call_times[i].end - summary.call_times[i].last : -1;
  }
  json["collective_groups"] = call_groups_json(summary.call_groups);
  // Names of files need not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string summary_table(const Summary& summary) {
  std::string text = fmt::format("\n  {}{}\n", summary.experiment,
                                 summary.complete          ? ""
                                 : summary.facts.cut_short ? "  (cut short by simulation.until)"
                                                           : "  (interrupted: incomplete)");
  const auto line = [&text](const std::string& name, const std::string& value) {
    text += fmt::format("  {:<18} {}\n", name, value);
  };
  line("simulated time", readable(summary.facts.simulated));
  line("wall time",
       fmt::format("{:.3f} s (and {:.3f} s to build)", summary.facts.wall_seconds, summary.facts.build_seconds));
  const bool packets = summary.fidelity == Fidelity::packet;
  line("fidelity", packets ? "packet"
                   : summary.fidelity == Fidelity::ideal
                       ? "ideal: messages without contention inside the network, no packets"
                       : "loggp: processors, NICs and messages, no links");
  if (packets)
    line("packet-hops", fmt::format("{} ({})", in_unit(static_cast<double>(summary.facts.packet_hops), ""),
                                    in_unit(hops_per_second(summary), "/s")));
  line("messages", fmt::format("{} ({} delivered, {} packets dropped)", summary.facts.messages,
                               in_unit(static_cast<double>(summary.facts.bytes_delivered), "B"),
                               summary.facts.congestion.dropped + summary.facts.congestion.lost));
  if (const std::string congestion = congestion_text(summary.facts.congestion); !congestion.empty())
    line("congestion", congestion);
  for (const JobRecord& job : summary.jobs)
    if (const std::string times = time_line(job); !times.empty())
      line("time went into", (summary.jobs.size() > 1 ? job.name + ": " : "") + times);
  for (const std::string& warning : summary.warnings) line("WARNING", warning);
  for (std::size_t i = 0; i < summary.hot_links.size(); ++i) {
    const HotLinkLine& link = summary.hot_links[i];
    line(i == 0 ? "longest queues" : "",
         fmt::format("{} -> {}: {} on average, {}{} at most; busy {:.0f} %", link.from, link.to,
                     in_unit(link.mean_queue, "B"),
                     link.p99_queue < 0 ? "" : in_unit(static_cast<double>(link.p99_queue), "B in 99 % of the time, "),
                     in_unit(static_cast<double>(link.peak_queue), "B"), 100 * link.utilization));
  }
  std::string processes = fmt::format("{} ({} engine", summary.mpi_ranks, summary.engine);
  if (summary.mpi_ranks > 1)
    processes += fmt::format(", {} partition, {} links cut, lookahead {}, {:.0f} % waiting", summary.partition.method,
                             summary.partition.cut_links,
                             summary.partition.cut_links > 0 ? to_text(summary.partition.lookahead) : "none",
                             100 * summary.facts.wait_seconds / std::max(1e-9, summary.facts.wall_seconds));
  line("MPI ranks", processes + ")");
  if (summary.facts.critical_events > 0)
    line("parallelism",
         fmt::format("{:.3g} events per event of the busiest node; {:.3g} packet-hops in each of {} epochs",
                     summary.facts.parallelism(), summary.facts.hops_per_epoch(), summary.facts.epochs));
  line("fingerprint", fmt::format("{:016x}{}", summary.fingerprint,
                                  summary.verified ? " (every row equals that of --engine ns3-default)" : ""));
  line("results", summary.output);
  text += job_lines(summary.jobs, summary.job_shares);
  if (const auto& of_training = summary.throughput)
    line("throughput",
         fmt::format("{}; model FLOPs per rank {}, {} with causal attention",
                     of_training->tokens > of_training->sequences ? in_unit(of_training->tokens, " tokens/s")
                                                                  : in_unit(of_training->sequences, " samples/s"),
                     in_unit(of_training->model_flops, "FLOP/s"), in_unit(of_training->model_flops_causal, "FLOP/s")));
  return text + transfer_lines(summary.transfers) + collective_lines(summary);
}

}  // namespace weft
