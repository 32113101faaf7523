// SPDX-License-Identifier: GPL-2.0-only
// Common code of workload readers: ranks, options of collectives, files beside the experiment, volumes.
#include "workloads/reading/reading.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedule/collective/countable.hpp"
#include "schedule/collective/selection.hpp"
#include "support/documents/text_file.hpp"
#include "support/system/data_directory.hpp"
#include "workloads/reading/collective_kernel.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t max_of_31_bits = std::numeric_limits<std::int32_t>::max();

std::uint32_t read_count(const Spec& spec, const std::string& key, std::uint32_t otherwise) {
  const auto value = spec.find(key);
  return value ? static_cast<std::uint32_t>(value->integer(1, max_of_31_bits)) : otherwise;
}

/// Names of the files with this extension in a folder, without it, sorted.
std::vector<std::string> names_in(const fs::path& folder, const std::string& extension) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == extension) names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// Which of the words it is. Throws InputError if it is none.
std::size_t index_of(const Spec& value, const std::vector<std::string>& words) {
  const std::string word = value.one_of(words);
  return static_cast<std::size_t>(std::find(words.begin(), words.end(), word) - words.begin());
}

struct Sent {
  std::uint64_t messages = 0;
  std::int64_t bytes = 0;
};

/// What one member sends: its steps' slices, over all lanes.
Sent sent_by(const CollectiveCall& call, std::uint32_t index) {
  const auto algorithm = find_collective(call.algorithm);
  Sent sent;
  for (std::uint32_t lane = 0; lane < algorithm->lanes(call); ++lane) {
    const auto steps = algorithm->steps(call, index, lane);
    for (Step step; steps->next(step);)
      if (sends(step.primitive)) {
        sent.messages +=
            static_cast<std::uint64_t>((step.bytes + step.slice - Bytes(1)) / step.slice) * step.send_count();
        sent.bytes += step.bytes.count() * step.send_count();
      }
  }
  return sent;
}

/// What `count` members from `first` on send together, from a sample of them.
struct SentByMany {
  std::uint64_t messages = 0;
  unsigned __int128 bytes = 0;
  bool alike = true;  ///< each of the sample sends as many bytes
};
SentByMany sent_by_many(const CollectiveCall& call, std::uint32_t first, std::uint32_t count) {
  constexpr std::uint32_t max = 16;
  const std::uint32_t every = std::max(1U, count / max);
  SentByMany all;
  std::uint32_t asked = 0;
  std::int64_t of_first = 0;
  for (std::uint32_t index = 0; index < count; index += every, ++asked) {
    const Sent sent = sent_by(call, first + index);
    if (index == 0) of_first = sent.bytes;
    all.messages += sent.messages;
    all.bytes += static_cast<unsigned __int128>(sent.bytes);
    all.alike &= sent.bytes == of_first;
  }
  if (asked == 0) return all;
  all.messages = all.messages * count / asked;
  all.bytes = all.bytes * count / asked;
  return all;
}

}  // namespace

namespace {

/// The known facts about the members' servers.
void attach_graph(const Spec& where, CollectiveCall& call, const WorkloadContext& context) {
  call.graph = context.channel_graphs(*call.communicator);
  if (!call.graph) return;
  std::uint32_t& given = call.tuning.ranks_per_server;
  if (given > 1 && given != call.graph->per_server() && given < call.communicator->size())
    throw where.error(fmt::format("ranks_per_server: found {}, but {}; leave it out: weft knows where ranks are", given,
                                  call.graph->per_server() != 0
                                      ? fmt::format("these ranks are on servers with {} each", call.graph->per_server())
                                      : "these ranks are not dealt to servers evenly and in order"));
  given = call.graph->per_server();
}

}  // namespace

std::string listed(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

std::string read_algorithm(const Spec& value, const std::string& directory) {
  const std::string name = value.text();
  if (is_schedule_file(name)) {
    const std::string path = resolve_file(value, directory, "", "");
    static_cast<void>(find_collective(path));  // reports errors in its content
    return path;
  }
  if (CollectiveRegistry::instance().find(name) == nullptr && find_selector(name) == nullptr) {
    const auto known = CollectiveRegistry::instance().names();
    throw value.error(fmt::format("unknown algorithm '{}'{}; known here: {}", name,
                                  did_you_mean(name, algorithm_names()), listed(known)));
  }
  return name;
}

namespace {

DimensionAlgorithms::List dimension_list(const Spec& spec) {
  DimensionAlgorithms::List list;
  for (const Spec& name : spec.items()) {
    const auto entry = parse_dimension_entry(name.text());
    list.push_back(
        entry ? *entry
              : DimensionAlgorithms::Entry{*parse_dimension_algorithm(name.one_of(dimension_algorithm_names())), 0});
  }
  if (list.empty()) throw spec.error("an empty list; expected one algorithm or more");
  return list;
}

/// A list for all kinds of collectives, or a map of lists.
DimensionAlgorithms read_dimension_algorithms(const Spec& spec) {
  DimensionAlgorithms algorithms;
  if (!spec.is_map()) {
    algorithms.all = dimension_list(spec);
    return algorithms;
  }
  for (const auto& [name, list] : spec.entries()) {
    const auto kind = parse_collective_kind(name);
    if (!kind)
      throw list.error(fmt::format("'{}' is no kind of collective; known: {}", name, listed(collective_kind_names())));
    algorithms.of_kind[*kind] = dimension_list(list);
  }
  return algorithms;
}

}  // namespace

std::string default_algorithm(const WorkloadContext& context, CollectiveKind kind) {
  return context.nccl ? "nccl" : algorithm_of_network(kind);
}

CollectiveSettings read_collective_options(const Spec& spec, const WorkloadContext& context) {
  CollectiveSettings options;
  const auto algorithm = spec.find("algorithm");
  options.algorithm_named = algorithm.has_value();
  options.algorithm = algorithm ? read_algorithm(*algorithm, context.directory)
                                : default_algorithm(context, CollectiveKind::all_reduce);
  // NCCL has at most 64 (MAXCHANNELS, src/include/device.h), and each takes memory on every rank.
  constexpr std::int64_t max_channels = 1024;
  options.tuning.channels = 0;
  if (const auto channels = spec.find("channels"))
    options.tuning.channels = static_cast<std::uint32_t>(channels->integer(1, max_channels));
  options.tuning.slices = read_count(spec, "slices_per_chunk", options.tuning.slices);
  options.tuning.credits = read_count(spec, "credits", options.tuning.credits);
  if (const auto chunk = spec.find("chunk_size")) {
    options.tuning.chunk = chunk->bytes();
    if (options.tuning.chunk == Bytes(0)) throw chunk->error("a chunk of 0 B never gets anywhere; give at least 1 B");
  }
  // 8 steps of at least an alignment each.
  constexpr Bytes least_buffer(128);
  for (const auto& [key, bytes] :
       {std::pair("buffer_size", &options.tuning.buffer), std::pair("p2p_chunk_size", &options.tuning.p2p_chunk)}) {
    const auto value = spec.find(key);
    if (!value) continue;
    *bytes = value->bytes();
    if (*bytes < least_buffer) throw value->error(fmt::format("found {} B; expected at least 128 B", bytes->count()));
  }
  if (const auto protocol = spec.find("protocol"))
    options.tuning.protocol = *parse_protocol(protocol->one_of({"simple", "ll", "ll128"}));
  options.tuning.ranks_per_server = read_count(spec, "ranks_per_server", 0);
  options.tuning.ranks_per_leaf = read_count(spec, "ranks_per_leaf", 0);
  if (const auto dimensions = spec.find("dimensions"))
    for (const Spec& size : dimensions->items())
      options.tuning.dimensions.push_back(static_cast<std::uint32_t>(size.integer(1, max_of_31_bits)));
  if (const auto algorithms = spec.find("dimension_algorithms"))
    options.tuning.dimension_algorithms = read_dimension_algorithms(*algorithms);
  options.tuning.splits = read_count(spec, "splits", 0);
  if (const auto whole = spec.find("each_dimension_whole")) options.tuning.each_dimension_whole = whole->boolean();
  read_kernel_device(spec, context.directory, options.tuning);
  read_latencies(spec, options.tuning);
  if (const auto kernel = spec.find("collective_kernel")) options.tuning.kernel = kernel->text();
  if (const auto transport = spec.find("collective_transport")) options.tuning.transport = transport->text();
  if (const auto level = spec.find("kernel_constants"))
    options.tuning.constants = static_cast<ConstantsLevel>(index_of(*level, {"low", "mid", "high"}));
  if (const auto version = spec.find("nccl_version"))
    options.tuning.nccl_version =
        static_cast<NcclVersion>(index_of(*version, {nccl_version_names.begin(), nccl_version_names.end()}));
  if (const auto time = spec.find("launch_latency")) options.tuning.launch = time->time();
  if (const auto time = spec.find("step_latency")) options.tuning.step_latency = time->time();
  if (const auto rate = spec.find("reduce_rate")) options.tuning.reduce_rate = rate->bandwidth();
  if (const auto rate = spec.find("copy_rate")) options.tuning.copy_rate = rate->bandwidth();
  return options;
}

std::string algorithm_of(const CollectiveSettings& settings, const WorkloadContext& context, CollectiveKind kind) {
  return settings.algorithm_named ? settings.algorithm : default_algorithm(context, kind);
}

void settle_call(const Spec& where, CollectiveCall& call, const WorkloadContext& context) {
  if (context.channel_graphs) attach_graph(where, call, context);
  if (call.kind == CollectiveKind::barrier && call.size.count() == 0) call.size = Bytes(1);
  // One message's latency is not known before there is a route; a switch or two are in the way in any machine.
  const bool nccl = call.algorithm == "nccl" || call.algorithm == "nccl_ring" || call.algorithm == "nccl_tree";
  apply_selection(call, {Time::from_us(2), context.host_rate, context.switches_reduce});
  if (!is_schedule_file(call.algorithm)) require_support(where, call.algorithm, call.kind);
  const auto algorithm = find_collective(call.algorithm);
  if (!algorithm->supports(call.kind))
    throw where.error(fmt::format("'{}' is no {}", call.algorithm, to_text(call.kind)));
  if (call.tuning.channels == 0) call.tuning.channels = algorithm->usual_channels(call);
  call.tuning.protocol = algorithm->fixed_protocol().value_or(call.tuning.protocol);
  const std::string reason = algorithm->refuses(call);
  if (!reason.empty()) throw where.error(fmt::format("'{}' cannot do this: {}", call.algorithm, reason));
  settle_kernel(where, call);
  settle_collective_kernel(where, call, nccl);
  if (!context.switches_reduce && algorithm->aggregators(call) > 0)
    throw where.error(
        fmt::format("'{}' needs switches that reduce, and this machine has none; give its topology `switch_reduction` "
                    "(docs/reference/topologies.md), or choose another algorithm",
                    call.algorithm));
}

void require_support(const Spec& where, const std::string& algorithm, CollectiveKind kind) {
  std::vector<std::string> capable;
  for (const auto& [name, entry] : CollectiveRegistry::instance().entries()) {
    if (!entry.make()->supports(kind)) continue;
    if (name == algorithm) return;
    capable.push_back(name);
  }
  throw where.error(fmt::format("the algorithm '{}' cannot do '{}'; {}", algorithm, to_text(kind),
                                capable.empty() ? "nor can any other here" : "use one of: " + listed(capable)));
}

std::uint32_t require_ranks(const Spec& value, std::int64_t ranks, const WorkloadContext& context) {
  if (ranks < 1) throw value.error(fmt::format("{} ranks; give at least 1", ranks));
  if (ranks > context.hosts)
    throw value.error(fmt::format("{} ranks, but the machine has {} hosts; use fewer ranks or a larger topology", ranks,
                                  context.hosts));
  return static_cast<std::uint32_t>(ranks);
}

std::uint32_t read_root(const Spec& spec, CollectiveKind kind, std::uint32_t size) {
  const auto root = spec.find("root");
  if (!root) return 0;
  if (!has_root(kind))
    throw root->error(
        fmt::format("'{}' has no root; only broadcast, reduce, gather and scatter have one", to_text(kind)));
  const std::int64_t index = root->integer();
  if (index < 0 || index >= size)
    throw root->error(
        fmt::format("the root {} is out of range: the communicator has members 0 to {}", index, size - 1));
  return static_cast<std::uint32_t>(index);
}

std::string resolve_file(const Spec& value, const std::string& directory, const std::string& folder,
                         const std::string& extension) {
  const std::string name = value.text();
  const fs::path base(directory);
  std::error_code ignored;
  if (const fs::path path = base / name; fs::is_regular_file(path, ignored)) return path.string();
  const std::string missing = fmt::format("there is no file '{}'", (base / name).string());
  if (folder.empty()) throw value.error(missing + hint_for_missing(base / name));
  const std::vector<fs::path> folders{base / folder, data_directory("workloads") / folder};
  const std::string file = name.ends_with(extension) ? name : name + extension;
  std::vector<std::string> known;
  for (const auto& candidate : folders) {
    if (const fs::path path = candidate / file; fs::is_regular_file(path, ignored)) return path.string();
    for (const auto& found : names_in(candidate, extension)) known.push_back(found);
  }
  if (known.empty()) throw value.error(missing + hint_for_missing(base / name));
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  const std::string near = did_you_mean(name, known);
  throw value.error(fmt::format("{}, and no '{}' in '{}'{}; known here: {}", missing, file, folders.front().string(),
                                near.empty() ? hint_for_missing(base / name) : near, listed(known)));
}

WorkloadEstimate estimate_call(const CollectiveCall& whole) {
  WorkloadEstimate estimate;
  const std::uint32_t n = whole.communicator->size();
  if (n < 2 || whole.size == Bytes(0)) return estimate;
  const auto [call, times] = countable(whole);
  const auto all_of = [times = times](std::uint64_t messages) {
    return times > 1 ? static_cast<std::uint64_t>(std::min(static_cast<double>(messages) * times, 0x1p63)) : messages;
  };
  const unsigned __int128 once = static_cast<unsigned __int128>(whole.size.count()) * (n - 1);
  estimate.bytes = saturated(call.kind == CollectiveKind::all_reduce ? 2 * once : once);
  // In a ring all members send the same, but in a chain its end does not send: the root sends in a broadcast, and is
  // the one that does not in a reduce. In other patterns some members are sampled.
  const bool chain = call.kind == CollectiveKind::broadcast || call.kind == CollectiveKind::reduce;
  if (call.algorithm == "ring") {
    const std::uint32_t sender = !chain ? 0 : call.kind == CollectiveKind::broadcast ? call.root : (call.root + 1) % n;
    estimate.messages = all_of(sent_by(call, sender).messages * (chain ? n - 1 : n));
    return estimate;
  }
  const SentByMany members = sent_by_many(call, 0, n);
  const SentByMany switches = sent_by_many(call, n, find_collective(call.algorithm)->aggregators(call));
  estimate.messages = all_of(members.messages);
  // Where all members send the same, that is known; with recursive doubling it is more than the least. Switches that
  // reduce send to all members.
  if (members.alike || switches.bytes > 0) {
    const unsigned __int128 sum = members.bytes + switches.bytes;
    estimate.bytes = saturated(times > 1 ? static_cast<unsigned __int128>(static_cast<double>(sum) * times) : sum);
  }
  return estimate;
}

Bytes read_size(const Spec& spec, CollectiveKind kind) {
  if (kind != CollectiveKind::barrier) return spec.at("size").bytes();
  const auto size = spec.find("size");
  return size ? size->bytes() : Bytes(1);
}

Bytes saturated(unsigned __int128 bytes) {
  constexpr std::int64_t max = std::numeric_limits<std::int64_t>::max();
  return Bytes(bytes > static_cast<unsigned __int128>(max) ? max : static_cast<std::int64_t>(bytes));
}

std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

}  // namespace weft
