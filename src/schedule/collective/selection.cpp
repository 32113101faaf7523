// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/collective/selection.hpp"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "support/basics/kept_for_command.hpp"
#include "support/documents/spec.hpp"
#include "support/system/data_directory.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// A line of a table; a call that meets all its conditions gets its choice.
struct Rule {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t ranks_from = 0;
  std::int64_t ranks_up_to = std::numeric_limits<std::int64_t>::max();
  std::int64_t servers_from = 0;
  std::int64_t servers_up_to = std::numeric_limits<std::int64_t>::max();
  std::int64_t bytes_up_to = std::numeric_limits<std::int64_t>::max();
  std::int64_t block_up_to = std::numeric_limits<std::int64_t>::max();  ///< S / n
  std::optional<bool> power_of_two;
  Selection choice;

  bool meets(const CollectiveCall& call) const {
    const std::int64_t ranks = call.communicator->size();
    const std::int64_t servers = ranks / std::max(1U, call.tuning.ranks_per_server);
    return call.kind == kind && ranks >= ranks_from && ranks <= ranks_up_to && servers >= servers_from &&
           servers <= servers_up_to && call.size.count() <= bytes_up_to && call.size.count() / ranks <= block_up_to &&
           (!power_of_two || *power_of_two == std::has_single_bit(call.communicator->size()));
  }
};

void read_count(const Spec& spec, const std::string& key, std::int64_t& value) {
  if (const auto found = spec.find(key)) value = found->integer(0);
}
void read_bytes(const Spec& spec, const std::string& key, std::int64_t& value) {
  if (const auto found = spec.find(key)) value = found->bytes().count();
}

Rule read_rule(const Spec& spec) {
  Rule rule;
  rule.kind = *parse_collective_kind(spec.at("kind").one_of(collective_kind_names()));
  read_count(spec, "ranks_from", rule.ranks_from);
  read_count(spec, "ranks_up_to", rule.ranks_up_to);
  read_count(spec, "servers_from", rule.servers_from);
  read_count(spec, "servers_up_to", rule.servers_up_to);
  read_bytes(spec, "bytes_up_to", rule.bytes_up_to);
  read_bytes(spec, "block_up_to", rule.block_up_to);
  if (const auto value = spec.find("power_of_two")) rule.power_of_two = value->boolean();
  const Spec algorithm = spec.at("algorithm");
  rule.choice.algorithm = algorithm.one_of(CollectiveRegistry::instance().names());
  if (!find_collective(rule.choice.algorithm)->supports(rule.kind))
    throw algorithm.error(fmt::format("'{}' has no {}", rule.choice.algorithm, to_text(rule.kind)));
  if (const auto value = spec.find("protocol"))
    rule.choice.protocol = *parse_protocol(value->one_of({"simple", "ll", "ll128"}));
  if (const auto value = spec.find("channels"))
    rule.choice.channels = static_cast<std::uint32_t>(value->integer(1, 1024));
  if (const auto value = spec.find("chunk_size")) rule.choice.chunk = value->bytes();
  rule.choice.reason = spec.where().text() + " says so";
  spec.finish();
  return rule;
}

class Table final : public CollectiveSelector {
 public:
  explicit Table(const std::string& path) : path_(path) {
    const Spec spec = Spec::load(path);
    for (const Spec& rule : spec.at("rules").items()) rules_.push_back(read_rule(rule));
    spec.finish();
  }
  Selection select(const CollectiveCall& call, const SelectionContext& /*context*/) const override {
    for (const Rule& rule : rules_)
      if (rule.meets(call)) return rule.choice;
    throw InputError(SourceLine{path_, 0},
                     fmt::format("no rule is for {} of {} B over {} ranks; add one without conditions",
                                 to_text(call.kind), call.size.count(), call.communicator->size()));
  }

 private:
  std::string path_;
  std::vector<Rule> rules_;
};

fs::path folder() { return data_directory("collectives") / "selections"; }

/// The table of that name, or an empty path.
fs::path table_of(const std::string& name) {
  std::error_code ignored;
  if (name.ends_with(".yaml")) return fs::is_regular_file(name, ignored) ? fs::path(name) : fs::path();
  const fs::path ready = folder() / (name + ".yaml");
  return fs::is_regular_file(ready, ignored) ? ready : fs::path();
}

}  // namespace

std::shared_ptr<const CollectiveSelector> find_selector(const std::string& name) {
  static KeptForCommand<std::string, std::shared_ptr<const CollectiveSelector>> kept;
  auto& made = kept.values();
  if (const auto known = made.find(name); known != made.end()) return known->second;
  if (const auto* entry = SelectorRegistry::instance().find(name)) return made[name] = entry->make();
  if (CollectiveRegistry::instance().find(name) != nullptr) return nullptr;
  const fs::path table = table_of(name);
  if (table.empty()) return nullptr;
  return made[name] = std::make_shared<Table>(table.string());
}

std::string apply_selection(CollectiveCall& call, const SelectionContext& context) {
  const auto selector = find_selector(call.algorithm);
  if (!selector) return {};
  const Selection choice = selector->select(call, context);
  call.algorithm = choice.algorithm;
  call.tuning.protocol = choice.protocol;
  if (choice.channels != 0) call.tuning.channels = choice.channels;
  if (choice.chunk.count() != 0) call.tuning.chunk = choice.chunk;
  return choice.reason;
}

std::string algorithm_of_network(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return "nccl_p2p";
    case CollectiveKind::barrier:
      return "double_binary_tree";
    default:
      return "ring";
  }
}

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names = CollectiveRegistry::instance().names();
  for (const std::string& name : SelectorRegistry::instance().names()) names.push_back(name);
  std::vector<std::string> tables;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder(), ignored))
    if (entry.path().extension() == ".yaml") tables.push_back(entry.path().stem().string());
  std::sort(tables.begin(), tables.end());
  names.insert(names.end(), tables.begin(), tables.end());
  return names;
}

}  // namespace weft
