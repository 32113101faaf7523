// SPDX-License-Identifier: GPL-2.0-only
// Reading a trace of per-rank operations from YAML.
#include "workloads/importers/program_trace.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "workloads/compute/operator_times.hpp"
#include "workloads/importers/program_calls.hpp"
#include "workloads/importers/program_names.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

constexpr std::int64_t max_of_32_bits = std::numeric_limits<std::uint32_t>::max();
const std::vector<std::string> what_keys{"compute", "collective", "send", "recv"};
const std::vector<std::string> other_keys{"rank",       "slowdown",     "id",        "after",  "stream", "not_before",
                                          "label",      "size",         "root",      "to",     "from",   "tag",
                                          "queue_pair", "communicator", "algorithm", "tuning", "call",   "blocks"};

class TraceReader {
 public:
  TraceReader(const Spec& spec, const WorkloadContext& context)
      : spec_(spec), context_(context), ranks_(count(spec.at("ranks"), context)) {
    trace_.ranks = ranks_.count();
  }

  Trace read() {
    trace_.items_of_ranks.resize(trace_.ranks);
    CallReader calls(spec_, context_, ranks_, trace_);
    read_compute_times();
    calls.read_named(spec_);
    if (const auto ahead = spec_.find("read_ahead"))
      trace_.read_ahead = static_cast<std::size_t>(ahead->integer(1, max_of_32_bits));
    const std::vector<Spec> items = spec_.at("operations").items();
    if (items.size() > max_of_32_bits) throw spec_.at("operations").error("more than 2^32 - 1 operations");
    OperationNames ids(items, trace_.ranks, trace_.names);
    for (const Spec& item : items) read_operation(item, calls, ids);
    trace_.slowdown = std::max(trace_.slowdown, max_own_slowdown_);
    spec_.finish();
    calls.finish();
    if (times_)
      for (const std::string& kernel : times_->missing()) trace_.remarks.emplace_back("not measured", kernel);
    require_matching(trace_, items);
    return std::move(trace_);
  }

 private:
  static std::uint32_t count(const Spec& ranks, const WorkloadContext& context) {
    return require_ranks(ranks, ranks.integer(), context);
  }

  void read_compute_times() {
    if (spec_.has("device")) {
      times_ = read_operator_times(spec_, context_.directory);
      trace_.slowdown = times_->device().slowdown_while_communicating;
      trace_.remarks.emplace_back("device", times_->device().name);
    }
    if (const auto noise = spec_.find("compute_noise")) trace_.noise = {*noise, trace_.ranks, context_.seed};
    if (const auto slowdown = spec_.find("compute_slowdown_while_communicating"))
      trace_.slowdown = slowdown->number(1, max_slowdown);
  }

  /// A time, or a kernel of the program's device.
  Time read_compute(const Spec& value) const {
    if (!value.is_map()) return value.time();
    if (!times_) throw value.error("a kernel needs to know its 'device', which the program does not say");
    return times_->of(read_kernel(value, times_->device()));
  }

  void read_operation(const Spec& item, CallReader& calls, OperationNames& ids) {
    if (!item.is_map()) throw item.error("an operation is a map, such as {rank: 0, compute: 10 us}");
    TraceOperation entry;
    Operation& operation = entry.operation;
    operation.line = static_cast<std::uint32_t>(std::max(item.where().line, 0));
    read_what(item, calls, entry);
    if (const auto stream = item.find("stream")) {
      const std::vector<std::string> names = stream_names();
      const auto name = std::find(names.begin(), names.end(), stream->one_of(names));
      operation.stream = static_cast<Stream>(name - names.begin());
      if (operation.stream == Stream::host) operation.worker = Worker::host;
    }
    if (const auto time = item.find("not_before")) operation.not_before = time->time();
    const auto id = item.find("id");
    const auto label = item.find("label");
    operation.label = label ? label->text() : id ? id->text() : "";
    ids.read_after(item, entry);
    if (id) ids.define(*id, entry.ranks, static_cast<std::uint32_t>(trace_.operations.size()));
    item.finish();
    add(std::move(entry));
  }

  /// The one key that gives the operation's kind, and the keys that it allows.
  void read_what(const Spec& item, CallReader& calls, TraceOperation& entry) {
    std::vector<std::string> found;
    for (const auto& key : what_keys)
      if (item.has(key)) found.push_back(key);
    if (found.size() != 1)
      throw item.error(fmt::format("an operation has exactly one of compute, collective, send, recv; found {}",
                                   found.empty() ? "none" + misspelt(item) : listed(found)));
    if (found[0] == "collective") return calls.read(item, entry);
    entry.ranks = ranks_.read_set(item.at("rank"));
    if (found[0] != "compute") return read_transfer(item, found[0] == "send", entry);
    entry.operation.kind = Operation::Kind::compute;
    entry.operation.stream = Stream::compute;
    entry.operation.duration = read_compute(item.at("compute"));
    entry.operation.slowdown = trace_.slowdown;
    if (const auto value = item.find("slowdown")) entry.operation.slowdown = value->number(1, max_slowdown);
    max_own_slowdown_ = std::max(max_own_slowdown_, entry.operation.slowdown);
  }

  /// " (did you mean ...?)" for a key of the operation that is nearly one of those.
  static std::string misspelt(const Spec& item) {
    for (const auto& [key, value] : item.entries())
      if (std::find(other_keys.begin(), other_keys.end(), key) == other_keys.end())
        if (const std::string hint = did_you_mean(key, what_keys); !hint.empty())
          return fmt::format(", but an unknown key '{}'{}", key, hint);
    return {};
  }

  void read_transfer(const Spec& item, bool send, TraceOperation& entry) const {
    Operation& operation = entry.operation;
    operation.kind = send ? Operation::Kind::send : Operation::Kind::recv;
    operation.bytes = item.at(send ? "send" : "recv").bytes();
    read_peers(item.at(send ? "to" : "from"), send, entry);
    if (const auto tag = item.find("tag")) operation.tag = static_cast<std::uint32_t>(tag->integer(0, max_of_32_bits));
    if (!send) return;
    if (const auto pair = item.find("queue_pair"))
      operation.queue_pair = static_cast<std::uint32_t>(pair->integer(0, 65535));
  }

  /// A rank, or as many as the operation has, each the peer of one.
  void read_peers(const Spec& peer, bool send, TraceOperation& entry) const {
    const auto& ranks = entry.ranks.ranks;
    const auto self = [&](std::uint32_t rank) {
      return peer.error(fmt::format("rank {} would {} itself", rank, send ? "send to" : "receive from"));
    };
    if (!peer.is_sequence()) {
      entry.operation.peer = Rank(ranks_.read(peer));
      const std::uint32_t rank = entry.operation.peer.value();
      if (entry.ranks.all || std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) throw self(rank);
      return;
    }
    if (entry.ranks.all || peer.size() != ranks.size())
      throw peer.error(
          fmt::format("{} ranks; a list names one for each rank of the operation, in the order of a list "
                      "`rank`, which has {}",
                      peer.size(), entry.ranks.all ? "none here" : std::to_string(ranks.size())));
    for (const Spec& one : peer.items()) {
      entry.peers.push_back(ranks_.read(one));
      if (entry.peers.back() == ranks[entry.peers.size() - 1]) throw self(entry.peers.back());
    }
  }

  void add(TraceOperation entry) {
    const auto item = static_cast<std::uint32_t>(trace_.operations.size());
    if (entry.ranks.all) trace_.items_of_all.push_back(item);
    for (const std::uint32_t rank : entry.ranks.ranks) trace_.items_of_ranks[rank].push_back(item);
    trace_.operations.push_back(std::move(entry));
  }

  const Spec& spec_;
  const WorkloadContext& context_;
  ProgramRanks ranks_;
  Trace trace_;
  double max_own_slowdown_ = 1;  // of its operations
  std::optional<OperatorTimes> times_;
};

}  // namespace

Trace read_trace(const Spec& spec, const WorkloadContext& context) { return TraceReader(spec, context).read(); }

}  // namespace weft
