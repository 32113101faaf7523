// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `chakra`: execution traces of MLCommons Chakra, one file for each rank (docs/reference/traces.md).
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "workloads/chakra/chakra_trace.hpp"
#include "workloads/chakra/trace_files.hpp"
#include "workloads/compute/compute_noise.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

class ChakraProgram : public RankProgram {
 public:
  ChakraProgram(const ChakraTrace& trace, std::uint32_t rank) : trace_(trace), walk_(trace, rank) {}

  bool next(Operation& operation) override {
    std::optional<ChakraShape> shape;
    std::uint32_t number = 0;
    if (!walk_.next(operation, node_, shape, number)) return false;
    if (shape) operation.call = trace_.shared_call(trace_.call_id(*shape, number));
    return true;
  }
  // In the order of times it is read up to its clock.
  bool in_order_of_time() const override { return trace_.options().in_time; }
  std::size_t read_ahead() const override { return trace_.options().in_time ? 0 : trace_.options().read_ahead; }
  bool takes_what_is_ready() const override { return trace_.options().as_astra_sim || trace_.options().ready_first; }

 private:
  const ChakraTrace& trace_;
  ChakraTrace::Walk walk_;
  ChakraNode node_;
};

class ChakraWorkload : public Workload {
 public:
  ChakraWorkload(ChakraTrace trace, ComputeNoise noise) : trace_(std::move(trace)), noise_(std::move(noise)) {}

  std::uint32_t ranks() const override { return trace_.ranks(); }
  std::uint64_t call_count() const override { return trace_.call_count(); }
  CollectiveCall call(std::uint32_t id) const override { return trace_.call(id); }
  bool from_user() const override { return true; }
  std::unique_ptr<RankProgram> program(Rank rank) const override {
    WEFT_EXPECT(rank.value() < ranks(), "rank {} of {}", rank.value(), ranks());
    return with_noise(std::make_unique<ChakraProgram>(trace_, rank.value()), rank, noise_);
  }
  WorkloadEstimate estimate() const override { return trace_.estimate(); }
  std::vector<std::pair<std::string, std::string>> description() const override {
    auto lines = trace_.description();
    for (auto& line : noise_.description(ranks())) lines.push_back(std::move(line));
    return lines;
  }

 private:
  ChakraTrace trace_;
  ComputeNoise noise_;
};

NamedGroup read_chakra_group(const std::string& name, const Spec& list, const std::vector<Spec>& ranks_of_members,
                             std::uint32_t ranks) {
  NamedGroup group{name, {}};
  std::vector<std::uint32_t>& members = group.second;
  for (const Spec& member : ranks_of_members) {
    members.push_back(static_cast<std::uint32_t>(member.integer(0, std::int64_t{ranks} - 1)));
    if (std::count(members.begin(), members.end(), members.back()) > 1)
      throw member.error(fmt::format("rank {} is listed twice", members.back()));
  }
  if (members.empty()) throw list.error("no ranks; a process group has one or more");
  return group;
}

/// ASTRA-sim's communicator groups: {"1": [0, 1, 2, 3], "2": [4, 5, 6, 7]}. Those of Chakra's pg_extractor:
/// {"communicators": [{"communicatorId": 1, "nodes": [{"globalRank": 0, "rank": 0}, ...]}, ...]}.
std::vector<NamedGroup> read_chakra_groups(const Spec& value, const std::string& directory, std::uint32_t ranks) {
  const std::string path = resolve_file(value, directory, "", "");
  const Spec map = Spec::load(path);  // JSON is YAML
  std::vector<NamedGroup> groups;
  if (const auto listed = map.find("communicators"); listed && map.entries().size() == 1) {
    for (const Spec& one : listed->items()) {
      std::vector<Spec> members;
      for (const Spec& node : one.at("nodes").items()) members.push_back(node.at("globalRank"));
      groups.push_back(read_chakra_group(one.at("communicatorId").text(), one, members, ranks));
    }
    return groups;
  }
  for (const auto& [name, list] : map.entries()) groups.push_back(read_chakra_group(name, list, list.items(), ranks));
  return groups;
}

std::map<CollectiveKind, std::string> read_algorithms_of_kinds(const Spec& spec, const WorkloadContext& context) {
  std::map<CollectiveKind, std::string> algorithms;
  if (!spec.has("algorithm"))
    for (const std::string& name : collective_kind_names()) {
      const CollectiveKind kind = *parse_collective_kind(name);
      algorithms[kind] = default_algorithm(context, kind);
    }
  const auto map = spec.find("algorithms");
  if (!map) return algorithms;
  for (const std::string& name : collective_kind_names())
    if (const auto algorithm = map->find(name))
      algorithms[*parse_collective_kind(name)] = read_algorithm(*algorithm, context.directory);
  map->finish();
  return algorithms;
}

void read_chakra_device(const Spec& spec, const std::string& directory, ChakraOptions& options) {
  const auto device = spec.find("device");
  const auto precision = spec.find("precision");
  if (!device) {
    if (precision) throw precision->error("'precision' is that of a `device`, which is missing");
    return;
  }
  options.device = read_device(Spec::load(resolve_file(*device, directory, "devices", ".yaml")));
  options.precision = "bf16";
  if (precision) options.precision = precision->one_of(precision_names());
  if (!options.device->peak.contains(options.precision))
    throw(precision ? *precision : *device)
        .error(fmt::format("the device has no peak for {}; give a `precision` that it has", options.precision));
}

class ChakraReader : public WorkloadReader {
 public:
  std::unique_ptr<Workload> read(const Spec& spec, const WorkloadContext& context) const override {
    static_cast<void>(spec.find("kind"));
    const Spec where = spec.at("file");
    std::vector<ChakraFile> files;
    for (const std::string& path :
         trace_files_of_ranks(where, context.directory, {".et", ".et.gz", ".json", ".json.gz"}))
      files.push_back({path, ""});
    const std::uint32_t ranks = require_ranks(where, static_cast<std::int64_t>(files.size()), context);
    if (const auto wanted = spec.find("ranks"); wanted && wanted->integer() != ranks)
      throw wanted->error(fmt::format("the trace has files of {} ranks", ranks));
    ChakraOptions options;
    if (const auto issue = spec.find("issue")) {
      const std::string how = issue->one_of({"astra_sim", "streams", "ready", "times"});
      options.as_astra_sim = how == "astra_sim";
      options.ready_first = how == "ready";
      options.in_time = how == "times";
    }
    if (const auto dependencies = spec.find("dependencies"))
      options.control = dependencies->one_of({"all", "data"}) == "all";
    if (const auto groups = spec.find("groups")) options.groups = read_chakra_groups(*groups, context.directory, ranks);
    if (const auto memory = spec.find("memory")) {
      if (const auto latency = memory->find("latency")) options.memory_latency = latency->time();
      options.memory_rate = memory->at("bandwidth").bandwidth();
      memory->finish();
    }
    if (const auto ahead = spec.find("read_ahead"))
      options.read_ahead = static_cast<std::size_t>(ahead->integer(1, std::numeric_limits<std::uint32_t>::max()));
    read_chakra_device(spec, context.directory, options);
    options.collectives = read_collective_options(spec, context);
    options.algorithms = read_algorithms_of_kinds(spec, context);
    ComputeNoise noise;
    if (const auto map = spec.find("compute_noise")) noise = {*map, ranks, context.seed};
    spec.finish();
    return std::make_unique<ChakraWorkload>(ChakraTrace(std::move(files), std::move(options), where, context),
                                            std::move(noise));
  }
};

const Registration<WorkloadReader, ChakraReader> chakra_registration("chakra",
                                                                     "Chakra execution traces, a file for each rank");

}  // namespace
}  // namespace weft
