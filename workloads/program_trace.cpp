// SPDX-License-Identifier: GPL-2.0-only
// Reading a trace of per-rank operations from YAML.
#include "workloads/program_trace.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "workloads/operator_times.hpp"
#include "workloads/reading.hpp"

namespace weft {
namespace {

constexpr std::int64_t most_of_32_bits = std::numeric_limits<std::uint32_t>::max();
const std::vector<std::string> what_keys{"compute", "collective", "send", "recv"};
const std::vector<std::string> other_keys{"rank", "id", "after", "stream", "not_before", "label",        "size",
                                          "root", "to", "from",  "tag",    "queue_pair", "communicator", "algorithm"};

class TraceReader {
 public:
  TraceReader(const Spec& spec, const WorkloadContext& context) : spec_(spec), context_(context) {}

  Trace read() {
    const Spec ranks = spec_.at("ranks");
    trace_.ranks = require_ranks(ranks, ranks.integer(), context_);
    trace_.items_of_ranks.resize(trace_.ranks);
    options_ = read_collective_options(spec_, context_);
    read_compute_times();
    read_communicators();
    const std::vector<Spec> items = spec_.at("operations").items();
    if (items.size() > most_of_32_bits) throw spec_.at("operations").error("more than 2^32 - 1 operations");
    for (std::uint32_t i = 0; i < items.size(); ++i)
      if (items[i].is_map())
        if (const auto id = items[i].find("id")) lines_.try_emplace(id->text(), id->where().line);
    for (const Spec& item : items) read_operation(item);
    spec_.finish();
    if (times_)
      for (const std::string& kernel : times_->missing()) trace_.remarks.emplace_back("not measured", kernel);
    require_matching(trace_, items);
    return std::move(trace_);
  }

 private:
  void read_compute_times() {
    if (spec_.has("device")) {
      times_ = read_operator_times(spec_, context_.directory);
      trace_.slowdown = times_->device().slowdown_while_communicating;
      trace_.remarks.emplace_back("device", times_->device().name);
    }
    if (const auto noise = spec_.find("compute_noise")) trace_.noise = {*noise, trace_.ranks, context_.seed};
    if (const auto slowdown = spec_.find("compute_slowdown_while_communicating"))
      trace_.slowdown = slowdown->number(1, most_slowdown);
  }

  /// A time, or a kernel of the program's device.
  Time read_compute(const Spec& value) const {
    if (!value.is_map()) return value.time();
    if (!times_) throw value.error("a kernel needs to know its 'device', which the program does not say");
    return times_->of(read_kernel(value, times_->device()));
  }

  void read_communicators() {
    trace_.communicators.emplace_back(0, trace_.ranks);
    communicators_.emplace("all", 0);
    const auto map = spec_.find("communicators");
    if (!map) return;
    for (const auto& [name, value] : map->entries()) {
      const auto id = static_cast<std::uint32_t>(trace_.communicators.size());
      const RankSet members = read_rank_set(value);
      if (name == "all" && !members.all)
        throw value.error("'all' is the communicator of all ranks; choose another name");
      if (members.all)
        trace_.communicators.emplace_back(id, trace_.ranks);
      else
        trace_.communicators.emplace_back(id, to_ranks(members.ranks));
      communicators_.insert_or_assign(name, id);
    }
  }

  static std::vector<Rank> to_ranks(const std::vector<std::uint32_t>& numbers) {
    std::vector<Rank> ranks;
    for (const std::uint32_t number : numbers) ranks.emplace_back(number);
    return ranks;
  }

  std::uint32_t read_rank(const Spec& value) const {
    const std::int64_t rank = value.integer();
    if (rank < 0 || rank >= trace_.ranks)
      throw value.error(fmt::format("rank {} is out of range: the program has ranks 0 to {}", rank, trace_.ranks - 1));
    return static_cast<std::uint32_t>(rank);
  }

  /// A number, a list of different numbers, or `all`.
  RankSet read_rank_set(const Spec& value) const {
    if (!value.is_sequence()) {
      if (value.is_scalar() && value.text() == "all") return {true, {}};
      return {false, {read_rank(value)}};
    }
    RankSet set;
    for (const Spec& item : value.items()) set.ranks.push_back(read_rank(item));
    if (set.ranks.empty()) throw value.error("no ranks; give a number, a list of numbers, or 'all'");
    auto sorted = set.ranks;
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
      throw value.error(fmt::format("rank {} is listed twice", *twice));
    return set;
  }

  void read_operation(const Spec& item) {
    if (!item.is_map()) throw item.error("an operation is a map, such as {rank: 0, compute: 10 us}");
    TraceOperation entry;
    Operation& operation = entry.operation;
    operation.line = static_cast<std::uint32_t>(std::max(item.where().line, 0));
    read_what(item, entry);
    if (const auto stream = item.find("stream")) {
      const std::vector<std::string> names = stream_names();
      const auto name = std::find(names.begin(), names.end(), stream->one_of(names));
      operation.stream = static_cast<Stream>(name - names.begin());
    }
    if (const auto time = item.find("not_before")) operation.not_before = time->time();
    const auto id = item.find("id");
    const auto label = item.find("label");
    operation.label = label ? label->text() : id ? id->text() : "";
    read_after(item, entry);
    if (id) define(*id, entry.ranks);
    item.finish();
    add(std::move(entry));
  }

  /// The one key that says what the operation does, and those that go with it.
  void read_what(const Spec& item, TraceOperation& entry) {
    std::vector<std::string> found;
    for (const auto& key : what_keys)
      if (item.has(key)) found.push_back(key);
    if (found.size() != 1)
      throw item.error(fmt::format("an operation has exactly one of compute, collective, send, recv; found {}",
                                   found.empty() ? "none" + misspelt(item) : listed(found)));
    if (found[0] == "collective") return read_collective(item, entry);
    entry.ranks = read_rank_set(item.at("rank"));
    if (found[0] != "compute") return read_transfer(item, found[0] == "send", entry);
    entry.operation.kind = Operation::Kind::compute;
    entry.operation.stream = Stream::compute;
    entry.operation.duration = read_compute(item.at("compute"));
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
    const Spec peer = item.at(send ? "to" : "from");
    operation.peer = Rank(read_rank(peer));
    const auto& ranks = entry.ranks.ranks;
    if (entry.ranks.all || std::find(ranks.begin(), ranks.end(), operation.peer.value()) != ranks.end())
      throw peer.error(
          fmt::format("rank {} would {} itself", operation.peer.value(), send ? "send to" : "receive from"));
    if (const auto tag = item.find("tag")) operation.tag = static_cast<std::uint32_t>(tag->integer(0, most_of_32_bits));
    if (!send) return;
    if (const auto pair = item.find("queue_pair"))
      operation.queue_pair = static_cast<std::uint32_t>(pair->integer(0, 65535));
  }

  void read_collective(const Spec& item, TraceOperation& entry) {
    const Spec what = item.at("collective");
    CollectiveCall call;
    call.id = static_cast<std::uint32_t>(trace_.calls.size());
    call.kind = *parse_collective_kind(what.one_of(collective_kind_names()));
    call.communicator = &trace_.communicators[read_communicator(item)];
    call.size = read_size(item, call.kind);
    call.root = read_root(item, call.kind, call.communicator->size());
    const auto algorithm = item.find("algorithm");
    call.algorithm = algorithm ? read_algorithm(*algorithm, context_.directory) : options_.algorithm;
    call.tuning = options_.tuning;
    settle_call(what, call, context_);
    call.where = item.where();
    const auto label = item.find("label");
    const auto id = item.find("id");
    call.label = label ? label->text() : id ? id->text() : std::string(to_text(call.kind));
    entry.ranks = members_of(*call.communicator);
    if (const auto rank = item.find("rank")) require_members(*rank, entry.ranks);
    entry.operation.kind = Operation::Kind::collective;
    entry.operation.stream = Stream::communication;
    entry.call = call.id;
    trace_.calls.push_back(std::move(call));
  }

  std::uint32_t read_communicator(const Spec& item) const {
    const auto value = item.find("communicator");
    if (!value) return 0;
    const auto at = communicators_.find(value->text());
    if (at != communicators_.end()) return at->second;
    std::vector<std::string> known;
    for (const auto& [name, id] : communicators_) known.push_back(name);
    throw value->error(fmt::format("unknown communicator '{}'{}; known here: {}", value->text(),
                                   did_you_mean(value->text(), known), listed(known)));
  }

  RankSet members_of(const Communicator& communicator) const {
    if (communicator.size() == trace_.ranks) return {true, {}};
    RankSet members;
    for (std::uint32_t i = 0; i < communicator.size(); ++i) members.ranks.push_back(communicator.rank(i).value());
    return members;
  }

  /// A collective is issued by every member and by nobody else.
  void require_members(const Spec& value, const RankSet& members) const {
    const RankSet given = read_rank_set(value);
    const std::size_t members_count = members.all ? trace_.ranks : members.ranks.size();
    const std::size_t given_count = given.all ? trace_.ranks : given.ranks.size();
    if (given_count != members_count)
      throw value.error(fmt::format("{} ranks, but the communicator has {} members, and each of them must take part",
                                    given_count, members_count));
    if (members.all) return;
    for (const std::uint32_t rank : given.ranks)
      if (std::find(members.ranks.begin(), members.ranks.end(), rank) == members.ranks.end())
        throw value.error(fmt::format("rank {} is not a member of the communicator", rank));
  }

  void read_after(const Spec& item, TraceOperation& entry) {
    const auto after = item.find("after");
    if (!after) return;
    const std::vector<Spec> names = after->is_sequence() ? after->items() : std::vector<Spec>{*after};
    for (const Spec& name : names) {
      const auto at = name_index_.find(name.text());
      if (at == name_index_.end()) throw unknown_id(name);
      const std::optional<std::uint32_t> lacking = rank_without(trace_.names[at->second], entry.ranks);
      if (lacking)
        throw name.error(fmt::format("rank {} has no earlier operation '{}'; 'after' names operations of the same rank",
                                     *lacking, name.text()));
      if (std::find(entry.after.begin(), entry.after.end(), at->second) == entry.after.end())
        entry.after.push_back(at->second);
    }
  }

  InputError unknown_id(const Spec& name) const {
    const std::string text = name.text();
    if (const auto later = lines_.find(text); later != lines_.end())
      return name.error(
          fmt::format("'{}' is not yet defined here (line {}); operations are in program order", text, later->second));
    std::vector<std::string> known;
    for (const auto& [id, line] : lines_) known.push_back(id);
    return name.error(fmt::format("unknown operation '{}'{}", text, did_you_mean(text, known)));
  }

  /// A rank of the set on which the name means nothing.
  std::optional<std::uint32_t> rank_without(const TraceName& name, const RankSet& ranks) const {
    if (name.of_all >= 0) return std::nullopt;
    for (const std::uint32_t rank : ranks.ranks)
      if (name.item(rank) < 0) return rank;
    for (std::uint32_t rank = 0; ranks.all && rank < trace_.ranks; ++rank)
      if (name.item(rank) < 0) return rank;
    return std::nullopt;
  }

  /// Lets an id mean the operation that is about to be added.
  void define(const Spec& id, const RankSet& ranks) {
    const auto [at, fresh] = name_index_.try_emplace(id.text(), static_cast<std::uint32_t>(trace_.names.size()));
    if (fresh) trace_.names.push_back(TraceName{id.text(), -1, {}});
    TraceName& name = trace_.names[at->second];
    const auto item = static_cast<std::uint32_t>(trace_.operations.size());
    bool twice = name.of_all >= 0 || (ranks.all && !name.of_ranks.empty());
    for (const std::uint32_t rank : ranks.ranks) twice = twice || !name.of_ranks.emplace(rank, item).second;
    if (twice)
      throw id.error(fmt::format("a rank has two operations '{}' (first on line {})", id.text(), lines_.at(id.text())));
    if (ranks.all) name.of_all = item;
  }

  void add(TraceOperation entry) {
    const auto item = static_cast<std::uint32_t>(trace_.operations.size());
    if (entry.ranks.all) trace_.items_of_all.push_back(item);
    for (const std::uint32_t rank : entry.ranks.ranks) trace_.items_of_ranks[rank].push_back(item);
    trace_.operations.push_back(std::move(entry));
  }

  const Spec& spec_;
  const WorkloadContext& context_;
  Trace trace_;
  CollectiveOptions options_;
  std::optional<OperatorTimes> times_;
  std::map<std::string, std::uint32_t> communicators_;  ///< name -> id
  std::map<std::string, std::uint32_t> name_index_;     ///< id of an operation that has been read -> Trace::names
  std::map<std::string, int> lines_;                    ///< every id of the file -> its first line
};

}  // namespace

Trace read_trace(const Spec& spec, const WorkloadContext& context) { return TraceReader(spec, context).read(); }

}  // namespace weft
