// SPDX-License-Identifier: GPL-2.0-only
// Reading a trace of per-rank operations from YAML.
#include "workloads/importers/program_trace.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "workloads/compute/operator_times.hpp"
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
  TraceReader(const Spec& spec, const WorkloadContext& context) : spec_(spec), context_(context) {}

  Trace read() {
    const Spec ranks = spec_.at("ranks");
    trace_.ranks = require_ranks(ranks, ranks.integer(), context_);
    trace_.items_of_ranks.resize(trace_.ranks);
    options_ = read_collective_options(spec_, context_);
    read_compute_times();
    read_communicators();
    read_tunings();
    if (const auto ahead = spec_.find("read_ahead"))
      trace_.read_ahead = static_cast<std::size_t>(ahead->integer(1, max_of_32_bits));
    const std::vector<Spec> items = spec_.at("operations").items();
    if (items.size() > max_of_32_bits) throw spec_.at("operations").error("more than 2^32 - 1 operations");
    for (std::uint32_t i = 0; i < items.size(); ++i)
      if (items[i].is_map())
        if (const auto id = items[i].find("id")) lines_.try_emplace(id->text(), id->where().line);
    for (const Spec& item : items) read_operation(item);
    trace_.slowdown = std::max(trace_.slowdown, max_own_slowdown_);
    spec_.finish();
    order_calls();
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
      trace_.slowdown = slowdown->number(1, max_slowdown);
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
      if (operation.stream == Stream::host) operation.worker = Worker::host;
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

  /// The one key that gives the operation's kind, and the keys that it allows.
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
      entry.operation.peer = Rank(read_rank(peer));
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
      entry.peers.push_back(read_rank(one));
      if (entry.peers.back() == ranks[entry.peers.size() - 1]) throw self(entry.peers.back());
    }
  }

  /// Named options of collectives.
  void read_tunings() {
    const auto map = spec_.find("tunings");
    if (!map) return;
    for (const auto& [name, value] : map->entries()) {
      tunings_[name] = read_collective_options(value, context_);
      value.finish();
    }
  }

  const CollectiveSettings& tuning_of(const Spec& item) const {
    const auto name = item.find("tuning");
    if (!name) return options_;
    const auto at = tunings_.find(name->text());
    if (at != tunings_.end()) return at->second;
    std::vector<std::string> known;
    for (const auto& [text, options] : tunings_) known.push_back(text);
    throw name->error(fmt::format("unknown tuning '{}'{}; known here: {}", name->text(),
                                  did_you_mean(name->text(), known), known.empty() ? "none" : listed(known)));
  }

  void read_blocks(const Spec& item, CollectiveCall& call) const {
    const auto list = item.find("blocks");
    if (!list) {
      call.size = read_size(item, call.kind);
      return;
    }
    if (const auto size = item.find("size")) throw size->error("found beside 'blocks', whose sum it is; leave it out");
    const std::uint32_t n = call.communicator->size();
    const std::size_t due = call.kind == CollectiveKind::all_to_all ? std::size_t{n} * n : n;
    std::vector<std::int64_t> bytes;
    for (const Spec& one : list->items()) bytes.push_back(one.integer(0));
    if (bytes.size() != due || has_no_blocks(call.kind))
      throw list->error(
          fmt::format("{} blocks; all_to_all of {} ranks has {} (row by row, from each to each), "
                      "all_gather, reduce_scatter, gather and scatter have {}",
                      bytes.size(), n, std::size_t{n} * n, n));
    call.blocks = std::make_shared<BlockTable>(n, std::move(bytes));
    call.size = Bytes(call.blocks->total());
  }
  static bool has_no_blocks(CollectiveKind kind) {
    return kind != CollectiveKind::all_to_all && kind != CollectiveKind::all_gather &&
           kind != CollectiveKind::reduce_scatter && kind != CollectiveKind::gather && kind != CollectiveKind::scatter;
  }

  void read_collective(const Spec& item, TraceOperation& entry) {
    const Spec what = item.at("collective");
    CollectiveCall call;
    const auto number = item.find("call");
    if (!trace_.calls.empty() && number.has_value() != numbered_)
      throw item.error("some collectives have a 'call' and some have none; give it to all or to none");
    numbered_ = number.has_value();
    call.id = number ? static_cast<std::uint32_t>(number->integer(0, max_of_32_bits - 1))
                     : static_cast<std::uint32_t>(trace_.calls.size());
    call.kind = *parse_collective_kind(what.one_of(collective_kind_names()));
    call.communicator = &trace_.communicators[read_communicator(item)];
    read_blocks(item, call);
    call.root = read_root(item, call.kind, call.communicator->size());
    const auto algorithm = item.find("algorithm");
    const CollectiveSettings& options = tuning_of(item);
    call.algorithm =
        algorithm ? read_algorithm(*algorithm, context_.directory) : algorithm_of(options, context_, call.kind);
    call.tuning = options.tuning;
    settle_call(what, call, context_);
    if (call.blocks && !find_collective(call.algorithm)->takes_block_tables(call.kind))
      throw what.error(fmt::format("'{}' has no blocks of different sizes", call.algorithm));
    call.where = item.where();
    const auto label = item.find("label");
    const auto id = item.find("id");
    call.label = label ? label->text() : id ? id->text() : std::string(to_text(call.kind));
    entry.ranks = members_of(*call.communicator);
    if (const auto rank = item.find("rank")) {
      if (number)
        entry.ranks = some_members(*rank, *call.communicator);
      else
        require_members(*rank, entry.ranks);
    }
    entry.operation.kind = Operation::Kind::collective;
    entry.operation.stream = Stream::communication;
    entry.call = call.id;
    if (number) return take_part(*number, std::move(call), entry.ranks);
    trace_.calls.push_back(std::move(call));
  }

  /// Members that have this item; others have another one with the same number.
  RankSet some_members(const Spec& value, const Communicator& communicator) const {
    RankSet given = read_rank_set(value);
    if (given.all) return members_of(communicator);
    for (const std::uint32_t rank : given.ranks)
      if (communicator.index_of(Rank(rank)) == communicator.size())
        throw value.error(fmt::format("rank {} is not a member of the communicator", rank));
    return given;
  }

  /// Items with one number are parts of one call.
  void take_part(const Spec& number, CollectiveCall call, const RankSet& ranks) {
    const auto [entry, fresh] = call_index_.try_emplace(call.id, static_cast<std::uint32_t>(trace_.calls.size()));
    const std::uint32_t at = entry->second;
    if (fresh) {
      trace_.calls.push_back(call);
      members_found_.push_back(0);
    }
    const CollectiveCall& first = trace_.calls[at];
    if (first.kind != call.kind || first.size != call.size || first.communicator != call.communicator ||
        first.root != call.root || first.algorithm != call.algorithm)
      throw number.error(
          fmt::format("call {} is another one on line {}: kind, size, communicator, root or algorithm "
                      "differ",
                      call.id, first.where.line));
    const auto take = [&](std::uint32_t rank) {
      if (!taking_part_.insert(std::uint64_t{call.id} << 32 | rank).second)
        throw number.error(fmt::format("rank {} takes part in call {} twice", rank, call.id));
      ++members_found_[at];
    };
    for (std::uint32_t rank = 0; ranks.all && rank < trace_.ranks; ++rank) take(rank);
    for (const std::uint32_t rank : ranks.ranks) take(rank);
  }

  /// Numbers of calls are 0, 1, ...; each call has all members of its communicator.
  void order_calls() {
    if (!numbered_) return;
    for (std::uint32_t i = 0; i < trace_.calls.size(); ++i) {
      const CollectiveCall& call = trace_.calls[i];
      if (members_found_[i] != call.communicator->size())
        throw InputError(call.where,
                         fmt::format("call {} has {} ranks; its communicator has {}, and each takes part once", call.id,
                                     members_found_[i], call.communicator->size()));
    }
    std::sort(trace_.calls.begin(), trace_.calls.end(),
              [](const CollectiveCall& a, const CollectiveCall& b) { return a.id < b.id; });
    if (!trace_.calls.empty() && trace_.calls.back().id + 1 != trace_.calls.size())
      throw InputError(trace_.calls.back().where,
                       fmt::format("{} calls, but one has the number {}; numbers are 0, 1, ... without gaps",
                                   trace_.calls.size(), trace_.calls.back().id));
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

  /// A collective is issued by every member and by no other rank.
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
  double max_own_slowdown_ = 1;  // of its operations
  CollectiveSettings options_;
  std::map<std::string, CollectiveSettings> tunings_;
  bool numbered_ = false;                              ///< collectives give their numbers
  std::map<std::uint32_t, std::uint32_t> call_index_;  ///< number -> position in Trace::calls
  std::unordered_set<std::uint64_t> taking_part_;      ///< number << 32 | rank
  std::vector<std::size_t> members_found_;             ///< of Trace::calls, if they are numbered
  std::optional<OperatorTimes> times_;
  std::map<std::string, std::uint32_t> communicators_;  ///< name -> id
  std::map<std::string, std::uint32_t> name_index_;     ///< id of an operation that has been read -> Trace::names
  std::map<std::string, int> lines_;                    ///< every id of the file -> its first line
};

}  // namespace

Trace read_trace(const Spec& spec, const WorkloadContext& context) { return TraceReader(spec, context).read(); }

}  // namespace weft
