// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/transform/transform.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "schedule/transform/transform_operations.hpp"
#include "schedule/transform/transformed_workload.hpp"

namespace weft {
namespace {

const std::vector<std::string> change_names = {"scale", "remove", "fuse", "resize", "repeat", "move"};

/// The one key of an item.
std::pair<std::string, Spec> change_of(const Spec& item) {
  for (const std::string& name : change_names) {
    const auto value = item.find(name);
    if (!value) continue;
    item.finish();
    return {name, *value};
  }
  item.finish();
  throw item.error(fmt::format("expected one of {}", fmt::join(change_names, ", ")));
}

double read_factor(const Spec& map) {
  constexpr double min = 1e-6, max = 1e6;
  return map.at("by").number(min, max);
}

CallChoice read_choice(const Spec& map) {
  CallChoice choice;
  if (const auto pattern = map.find("collectives")) choice.pattern = pattern->text();
  if (const auto value = map.find("communicator")) {
    const auto add = [&choice](const Spec& one) {
      choice.communicators.push_back(static_cast<std::uint32_t>(one.integer(0, 0xfffffffe)));
    };
    if (value->is_sequence())
      for (const Spec& one : value->items()) add(one);
    else
      add(*value);
  }
  return choice;
}

/// A change of no collective would answer a question that nobody has asked.
void require_calls(const Workload& workload, const CallChoice& choice, const Spec& where) {
  for (std::uint64_t id = 0; id < workload.call_count(); ++id)
    if (choice.fits(workload.call(static_cast<std::uint32_t>(id)))) return;
  const bool of_some = !choice.communicators.empty();
  throw where.error(fmt::format(
      "no collective of the workload fits '{}'{}; `weft workload` and `weft export` show what there is", choice.pattern,
      of_some ? fmt::format(" in communicator {}", fmt::join(choice.communicators, ", ")) : ""));
}

/// `by`, or the ratio of the bytes of a number in the two precisions.
double read_resize_factor(const Spec& map) {
  const std::map<std::string, double> bytes = {{"fp64", 8}, {"fp32", 4}, {"tf32", 4}, {"bf16", 2},
                                               {"fp16", 2}, {"fp8", 1},  {"int8", 1}, {"fp4", 0.5}};
  const auto precision = map.find("precision");
  if (!precision) return read_factor(map);
  std::vector<std::string> names;
  for (const auto& [name, size] : bytes) names.push_back(name);
  const double from = bytes.at(precision->at("from").one_of(names));
  const double to = bytes.at(precision->at("to").one_of(names));
  precision->finish();
  return to / from;
}

/// The ranks that are meant; none: all.
std::set<std::uint32_t> read_ranks(const Spec& map, std::uint32_t ranks) {
  std::set<std::uint32_t> found;
  const auto list = map.find("ranks");
  if (!list) return found;
  for (const Spec& one : list->items()) {
    const std::int64_t rank = one.integer(0);
    if (rank >= ranks)
      throw one.error(fmt::format("rank {} is out of range: there are ranks 0 to {}", rank, ranks - 1));
    found.insert(static_cast<std::uint32_t>(rank));
  }
  if (found.empty()) throw list->error("found no rank; expected a list such as [3], or no 'ranks' for all");
  return found;
}

std::unique_ptr<Workload> changed(std::unique_ptr<Workload> workload, const std::string& name, const Spec& value) {
  if (name == "repeat") {
    constexpr std::int64_t max = 1'000'000;
    return repeated(std::move(workload), static_cast<std::uint32_t>(value.integer(1, max)), value);
  }
  if (name == "scale") {
    const auto of_host = value.find("host");
    if (of_host && value.has("kernels")) throw of_host->error("found with 'kernels'; expected one of the two");
    const std::string pattern = of_host ? of_host->text() : value.at("kernels").text();
    const std::set<std::uint32_t> ranks = read_ranks(value, workload->ranks());
    workload = with_scaled_kernels(std::move(workload), of_host ? Worker::host : Worker::device, pattern,
                                   read_factor(value), ranks);
  } else if (name == "fuse") {
    const double factor = value.has("by") ? read_factor(value) : 1;
    workload = with_fused_kernels(std::move(workload), value.at("kernels").text(), factor);
  } else if (name == "remove") {
    const auto kernels = value.find("kernels");
    if (kernels && value.has("collectives")) throw value.error("expected 'kernels' or 'collectives', not both");
    if (!kernels && !value.has("collectives") && !value.has("communicator"))
      throw value.error("expected 'kernels' or 'collectives'");
    const CallChoice choice = read_choice(value);
    if (!kernels) require_calls(*workload, choice, value);
    workload =
        kernels ? without_kernels(std::move(workload), kernels->text()) : without_calls(std::move(workload), choice);
  } else {
    const CallChoice choice = read_choice(value);
    require_calls(*workload, choice, value);
    workload = with_resized_calls(std::move(workload), choice, read_resize_factor(value), value);
  }
  value.finish();
  return workload;
}

/// rank -> whose place it takes. Throws InputError if two take one place.
std::map<std::uint32_t, std::uint32_t> read_moves(const Spec& value, std::uint32_t ranks) {
  std::map<std::uint32_t, std::uint32_t> moves;
  std::map<std::uint32_t, std::uint32_t> taken;
  for (const auto& [key, place] : value.entries()) {
    const bool digits = !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoul(key) >= ranks)
      throw place.error(fmt::format("'{}' is no rank; there are ranks 0 to {}", key, ranks - 1));
    const auto rank = static_cast<std::uint32_t>(std::stoul(key));
    moves[rank] = static_cast<std::uint32_t>(place.integer(0, std::int64_t{ranks} - 1));
    if (!taken.emplace(moves[rank], rank).second)
      throw place.error(fmt::format("rank {} takes that place already", taken[moves[rank]]));
  }
  for (const auto& [place, rank] : taken)
    if (!moves.contains(place))
      throw value.error(fmt::format("rank {} takes the place of rank {}, which stays there; give that one a place, too",
                                    rank, place));
  return moves;
}

std::unique_ptr<Workload> described_as_moved(std::unique_ptr<Workload> workload, const Spec& value) {
  std::vector<std::string> texts;
  for (const auto& [rank, place] : read_moves(value, workload->ranks()))
    texts.push_back(fmt::format("{} to that of {}", rank, place));
  return std::make_unique<TransformedWorkload>(std::move(workload),
                                               fmt::format("ranks change places: {}", fmt::join(texts, ", ")));
}

}  // namespace

std::unique_ptr<Workload> transformed(std::unique_ptr<Workload> workload, const Spec& list) {
  for (const Spec& item : list.items()) {
    const auto [name, value] = change_of(item);
    workload =
        name == "move" ? described_as_moved(std::move(workload), value) : changed(std::move(workload), name, value);
  }
  return workload;
}

Placement moved(const Placement& placement, std::uint32_t ranks, const Spec& list) {
  std::vector<std::uint32_t> hosts;
  for (const Spec& item : list.items()) {
    const auto value = item.find("move");
    if (!value) continue;
    if (hosts.empty())
      for (std::uint32_t rank = 0; rank < ranks; ++rank) hosts.push_back(placement.host(rank).value());
    const std::vector<std::uint32_t> before = hosts;
    for (const auto& [rank, place] : read_moves(*value, ranks)) hosts[rank] = before[place];
  }
  return hosts.empty() ? placement : Placement::listed(hosts);
}

}  // namespace weft
