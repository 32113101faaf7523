// SPDX-License-Identifier: GPL-2.0-only
// The properties on which all files of a Chakra trace have to agree: process groups, collective calls, messages.
#include "workloads/chakra/chakra_trace.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/basics/contract.hpp"
#include "support/system/interrupt.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

/// PyTorch traces from the time before Chakra's converter had versions contain cycles of control dependencies, because
/// a caller waits for its callees.
bool has_sound_control(const std::string& schema) {
  return schema.empty() || schema.find("chakra") != std::string::npos || schema.starts_with("0.");
}

}  // namespace

ChakraTrace::ChakraTrace(std::vector<ChakraFile> files, ChakraOptions options, const Spec& where,
                         const WorkloadContext& context)
    : files_(std::move(files)),
      options_(std::move(options)),
      sharing_(context.sharing),
      block_(SharedReading::block(ranks(), sharing_->process(), sharing_->processes())) {
  communicators_.emplace_back(0, ranks());
  names_.emplace_back("0");
  calls_.emplace_back();
  given_ids_.emplace_back();
  calls_of_members_.emplace_back();
  for (const auto& [name, members] : options_.groups) groups_of_all_[name] = communicator_of({name, members});
  survey_block();
  walk_block(where, context);
  share_calls(where, context);
  require_all_members();
  lanes_.bring_together(*sharing_, ranks());
  require_matching();
  number_calls(where);
  share_counts();
  estimate_calls();
  calls_of_members_.clear();
  lanes_ = MessageLanes();
}

ChakraTrace::RankFacts ChakraTrace::survey(std::uint32_t rank) const {
  const ChakraFile& file = files_[rank];
  RankFacts facts;
  const auto stream = open_chakra(file.open());
  facts.control = options_.control.value_or(has_sound_control(stream->schema()));
  ChakraSurvey found = survey_chakra(*stream, facts.control, file.path, [&](const ChakraNode& node) {
    look_for_interrupt();
    if (node.type == ChakraType::metadata) read_groups(node, rank, facts.listed);
    facts.has_device |= node.type == ChakraType::compute && !node.on_cpu;
    const bool sends = node.type == ChakraType::send;
    if ((sends && !node.comm_destination) || (node.type == ChakraType::recv && !node.comm_source))
      ++facts.open[{node.group, node.comm_tag.value_or(0), node.comm_size.value_or(0), sends}];
  });
  facts.missing = std::move(found.missing);
  facts.in_order = found.in_order;
  return facts;
}

void ChakraTrace::survey_block() {
  for (std::uint32_t rank = block_.first; rank < block_.end; ++rank) {
    const RankFacts& found = facts_[rank] = survey(rank);
    missing_dependencies_ += found.missing.size();
    without_control_ += found.control ? 0 : 1;
  }
  share_groups();
  for (auto& [rank, facts] : facts_) find_groups(facts);
  find_open_peers();
}

void ChakraTrace::find_open_peers() {
  for (auto& [rank, facts] : facts_) {
    for (const auto& [message, count] : facts.open) {
      const auto& [name, tag, bytes, sends] = message;
      if (const auto group = find_group(facts.groups, name))
        open_messages_.add(rank, {*group, tag, bytes}, sends, count);
    }
    facts.open.clear();
  }
  open_messages_.find_peers(*sharing_);
}

/// Communicators have their numbers in the order in which the files of all ranks name them.
void ChakraTrace::share_groups() {
  std::set<Group> seen;
  Packer mine;
  for (const auto& [rank, facts] : facts_)
    for (const Group& group : facts.listed)
      if (!is_world(group) && seen.insert(group).second) {
        mine.put(group.first);
        mine.put(group.second);
      }
  for (const SharedReading::Bytes& given : sharing_->share(mine.bytes()))
    for (Unpacker from(given); !from.at_end();) {
      std::string name = from.text();
      communicator_of({std::move(name), from.take_list<std::uint32_t>()});
    }
}

void ChakraTrace::find_groups(RankFacts& facts) const {
  for (const Group& group : facts.listed) facts.groups[group.first] = is_world(group) ? 0 : known_.at(group);
  facts.listed.clear();
}

/// If another process has read a rank's file, this process reads it when it has to run the rank.
const ChakraTrace::RankFacts& ChakraTrace::facts(std::uint32_t rank) const {
  const auto known = facts_.find(rank);
  if (known != facts_.end()) return known->second;
  RankFacts found = survey(rank);
  for (const Group& group : found.listed)
    if (!is_world(group) && !known_.contains(group))
      throw InputError({files_[rank].path, 0}, "it has changed while it was read");
  find_groups(found);
  found.open.clear();
  return facts_[rank] = std::move(found);
}

// PyTorch's process groups are JSON in the values of a metadata node's inputs: [{"pg_name": "0", "ranks": [0, 1]}], and
// around it brackets and quotes, as ASTRA-sim's Workload::issue_pytorch_pg_metadata takes it apart.
void ChakraTrace::read_groups(const ChakraNode& node, std::uint32_t rank, std::vector<Group>& listed) const {
  const std::string& text = node.input_values;
  const std::size_t begin = text.find("[{"), last = text.rfind("}]");
  if (text.find("pg_name") == std::string::npos || begin == std::string::npos || last == std::string::npos ||
      last < begin)
    return;
  const auto wrong = [&](const std::string& why) { return node_error(files_[rank].path, node, why); };
  nlohmann::json list;
  try {
    list = nlohmann::json::parse(text.substr(begin, last + 2 - begin));
  } catch (const nlohmann::json::exception& problem) {
    throw wrong(fmt::format("its process groups are no JSON: {}", problem.what()));
  }
  for (const auto& item : list) {
    const auto name = item.is_object() ? item.find("pg_name") : item.end();
    if (!item.is_object() || name == item.end() || !(name->is_string() || name->is_number_integer()))
      throw wrong("a process group without 'pg_name'");
    std::vector<std::uint32_t> members;
    if (const auto given = item.find("ranks"); given != item.end() && given->is_array())
      for (const auto& member : *given) {
        if (!member.is_number_unsigned() || member.get<std::uint64_t>() >= ranks())
          throw wrong(
              fmt::format("a process group has a rank that is none of 0 to {}, which the trace has", ranks() - 1));
        members.push_back(member.get<std::uint32_t>());
      }
    const std::string text_name = name->is_string() ? name->get<std::string>() : name->dump();
    // PyTorch lists no ranks where a group has all, and gives their number beside it (_World.pg_config_info of
    // torch/distributed/distributed_c10d.py). So a last rank whose file is missing shows here, and only here.
    for (const char* key : {"group_size", "pg_size"})
      if (const auto size = item.find(key); members.empty() && size != item.end() && size->is_number_unsigned())
        if (const auto all_ranks = size->get<std::uint64_t>(); all_ranks != ranks())
          throw wrong(
              fmt::format("its process group '{}' has all ranks of the job, {} ('{}'), and the trace has files of "
                          "{}; expected a file for each rank",
                          text_name, all_ranks, key, ranks()));
    auto sorted = members;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      throw wrong(fmt::format("the process group '{}' has a rank twice", text_name));
    const bool all = members.empty() || (members.size() == ranks() && std::is_sorted(members.begin(), members.end()));
    if (all) members.clear();
    listed.emplace_back(text_name, std::move(members));
  }
}

bool ChakraTrace::is_world(const Group& group) const {
  return group.second.empty() && (group.first.empty() || group.first == "0");
}

std::uint32_t ChakraTrace::communicator_of(Group group) {
  auto& [name, members] = group;
  const bool all = members.empty() || (members.size() == ranks() && std::is_sorted(members.begin(), members.end()));
  if (all) members.clear();
  if (is_world(group)) return 0;
  const auto id = static_cast<std::uint32_t>(communicators_.size());
  const auto [at, fresh] = known_.try_emplace(group, id);
  if (!fresh) return at->second;
  if (all) {
    communicators_.emplace_back(id, ranks());
  } else {
    std::vector<Rank> list;
    for (const std::uint32_t member : members) list.emplace_back(member);
    communicators_.emplace_back(id, std::move(list));
  }
  names_.push_back(name);
  calls_.emplace_back();
  given_ids_.emplace_back();
  calls_of_members_.emplace_back();
  return id;
}

std::optional<std::uint32_t> ChakraTrace::find_group(const std::map<std::string, std::uint32_t>& own,
                                                     const std::string& name) const {
  if (const auto at = own.find(name); at != own.end()) return at->second;
  if (const auto at = groups_of_all_.find(name); at != groups_of_all_.end()) return at->second;
  if (name.empty() || name == "0") return 0;
  return std::nullopt;
}

void ChakraTrace::walk_block(const Spec& where, const WorkloadContext& context) {
  for (std::uint32_t rank = block_.first; rank < block_.end; ++rank) walk(rank, where, context);
}

/// For each communicator, the first of the processes that have seen most of its calls sends them to all.
void ChakraTrace::share_calls(const Spec& where, const WorkloadContext& context) {
  if (sharing_->processes() == 1) return;
  Packer lengths;
  for (const auto& calls : calls_) lengths.put(static_cast<std::uint32_t>(calls.size()));
  std::vector<std::uint32_t> max(calls_.size()), teller(calls_.size());
  const auto all = sharing_->share(lengths.bytes());
  for (std::uint32_t process = 0; process < all.size(); ++process) {
    Unpacker from(all[process]);
    for (std::size_t c = 0; c < calls_.size(); ++c)
      if (const auto length = from.take<std::uint32_t>(); length > max[c]) {
        max[c] = length;
        teller[c] = process;
      }
  }
  Packer told;
  for (std::uint32_t c = 0; c < calls_.size(); ++c) {
    if (teller[c] != sharing_->process() || max[c] == 0) continue;
    told.put(c);
    for (std::uint32_t i = 0; i < max[c]; ++i) {
      told.put(settled_shapes_[calls_[c][i]]);
      told.put(given_ids_[c][i]);
    }
  }
  const auto given = sharing_->share(told.bytes());
  for (std::uint32_t process = 0; process < given.size(); ++process)
    for (Unpacker from(given[process]); !from.at_end();) {
      const auto c = from.take<std::uint32_t>();
      for (std::uint32_t i = 0; i < max[c]; ++i) {
        const auto shape = from.take<ChakraShape>();
        const auto id = from.take<std::uint32_t>();
        const std::string& file = files_[communicators_[c].rank(0).value()].path;
        const std::uint32_t theirs = settled(
            shape,
            [&](const std::string& what) {
              return InputError({file, 0}, what);
            },
            file, where, context);
        if (i < calls_[c].size()) {
          if (calls_[c][i] != theirs) complain_of_call(c, i, shape);
          continue;
        }
        calls_[c].push_back(theirs);
        given_ids_[c].push_back(id);
        ++times_settled_[theirs];
      }
    }
}

/// The counts over all files.
void ChakraTrace::share_counts() {
  if (sharing_->processes() == 1) return;
  Packer mine;
  mine.put(missing_dependencies_);
  mine.put(without_control_);
  mine.put(messages_);
  mine.put(bytes_);
  mine.put(busiest_);
  for (const auto& [kind, count] : counted_) {
    mine.put(kind);
    mine.put(count);
  }
  missing_dependencies_ = without_control_ = messages_ = 0;
  bytes_ = 0;
  counted_.clear();
  for (const SharedReading::Bytes& given : sharing_->share(mine.bytes())) {
    Unpacker from(given);
    missing_dependencies_ += from.take<std::uint64_t>();
    without_control_ += from.take<std::uint64_t>();
    messages_ += from.take<std::uint64_t>();
    bytes_ += from.take<unsigned __int128>();
    busiest_ = std::max(busiest_, from.take<Time>());
    while (!from.at_end()) {
      const std::string kind = from.text();
      counted_[kind] += from.take<std::uint64_t>();
    }
  }
}

void ChakraTrace::estimate_calls() {
  for (std::size_t i = 0; i < settled_.size(); ++i) {
    const WorkloadEstimate one = estimate_call(settled_[i]);
    messages_ += one.messages * times_settled_[i];
    bytes_ += static_cast<unsigned __int128>(one.bytes.count()) * times_settled_[i];
  }
}

/// Calls have the numbers in their nodes, if these are all the numbers of calls.
void ChakraTrace::number_calls(const Spec& where) {
  std::uint64_t first = 0;
  for (const auto& calls : calls_) {
    first_call_.push_back(static_cast<std::uint32_t>(first));
    first += calls.size();
  }
  call_count_ = first;
  if (call_count_ >= std::numeric_limits<std::uint32_t>::max())
    throw where.error("more than 2^32 - 2 collective calls");
  std::vector<std::uint32_t> ids, places(call_count_, no_id);
  for (const auto& given : given_ids_)
    for (const std::uint32_t id : given) {
      if (id >= call_count_ || places[id] != no_id) return given_ids_.clear();
      places[id] = static_cast<std::uint32_t>(ids.size());
      ids.push_back(id);
    }
  id_of_place_ = std::move(ids);
  place_of_id_ = std::move(places);
  given_ids_.clear();
}

void ChakraTrace::walk(std::uint32_t rank, const Spec& where, const WorkloadContext& context) {
  Walk walk(*this, rank);
  Operation operation;
  ChakraNode node;
  std::optional<ChakraShape> shape;
  Time compute;
  for (std::uint32_t number = 0; walk.next(operation, node, shape, number);) {
    look_for_interrupt();
    if (shape) count_call(rank, node, *shape, number, where, context);
    const std::uint32_t peer = operation.peer.value();
    if (operation.kind == Operation::Kind::send) {
      lanes_.send({rank, peer, operation.tag}, operation.bytes.count());
      ++messages_;
      bytes_ += static_cast<unsigned __int128>(operation.bytes.count());
    }
    if (operation.kind == Operation::Kind::recv) lanes_.recv({peer, rank, operation.tag}, operation.bytes.count());
    if (operation.kind == Operation::Kind::compute) compute = bounded_sum(compute, operation.duration);
    ++counted_[kind_text(node)];
  }
  busiest_ = std::max(busiest_, compute);
}

std::string ChakraTrace::kind_text(const ChakraNode& node) {
  switch (node.type) {
    case ChakraType::metadata:
    case ChakraType::invalid:
      return "nodes without work";
    case ChakraType::memory_load:
    case ChakraType::memory_store:
      return "memory nodes";
    case ChakraType::compute:
    case ChakraType::storage:
    case ChakraType::batch:
    case ChakraType::checkpoint:  // work of the processor (settle_host_work)
      return node.on_cpu ? "compute nodes of the processor" : "compute nodes";
    case ChakraType::send:
    case ChakraType::recv:
      return "send and receive nodes";
    case ChakraType::collective:
      return is_only_time(node) ? "collective nodes taken as time" : "collective nodes";
  }
  return "nodes";
}

std::string ChakraTrace::text_of(const ChakraShape& shape) const {
  return fmt::format("{} of {} in process group '{}'{}", to_text(shape.kind), to_text(Bytes(shape.size)),
                     names_[shape.communicator], shape.root > 0 ? fmt::format(" with root {}", shape.root) : "");
}

void ChakraTrace::count_call(std::uint32_t rank, const ChakraNode& node, const ChakraShape& shape, std::uint32_t number,
                             const Spec& where, const WorkloadContext& context) {
  const auto error = [&](const std::string& what) { return node_error(files_[rank].path, node, what); };
  const std::uint32_t mine = settled(shape, error, files_[rank].path, where, context);
  auto& calls = calls_[shape.communicator];
  calls_of_members_[shape.communicator][rank] = number + 1;
  if (number == calls.size()) {
    calls.push_back(mine);
    const std::int64_t id = node.call.value_or(no_id);
    given_ids_[shape.communicator].push_back(id < no_id ? static_cast<std::uint32_t>(id) : no_id);
    ++times_settled_[mine];
    return;
  }
  if (calls[number] != mine) throw other_call(rank, node, number, shape, settled_shapes_[calls[number]]);
}

InputError ChakraTrace::other_call(std::uint32_t rank, const ChakraNode& node, std::uint32_t number,
                                   const ChakraShape& mine, const ChakraShape& other) const {
  return node_error(files_[rank].path, node,
                    fmt::format("it is collective {} of its process group on this rank: {}. On a rank before it is: "
                                "{}. All members have the same collectives in the same order",
                                number, text_of(mine), text_of(other)));
}

/// This process's ranks agree with each other, and not with those of an earlier one: the first of them is passed once
/// more to find the node.
void ChakraTrace::complain_of_call(std::uint32_t communicator, std::uint32_t number, const ChakraShape& other) const {
  for (const auto& [rank, calls] : calls_of_members_[communicator]) {
    if (calls <= number) continue;
    Walk walk(*this, rank);
    Operation operation;
    ChakraNode node;
    std::optional<ChakraShape> shape;
    for (std::uint32_t at = 0; walk.next(operation, node, shape, at);)
      if (shape && shape->communicator == communicator && at == number)
        throw other_call(rank, node, number, *shape, other);
  }
  throw InternalError(fmt::format("no rank has call {} of communicator {}", number, communicator));
}

std::uint32_t ChakraTrace::settled(const ChakraShape& shape, const std::function<InputError(const std::string&)>& error,
                                   const std::string& file, const Spec& where, const WorkloadContext& context) {
  const auto [at, fresh] = shapes_.try_emplace(shape, static_cast<std::uint32_t>(settled_.size()));
  if (!fresh) return at->second;
  CollectiveCall call;
  call.kind = shape.kind;
  call.communicator = &communicators_[shape.communicator];
  call.size = Bytes(shape.size);
  call.root = shape.root;
  const auto other = options_.algorithms.find(shape.kind);
  call.algorithm = other == options_.algorithms.end() ? options_.collectives.algorithm : other->second;
  call.tuning = options_.collectives.tuning;
  call.where = {file, 0};
  try {
    settle_call(where, call, context);
  } catch (const InputError& problem) {
    throw error(problem.what());
  }
  settled_.push_back(std::move(call));
  settled_shapes_.push_back(shape);
  times_settled_.push_back(0);
  return at->second;
}

void ChakraTrace::require_all_members() const {
  for (std::uint32_t c = 0; c < communicators_.size(); ++c) {
    if (calls_[c].empty()) continue;
    for (std::uint32_t i = 0; i < communicators_[c].size(); ++i) {
      const std::uint32_t rank = communicators_[c].rank(i).value();
      if (!block_.contains(rank)) continue;
      const auto found = calls_of_members_[c].find(rank);
      const std::uint32_t calls = found == calls_of_members_[c].end() ? 0 : found->second;
      if (calls == calls_[c].size()) continue;
      throw InputError({files_[rank].path, 0},
                       fmt::format("rank {} has {} collectives of process group '{}', and other members have {}; each "
                                   "member takes part in each",
                                   rank, calls, names_[c], calls_[c].size()));
    }
  }
}

/// The sends or recvs of one lane, found by passing a rank once more.
std::vector<std::pair<ChakraNode, std::int64_t>> ChakraTrace::messages_of(std::uint32_t rank,
                                                                          const MessageLanes::Key& key,
                                                                          Operation::Kind kind) const {
  const auto& [source, destination, tag] = key;
  const std::uint32_t peer = kind == Operation::Kind::send ? destination : source;
  std::vector<std::pair<ChakraNode, std::int64_t>> found;
  Walk walk(*this, rank);
  Operation operation;
  ChakraNode node;
  std::optional<ChakraShape> shape;
  for (std::uint32_t number = 0; walk.next(operation, node, shape, number);)
    if (operation.kind == kind && operation.peer.value() == peer && operation.tag == tag)
      found.emplace_back(node, operation.bytes.count());
  return found;
}

void ChakraTrace::require_matching() const {
  const auto lane = lanes_.mismatch();
  if (!lane) return;
  const auto& [source, destination, tag] = *lane;
  const auto sends = messages_of(source, *lane, Operation::Kind::send);
  const auto recvs = messages_of(destination, *lane, Operation::Kind::recv);
  const std::string which = fmt::format("from rank {} to rank {} with tag {}", source, destination, tag);
  for (std::size_t i = 0; i < std::min(sends.size(), recvs.size()); ++i)
    if (sends[i].second != recvs[i].second)
      throw node_error(files_[source].path, sends[i].first,
                       fmt::format("message {} {}: the send has {}, and the recv (node {} of '{}') has {}", i, which,
                                   to_text(Bytes(sends[i].second)), recvs[i].first.id, files_[destination].path,
                                   to_text(Bytes(recvs[i].second))));
  const std::string counts = fmt::format("there are {} sends and {} recvs", sends.size(), recvs.size());
  if (sends.size() > recvs.size())
    throw node_error(files_[source].path, sends[recvs.size()].first,
                     fmt::format("the send {} has no recv: {}", which, counts));
  throw node_error(files_[destination].path, recvs.at(sends.size()).first,
                   fmt::format("the recv {} has no send: {}", which, counts));
}

CollectiveCall ChakraTrace::call(std::uint32_t id) const {
  WEFT_EXPECT(id < call_count_, "call {} of {}", id, call_count_);
  const std::uint32_t place = place_of_id_.empty() ? id : place_of_id_[id];
  const auto after = std::upper_bound(first_call_.begin(), first_call_.end(), place);
  const auto communicator = static_cast<std::size_t>(after - first_call_.begin()) - 1;
  const std::uint32_t number = place - first_call_[communicator];
  CollectiveCall call = settled_[calls_[communicator][number]];
  call.id = id;
  call.label = communicator == 0 ? fmt::format("{} {}", to_text(call.kind), number)
                                 : fmt::format("{} {} of group {}", to_text(call.kind), number, names_[communicator]);
  return call;
}

std::shared_ptr<const CollectiveCall> ChakraTrace::shared_call(std::uint32_t id) const {
  if (const auto known = live_calls_.find(id); known != live_calls_.end())
    if (auto shared = known->second.lock()) return shared;
  if (live_calls_.size() >= most_live_calls_) {
    std::erase_if(live_calls_, [](const auto& entry) { return entry.second.expired(); });
    most_live_calls_ = 2 * live_calls_.size() + 64;
  }
  // A block of its own, which is free while the map still refers to the call.
  std::shared_ptr<const CollectiveCall> made(std::make_unique<const CollectiveCall>(call(id)));
  live_calls_[id] = made;
  return made;
}

WorkloadEstimate ChakraTrace::estimate() const { return {messages_, saturated(bytes_), busiest_}; }

std::vector<std::pair<std::string, std::string>> ChakraTrace::description() const {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const auto& [kind, count] : counted_) lines.emplace_back(kind, grouped(static_cast<std::int64_t>(count)));
  lines.emplace_back("collective calls", grouped(static_cast<std::int64_t>(call_count_)));
  lines.emplace_back("process groups", grouped(static_cast<std::int64_t>(communicators_.size())));
  if (without_control_ > 0)
    lines.emplace_back("files without their control dependencies",
                       grouped(static_cast<std::int64_t>(without_control_)));
  if (missing_dependencies_ > 0)
    lines.emplace_back("callers that are not in the files",
                       grouped(static_cast<std::int64_t>(missing_dependencies_)) + " (count as done)");
  return lines;
}

}  // namespace weft
