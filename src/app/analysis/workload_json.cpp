// SPDX-License-Identifier: GPL-2.0-only
// `weft workload --json`.
#include <cmath>

#include <nlohmann/json.hpp>

#include "app/analysis/workload_summary.hpp"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t whole(double value) { return std::llround(value); }

Json counts_json(const WorkloadSummary& summary, ProgramCounts::Part part) {
  Json json = Json::object();
  const double steps = summary.steps();
  for (const auto& [name, count] : summary.counts.by(part)) {
    Json& one = json[name];
    one["operations"] = whole(static_cast<double>(count.operations) / steps);
    one["bytes"] = whole(count.bytes / steps);
    one["size_bytes"] = whole(count.size / steps);
    one["flops"] = count.flops / steps;
    one["compute_seconds"] = count.seconds / steps;
  }
  return json;
}

Json bytes_json(const WorkloadSummary& summary, ProgramCounts::Part part) {
  Json json = Json::object();
  for (const auto& [name, count] : summary.counts.by(part))
    if (count.bytes > 0) json[name] = whole(count.bytes / summary.steps());
  return json;
}

Json memory_json(const MemoryOfRanks& memory) {
  Json json = {{"sum", memory.sum}};
  for (const auto& [name, bytes] : memory.parts) json[name] = bytes;
  return json;
}

Json rank_json(const WorkloadSummary& summary, std::uint32_t rank) {
  const std::uint32_t kind = summary.experiment->workload->kind_of(Rank(rank));
  const double steps = summary.steps();
  Json json = {{"rank", rank},
               {"kind", kind},
               {"operations", whole(static_cast<double>(summary.counts.operations[kind]) / steps)},
               {"compute_seconds", summary.counts.compute[kind].seconds() / steps}};
  if (summary.report && !summary.report->memory.empty())
    json["memory_bytes"] = memory_json(summary.report->memory[kind]);
  if (summary.schedule == nullptr) return json;
  json["bytes_sent"] = whole(static_cast<double>(summary.schedule->records[rank].bytes_sent) / steps);
  const RankShares& shares = summary.schedule->shares[rank];
  const auto seconds = [&](std::int64_t part) { return Time::from_ps(part).seconds() / steps; };
  json["busy_seconds"] = seconds(shares.compute);
  json["hidden_communication_seconds"] = seconds(shares.hidden);
  json["exposed_communication_seconds"] = seconds(shares.exposed);
  json["waiting_seconds"] = seconds(shares.waiting);
  json["idle_seconds"] = seconds(shares.idle);
  return json;
}

void add_schedule(const WorkloadSummary& summary, Json& json) {
  for (const char* key :
       {"ideal_step_seconds", "bubble_fraction", "exposed_communication_fraction", "waiting_fraction", "idle_fraction"})
    json[key] = nullptr;
  if (summary.schedule == nullptr) return;
  const IdealSchedule& schedule = *summary.schedule;
  const double steps = summary.steps();
  json["ideal_step_seconds"] = schedule.facts.simulated.seconds() / steps;
  json["bubble_fraction"] = schedule.fraction([](const RankShares& one) { return one.bubble(); });
  json["exposed_communication_fraction"] = schedule.fraction([](const RankShares& one) { return one.exposed; });
  json["waiting_fraction"] = schedule.fraction([](const RankShares& one) { return one.waiting; });
  json["idle_fraction"] = schedule.fraction([](const RankShares& one) { return one.idle; });
  Json& path = json["critical_path"];
  path["seconds"] = schedule.facts.simulated.seconds() / steps;
  path["compute_seconds"] = schedule.path.compute.seconds() / steps;
  if (schedule.path.host > Time()) path["host_seconds"] = schedule.path.host.seconds() / steps;
  path["communication_seconds"] = Json::object();
  for (const auto& [group, time] : schedule.path.communication)
    path["communication_seconds"][group] = time.seconds() / steps;
  path["other_seconds"] = schedule.path.other.seconds() / steps;
  path["all_ranks_examined"] = schedule.all_ranks;
}

}  // namespace

std::string workload_json(const WorkloadSummary& summary) {
  Json json = {{"experiment", summary.experiment->path}, {"ranks", summary.experiment->workload->ranks()}};
  const OperationCount all = summary.counts.sum();
  const double steps = summary.steps();
  const bool known = summary.report.has_value();
  json["steps"] = summary.steps();
  json["out_of_memory"] = known && !summary.report->fits();
  json["parameters"] = known ? Json(summary.report->parameters) : Json();
  json["active_parameters"] = known ? Json(summary.report->active_parameters) : Json();
  json["flops_per_step"] = all.flops / steps;
  json["model_flops_per_step"] = known ? Json(summary.report->model_flops) : Json();
  json["model_flops_per_step_causal"] = known ? Json(summary.report->model_flops_causal) : Json();
  json["memory_per_rank_bytes"] = nullptr;
  if (known && !summary.report->memory.empty()) {
    json["memory_per_rank_bytes"] = memory_json(summary.report->memory[summary.report->fullest()]);
    json["device_memory_bytes"] = summary.report->device_memory.count();
  }
  json["bytes_per_step"] = whole(all.bytes / steps);
  json["bytes_by_kind"] = bytes_json(summary, ProgramCounts::kind);
  json["bytes_by_phase"] = bytes_json(summary, ProgramCounts::phase);
  json["bytes_by_communicator"] = bytes_json(summary, ProgramCounts::group);
  add_schedule(summary, json);
  if (known && summary.report->bubble) {
    json["bubble_closed_form"] = *summary.report->bubble;
    json["bubble_formula"] = summary.report->bubble_formula;
  }
  json["operations_by_kind"] = counts_json(summary, ProgramCounts::kind);
  json["operations_by_phase"] = counts_json(summary, ProgramCounts::phase);
  json["operations_by_operator"] = counts_json(summary, ProgramCounts::operator_name);
  json["of_ranks"] = Json::array();
  for (const std::uint32_t rank : summary.ranks) json["of_ranks"].push_back(rank_json(summary, rank));
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace weft
