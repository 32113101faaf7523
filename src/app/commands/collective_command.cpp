// SPDX-License-Identifier: GPL-2.0-only
// `weft collective`: the steps of an algorithm, the proof that they are right, and what they cost without a network.
#include <algorithm>
#include <fstream>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/command_line/collective_options.hpp"
#include "app/commands/commands.hpp"
#include "app/pictures/channel_graph_picture.hpp"
#include "app/pictures/picture.hpp"
#include "app/processes/prepare.hpp"
#include "app/reports/channel_graph_text.hpp"
#include "schedule/collective/collective_check.hpp"
#include "schedule/collective/collective_cost.hpp"
#include "support/basics/error.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

struct Tool {
  const CollectiveOptions& options;
  const CollectiveAlgorithm& algorithm;
  const CollectiveCall& call;
};

/// Calls visit(rank, lane, number, step) for all steps.
template <class Visit>
void for_each_step(const Tool& tool, Visit visit) {
  for (std::uint32_t rank = 0; rank < tool.call.communicator->size(); ++rank) {
    for (std::uint32_t lane = 0; lane < tool.algorithm.lanes(tool.call); ++lane) {
      const auto stream = tool.algorithm.steps(tool.call, rank, lane);
      Step step;
      for (std::uint64_t number = 0; stream->next(step); ++number) visit(rank, lane, number, step);
    }
  }
}

std::string describe(const Step& step) {
  std::string text(to_text(step.primitive));
  for (std::uint32_t i = 0; i < step.receive_count(); ++i)
    text += fmt::format("{} {}", i == 0 ? " from" : ",", step.receive_from(i));
  for (std::uint32_t i = 0; i < step.send_count(); ++i)
    text += fmt::format("{} {}", i == 0 ? " to" : ",", step.send_to(i));
  if (reads(step.primitive)) text += fmt::format(", {}[{}]", to_text(step.source), step.input_offset.count());
  if (stores(step.primitive)) text += fmt::format(" -> {}[{}]", to_text(step.target), step.output_offset.count());
  if (step.primitive != Primitive::nop) {
    text += fmt::format(", {} B", step.bytes.count());
    if (step.slice < step.bytes) text += fmt::format(" in slices of {} B", step.slice.count());
  }
  if (step.wait_lane != no_lane) text += fmt::format(", after mark {} of lane {}", step.wait_marks, step.wait_lane);
  if (step.mark) text += ", marks";
  return text;
}

Json show_json(const Tool& tool) {
  Json steps = Json::array();
  for_each_step(tool, [&](std::uint32_t rank, std::uint32_t lane, std::uint64_t number, const Step& step) {
    Json one = {
        {"rank", rank}, {"channel", lane % tool.algorithm.channels(tool.call)}, {"lane", lane}, {"step", number}};
    one["kind"] = to_text(step.primitive);
    one["peer"] = step.send_count() > 0      ? Json(step.send_peer)
                  : step.receive_count() > 0 ? Json(step.receive_peer)
                                             : Json();
    one["offset"] = (reads(step.primitive) ? step.input_offset : step.output_offset).count();
    one["bytes"] = step.bytes.count();
    one["slice"] = step.slice.count();
    one["send_to"] = Json::array();
    one["receive_from"] = Json::array();
    for (std::uint32_t i = 0; i < step.send_count(); ++i) one["send_to"].push_back(step.send_to(i));
    for (std::uint32_t i = 0; i < step.receive_count(); ++i) one["receive_from"].push_back(step.receive_from(i));
    if (reads(step.primitive))
      one["source"] = {{"buffer", to_text(step.source)}, {"offset", step.input_offset.count()}};
    if (stores(step.primitive))
      one["target"] = {{"buffer", to_text(step.target)}, {"offset", step.output_offset.count()}};
    if (step.wait_lane != no_lane) one["after"] = {{"lane", step.wait_lane}, {"marks", step.wait_marks}};
    if (step.mark) one["marks"] = true;
    steps.push_back(std::move(one));
  });
  return steps;
}

void show_text(const Tool& tool) {
  std::uint32_t last = no_lane;
  for_each_step(tool, [&](std::uint32_t rank, std::uint32_t lane, std::uint64_t number, const Step& step) {
    if (rank != last) std::cout << fmt::format("rank {}\n", rank);
    last = rank;
    std::cout << fmt::format("  {:<28} {}\n", tool.algorithm.name_step(tool.call, rank, lane, number), describe(step));
  });
}

struct CheckReport {
  CollectiveReplay replay;
  Bytes min;
  Bytes between_servers;
};

CheckReport check(const Tool& tool) {
  CheckReport report;
  report.replay = replay(tool.algorithm, tool.call, std::uint64_t{1} << 40);
  report.min = min_bytes_sent(tool.call);
  for (const Bytes bytes : report.replay.sent_between_servers) report.between_servers += bytes;
  return report;
}

Json check_json(const Tool& tool, const CheckReport& report) {
  Json json = {{"right", report.replay.violations.empty()},    {"violations", report.replay.violations},
               {"credits", tool.algorithm.credits(tool.call)}, {"steps", report.replay.steps},
               {"messages", report.replay.messages},           {"bytes_sent", report.replay.total_sent().count()},
               {"min_bytes_sent", report.min.count()}};
  if (tool.call.tuning.ranks_per_server != 0) {
    json["bytes_between_servers"] = report.between_servers.count();
    json["bytes_inside_servers"] = (report.replay.total_sent() - report.between_servers).count();
  }
  return json;
}

void check_text(const Tool& tool, const CheckReport& report) {
  if (!report.replay.violations.empty()) {
    for (const std::string& text : report.replay.violations) std::cout << "wrong: " << text << '\n';
    return;
  }
  std::cout << fmt::format(
      "complete: every rank has its result, each contribution exactly once\n"
      "no deadlock: all {} steps end with {} credits per connection\n"
      "bytes sent: {} in {} messages; no algorithm can do with less than {} without help of the network\n",
      report.replay.steps, tool.algorithm.credits(tool.call), report.replay.total_sent().count(),
      report.replay.messages, report.min.count());
  if (tool.call.tuning.ranks_per_server != 0)
    std::cout << fmt::format("bytes inside servers: {}, between servers: {}\n",
                             (report.replay.total_sent() - report.between_servers).count(),
                             report.between_servers.count());
}

CollectiveCost cost_of(const Tool& tool, Picture* picture) {
  return model_cost(tool.algorithm, tool.call, tool.options.latency, tool.options.rate,
                    [picture](const ModelMessage& message) {
                      if (picture != nullptr) picture->add(message);
                    });
}

Json cost_json(const Tool& tool, const CollectiveCost& cost) {
  const auto [min, max] = std::minmax_element(cost.sent.begin(), cost.sent.end());
  return {{"rounds", cost.rounds},
          {"messages", cost.messages},
          {"min_bytes_sent_by_a_rank", min->count()},
          {"max_bytes_sent_by_a_rank", max->count()},
          {"latency_ps", tool.options.latency.ps()},
          {"rate_bps", tool.options.rate.bps()},
          {"time_ps", cost.time.ps()},
          {"finished", cost.finished}};
}

void cost_text(const Tool& tool, const CollectiveCost& cost) {
  const auto [min, max] = std::minmax_element(cost.sent.begin(), cost.sent.end());
  std::cout << fmt::format(
      "rounds: {}\nbytes sent per rank: {} to {}, in {} messages of all ranks\n"
      "alpha-beta time: {} (alpha {}, 1/beta {})\n",
      cost.rounds, min->count(), max->count(), cost.messages,
      cost.finished ? to_text(cost.time) : std::string("never ends"), to_text(tool.options.latency),
      to_text(tool.options.rate));
}

void write_text(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (!file.flush()) throw EnvironmentError(fmt::format("cannot write {}", path));
}

void head(const Tool& tool, const std::string& reason) {
  std::cout << fmt::format("{} by {}: {} ranks, {}, {} channel{}, protocol {}\n", to_text(tool.call.kind),
                           tool.call.algorithm, tool.call.communicator->size(), to_text(tool.call.size),
                           tool.algorithm.channels(tool.call), tool.algorithm.channels(tool.call) == 1 ? "" : "s",
                           to_text(tool.call.tuning.protocol));
  if (!reason.empty()) std::cout << "chosen because " << reason << '\n';
}

}  // namespace

int collective_command(const CommandLine& line, ProcessGroup& group) {
  CollectiveOptions options;
  prepare(group, [&] { options = parse_collective_options(line.words); });
  int code = exit_done;
  prepare(group, [&] {
    if (group.rank() != 0) return;
    if (options.text) {
      std::cout << find_collective(options.algorithm)->schedule_text();
      return;
    }
    const MachineOfChannels machine =
        options.machine.empty() ? MachineOfChannels() : channels_of_machine(options.machine, options.ranks);
    const auto& graph = machine.graph;
    if (options.show_graph) {
      if (!options.picture.empty()) write_text(options.picture, draw_channel_graph(*graph, options.picture));
      if (!options.graph_file.empty()) write_text(options.graph_file, machine.xml);
      std::cout << (options.json ? channel_graph_json(*graph) + '\n' : channel_graph_text(*graph));
      return;
    }
    if (!options.show && !options.check && !options.cost && options.picture.empty())
      options.check = options.cost = true;
    if (graph) options.ranks = graph->size();
    const Communicator communicator(0, options.ranks);
    std::string reason;
    const CollectiveCall call = make_call(options, communicator, graph, reason);
    const auto algorithm = find_collective(call.algorithm);
    const Tool tool{options, *algorithm, call};
    Json json = {{"algorithm", call.algorithm},
                 {"kind", to_text(call.kind)},
                 {"ranks", options.ranks},
                 {"size", call.size.count()},
                 {"root", call.root},
                 {"channels", algorithm->channels(call)},
                 {"protocol", to_text(call.tuning.protocol)}};
    if (!reason.empty()) json["reason"] = reason;
    if (!options.json) head(tool, reason);
    if (options.show) options.json ? void(json["steps"] = show_json(tool)) : show_text(tool);
    if (options.check) {
      const CheckReport report = check(tool);
      options.json ? void(json["check"] = check_json(tool, report)) : check_text(tool, report);
      if (!report.replay.violations.empty()) code = is_schedule_file(call.algorithm) ? exit_input : exit_bug;
    }
    if (options.cost || !options.picture.empty()) {
      Picture picture(options.ranks, algorithm->aggregators(call));
      const CollectiveCost cost = cost_of(tool, options.picture.empty() ? nullptr : &picture);
      if (options.cost) options.json ? void(json["cost"] = cost_json(tool, cost)) : cost_text(tool, cost);
      if (!options.picture.empty())
        picture.write(options.picture, fmt::format("{} by {}, {} ranks, {}", to_text(call.kind), call.algorithm,
                                                   options.ranks, to_text(call.size)));
    }
    if (options.json) std::cout << json.dump(options.show ? -1 : 2) << '\n';
  });
  return code;
}

}  // namespace weft
