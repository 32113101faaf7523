// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/importers/program_calls.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace weft {

std::uint32_t ProgramRanks::read(const Spec& value) const {
  const std::int64_t rank = value.integer();
  if (rank < 0 || rank >= count_)
    throw value.error(fmt::format("rank {} is out of range: the program has ranks 0 to {}", rank, count_ - 1));
  return static_cast<std::uint32_t>(rank);
}

RankSet ProgramRanks::read_set(const Spec& value) const {
  if (!value.is_sequence()) {
    if (value.is_scalar() && value.text() == "all") return {true, {}};
    return {false, {read(value)}};
  }
  RankSet set;
  for (const Spec& item : value.items()) set.ranks.push_back(read(item));
  if (set.ranks.empty()) throw value.error("no ranks; give a number, a list of numbers, or 'all'");
  auto sorted = set.ranks;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    throw value.error(fmt::format("rank {} is listed twice", *twice));
  return set;
}

void NumberedCalls::take_part(const Spec& number, CollectiveCall call, const RankSet& ranks,
                              std::uint32_t ranks_of_program, std::vector<CollectiveCall>& calls) {
  const auto [entry, fresh] = positions_.try_emplace(call.id, static_cast<std::uint32_t>(calls.size()));
  const std::uint32_t at = entry->second;
  if (fresh) {
    calls.push_back(call);
    ranks_found_.push_back(0);
  }
  const CollectiveCall& first = calls[at];
  if (first.kind != call.kind || first.size != call.size || first.communicator != call.communicator ||
      first.root != call.root || first.algorithm != call.algorithm)
    throw number.error(
        fmt::format("call {} is another one on line {}: kind, size, communicator, root or algorithm "
                    "differ",
                    call.id, first.where.line));
  const auto take = [&](std::uint32_t rank) {
    if (!taking_part_.insert(std::uint64_t{call.id} << 32 | rank).second)
      throw number.error(fmt::format("rank {} takes part in call {} twice", rank, call.id));
    ++ranks_found_[at];
  };
  for (std::uint32_t rank = 0; ranks.all && rank < ranks_of_program; ++rank) take(rank);
  for (const std::uint32_t rank : ranks.ranks) take(rank);
}

void NumberedCalls::order(std::vector<CollectiveCall>& calls) const {
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    const CollectiveCall& call = calls[i];
    if (ranks_found_[i] != call.communicator->size())
      throw InputError(call.where,
                       fmt::format("call {} has {} ranks; its communicator has {}, and each takes part once", call.id,
                                   ranks_found_[i], call.communicator->size()));
  }
  std::sort(calls.begin(), calls.end(), [](const CollectiveCall& a, const CollectiveCall& b) { return a.id < b.id; });
  if (!calls.empty() && calls.back().id + 1 != calls.size())
    throw InputError(calls.back().where,
                     fmt::format("{} calls, but one has the number {}; numbers are 0, 1, ... without gaps",
                                 calls.size(), calls.back().id));
}

CallReader::CallReader(const Spec& spec, const WorkloadContext& context, const ProgramRanks& ranks, Trace& trace)
    : context_(context), ranks_(ranks), trace_(trace), options_(read_collective_options(spec, context)) {}

void CallReader::read_named(const Spec& spec) {
  read_communicators(spec);
  read_tunings(spec);
}

void CallReader::read_communicators(const Spec& spec) {
  trace_.communicators.emplace_back(0, ranks_.count());
  communicators_.emplace("all", 0);
  const auto map = spec.find("communicators");
  if (!map) return;
  for (const auto& [name, value] : map->entries()) {
    const auto id = static_cast<std::uint32_t>(trace_.communicators.size());
    const RankSet members = ranks_.read_set(value);
    if (name == "all" && !members.all) throw value.error("'all' is the communicator of all ranks; choose another name");
    if (members.all)
      trace_.communicators.emplace_back(id, ranks_.count());
    else
      trace_.communicators.emplace_back(id, std::vector<Rank>(members.ranks.begin(), members.ranks.end()));
    communicators_.insert_or_assign(name, id);
  }
}

void CallReader::read_tunings(const Spec& spec) {
  const auto map = spec.find("tunings");
  if (!map) return;
  for (const auto& [name, value] : map->entries()) {
    tunings_[name] = read_collective_options(value, context_);
    value.finish();
  }
}

void CallReader::read(const Spec& item, TraceOperation& entry) {
  const Spec what = item.at("collective");
  CollectiveCall call;
  const auto number = item.find("call");
  if (!trace_.calls.empty() && number.has_value() != numbered_)
    throw item.error("some collectives have a 'call' and some have none; give it to all or to none");
  numbered_ = number.has_value();
  call.id = number ? static_cast<std::uint32_t>(number->integer(0, std::numeric_limits<std::uint32_t>::max() - 1))
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
  if (number) return numbered_calls_.take_part(*number, std::move(call), entry.ranks, ranks_.count(), trace_.calls);
  trace_.calls.push_back(std::move(call));
}

void CallReader::finish() {
  if (numbered_) numbered_calls_.order(trace_.calls);
}

std::uint32_t CallReader::read_communicator(const Spec& item) const {
  const auto value = item.find("communicator");
  if (!value) return 0;
  const auto at = communicators_.find(value->text());
  if (at != communicators_.end()) return at->second;
  std::vector<std::string> known;
  for (const auto& [name, id] : communicators_) known.push_back(name);
  throw value->error(fmt::format("unknown communicator '{}'{}; known here: {}", value->text(),
                                 did_you_mean(value->text(), known), listed(known)));
}

const CollectiveSettings& CallReader::tuning_of(const Spec& item) const {
  const auto name = item.find("tuning");
  if (!name) return options_;
  const auto at = tunings_.find(name->text());
  if (at != tunings_.end()) return at->second;
  std::vector<std::string> known;
  for (const auto& [text, options] : tunings_) known.push_back(text);
  throw name->error(fmt::format("unknown tuning '{}'{}; known here: {}", name->text(),
                                did_you_mean(name->text(), known), known.empty() ? "none" : listed(known)));
}

namespace {

bool has_no_blocks(CollectiveKind kind) {
  return kind != CollectiveKind::all_to_all && kind != CollectiveKind::all_gather &&
         kind != CollectiveKind::reduce_scatter && kind != CollectiveKind::gather && kind != CollectiveKind::scatter;
}

}  // namespace

void CallReader::read_blocks(const Spec& item, CollectiveCall& call) {
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

RankSet CallReader::members_of(const Communicator& communicator) const {
  if (communicator.size() == ranks_.count()) return {true, {}};
  RankSet members;
  for (std::uint32_t i = 0; i < communicator.size(); ++i) members.ranks.push_back(communicator.rank(i).value());
  return members;
}

RankSet CallReader::some_members(const Spec& value, const Communicator& communicator) const {
  RankSet given = ranks_.read_set(value);
  if (given.all) return members_of(communicator);
  for (const std::uint32_t rank : given.ranks)
    if (communicator.index_of(Rank(rank)) == communicator.size())
      throw value.error(fmt::format("rank {} is not a member of the communicator", rank));
  return given;
}

void CallReader::require_members(const Spec& value, const RankSet& members) const {
  const RankSet given = ranks_.read_set(value);
  const std::size_t members_count = members.all ? ranks_.count() : members.ranks.size();
  const std::size_t given_count = given.all ? ranks_.count() : given.ranks.size();
  if (given_count != members_count)
    throw value.error(fmt::format("{} ranks, but the communicator has {} members, and each of them must take part",
                                  given_count, members_count));
  if (members.all) return;
  for (const std::uint32_t rank : given.ranks)
    if (std::find(members.ranks.begin(), members.ranks.end(), rank) == members.ranks.end())
      throw value.error(fmt::format("rank {} is not a member of the communicator", rank));
}

}  // namespace weft
