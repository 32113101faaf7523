// SPDX-License-Identifier: GPL-2.0-only
// GOAL schedules as text. Grammar: Schedgen and txt2bin of LogGOPSim (github.com/spcl/LogGOPSim; T. Hoefler, T.
// Schneider, A. Lumsdaine, "LogGOPSim - Simulating Large-Scale Applications in the LogGOPS Model",
// doi:10.1145/1851476.1851564).
#include "workloads/importers/goal_file.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <unordered_map>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr std::uint64_t most_of_u32 = std::numeric_limits<std::uint32_t>::max();

bool is_word(int byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '_' ||
         byte == '-';
}

}  // namespace

/// What has been read of one rank.
class GoalFile::Section {
 public:
  struct Wait {
    std::uint32_t operation, before, line;
    bool at_start;  ///< irequires
  };
  std::vector<GoalOperation> operations;
  std::unordered_map<std::string, std::uint32_t> labels;
  std::vector<Wait> waits;

  /// In the order of dependencies; of those that could come next, the first in the file.
  GoalRank sorted(const GoalFile& file) const {
    const auto lists = dependencies(file);
    const std::size_t count = operations.size();
    std::vector<std::uint32_t> missing(count), position(count);
    std::vector<std::vector<std::uint32_t>> dependents(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      missing[i] = static_cast<std::uint32_t>(lists[i].size());
      for (const std::uint32_t before : lists[i]) dependents[before].push_back(i);
    }
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    for (std::uint32_t i = 0; i < count; ++i)
      if (missing[i] == 0) ready.push(i);
    GoalRank rank;
    while (!ready.empty()) {
      const std::uint32_t i = ready.top();
      ready.pop();
      position[i] = static_cast<std::uint32_t>(rank.operations.size());
      rank.operations.push_back(operations[i]);
      rank.first_dependency.push_back(static_cast<std::uint32_t>(rank.dependencies.size()));
      for (const std::uint32_t before : lists[i]) rank.dependencies.push_back(position[before]);
      for (const std::uint32_t next : dependents[i])
        if (--missing[next] == 0) ready.push(next);
    }
    rank.first_dependency.push_back(static_cast<std::uint32_t>(rank.dependencies.size()));
    for (std::uint32_t i = 0; i < count; ++i)
      if (missing[i] > 0 && rank.operations.size() < count)
        throw InputError({file.source_.name(), static_cast<int>(operations[i].line)},
                         "the operation waits, through others or directly, for itself");
    return rank;
  }

 private:
  /// `a irequires b` lets a start when b starts: when all is done for which b waits. Nothing else holds up a send or
  /// recv; a calc may also wait for its cpu, which no list can say.
  std::vector<std::vector<std::uint32_t>> dependencies(const GoalFile& file) const {
    std::vector<std::vector<std::uint32_t>> lists(operations.size());
    for (const Wait& wait : waits)
      if (!wait.at_start) lists[wait.operation].push_back(wait.before);
    for (const Wait& wait : waits) {
      if (!wait.at_start) continue;
      if (operations[wait.before].kind == Operation::Kind::compute)
        throw InputError(
            {file.source_.name(), static_cast<int>(wait.line)},
            "'irequires' of a calc is not modelled; `requires` of what the calc waits for, or 'irequires' of "
            "a send or recv, is due here");
      const std::vector<std::uint32_t> of_before = lists[wait.before];
      lists[wait.operation].insert(lists[wait.operation].end(), of_before.begin(), of_before.end());
    }
    for (auto& list : lists) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    return lists;
  }
};

GoalFile::GoalFile(ByteSource source) : source_(std::move(source)) {
  skip_blanks(true);
  expect("num_ranks");
  skip_blanks(false);
  ranks_ = static_cast<std::uint32_t>(number(word(), "the number of ranks", std::numeric_limits<std::int32_t>::max()));
  if (ranks_ == 0) throw error("0 ranks; 1 or more are due here");
  skip_blanks(true);
}

void GoalFile::go_to(const GoalIndex::Place& place, std::uint32_t rank) {
  source_.skip_to(place.byte);
  line_ = place.line;
  rank_ = rank;
}

int GoalFile::take() {
  const int byte = source_.get();
  if (byte == '\n') ++line_;
  return byte;
}

// Blanks, and with `lines` also ends of lines and comments, which stand where a statement begins.
void GoalFile::skip_blanks(bool lines) {
  while (true) {
    const int byte = source_.peek();
    if (byte == ' ' || byte == '\t' || byte == '\r' || (lines && byte == '\n'))
      take();
    else if (!lines || !skip_comment())
      return;
  }
}

bool GoalFile::skip_comment() {
  if (source_.peek() != '/' || (source_.peek(1) != '/' && source_.peek(1) != '*')) return false;
  take();
  const bool to_end_of_line = take() == '/';
  while (true) {
    const int byte = take();
    if (byte == ByteSource::end && !to_end_of_line) throw error("the file ends within a comment");
    if (byte == ByteSource::end || (byte == '\n' && to_end_of_line)) return true;
    if (byte == '*' && !to_end_of_line && source_.peek() == '/') {
      take();
      return true;
    }
  }
}

std::string GoalFile::word() {
  std::string text;
  constexpr std::size_t longest = 1000;
  while (is_word(source_.peek())) {
    text += static_cast<char>(take());
    if (text.size() > longest) throw error("a word of more than 1000 letters");
  }
  if (!text.empty()) return text;
  const int byte = source_.peek();
  if (byte == ByteSource::end) throw error("the file ends in the middle of a schedule");
  throw error(byte == '\n' ? "the line ends in the middle of a statement"
                           : fmt::format("found '{}', which no statement has here", static_cast<char>(byte)));
}

std::uint64_t GoalFile::number(const std::string& text, const std::string& what, std::uint64_t most) const {
  constexpr std::size_t most_digits = 19;
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || text.size() > most_digits || std::stoull(text) > most)
    throw error(fmt::format("{} is '{}'; a whole number from 0 to {} is due here", what, text, most));
  return std::stoull(text);
}

void GoalFile::expect(const std::string& text) {
  const std::string found = word();
  if (found != text) throw error(fmt::format("found '{}'; '{}' is due here", found, text));
}

bool GoalFile::next(GoalRank& rank) {
  if (rank_ == ranks_) return false;
  skip_blanks(true);
  expect("rank");
  skip_blanks(false);
  if (const auto found = number(word(), "the rank", most_of_u32); found != rank_)
    throw error(fmt::format("found rank {}; rank {} is due here: they stand in ascending order", found, rank_));
  skip_blanks(true);
  if (take() != '{') throw error("a '{' is due behind the rank");
  Section section;
  while (statement(section)) {
  }
  ++rank_;
  rank = section.sorted(*this);
  skip_blanks(true);
  return true;
}

// [LABEL:] calc N [cpu C] | [LABEL:] send Nb to R [tag T] [cpu C] [nic C] | recv Nb from R ... | A requires B |
// A irequires B. False behind the closing brace.
bool GoalFile::statement(Section& section) {
  skip_blanks(true);
  if (source_.peek() == '}') {
    take();
    return false;
  }
  GoalOperation operation;
  operation.line = line_;
  std::string verb = word();
  skip_blanks(false);
  std::string label;
  if (source_.peek() == ':') {
    take();
    label = verb;
    skip_blanks(false);
    verb = word();
    skip_blanks(false);
  }
  if (verb != "calc" && verb != "send" && verb != "recv") {
    const std::string relation = label.empty() ? word() : "";
    if (relation != "requires" && relation != "irequires")
      throw error(fmt::format("found '{}'; calc, send, recv, or LABEL requires LABEL are due here", verb));
    skip_blanks(false);
    const std::string before = word();
    for (const std::string& name : {verb, before})
      if (!section.labels.contains(name))
        throw error(fmt::format("no operation of rank {} above has the label '{}'", rank_, name));
    section.waits.push_back({section.labels.at(verb), section.labels.at(before), line_, relation == "irequires"});
  } else {
    const bool calc = verb == "calc";
    std::string size = word();
    if (!calc) {
      if (size.back() != 'b') throw error(fmt::format("the size is '{}'; bytes such as 4096b are due here", size));
      size.pop_back();
    }
    operation.kind = calc ? Operation::Kind::compute : verb == "send" ? Operation::Kind::send : Operation::Kind::recv;
    operation.size = static_cast<std::int64_t>(
        number(size, calc ? "the time in ns" : "the size in bytes", std::numeric_limits<std::int64_t>::max()));
    if (!calc) {
      // Simulators of GOAL send at least a byte.
      operation.size = std::max<std::int64_t>(operation.size, 1);
      skip_blanks(false);
      expect(verb == "send" ? "to" : "from");
      skip_blanks(false);
      const std::string peer = word();
      if (peer == "-1") throw error("a recv from any rank (-1) is not modelled; name the rank");
      operation.peer = static_cast<std::uint32_t>(number(peer, "the other rank", most_of_u32));
      if (operation.peer >= ranks_)
        throw error(fmt::format("rank {} is out of range: the file has ranks 0 to {}", operation.peer, ranks_ - 1));
      if (operation.peer == rank_) throw error("a message of a rank to itself; another one is due here");
    }
    for (skip_blanks(false); is_word(source_.peek()); skip_blanks(false)) {
      const std::string option = word();
      skip_blanks(false);
      constexpr std::uint64_t most_cpus = 7, most_nics = 255;
      if (option == "cpu") {
        operation.cpu = static_cast<std::uint8_t>(number(word(), "'cpu'", most_cpus));
      } else if (option == "nic" && !calc) {
        operation.nic = static_cast<std::uint8_t>(number(word(), "'nic'", most_nics));
      } else if (option == "tag" && !calc) {
        const std::string tag = word();
        if (tag == "-1") throw error("any tag (-1) is not modelled; name the tag");
        operation.tag = static_cast<std::uint32_t>(number(tag, "'tag'", most_of_u32));
      } else {
        throw error(fmt::format("found '{}'; {} is due here", option, calc ? "cpu" : "tag, cpu or nic"));
      }
    }
    if (section.operations.size() == most_of_u32) throw error("more than 2^32 - 1 operations of a rank");
    if (!label.empty()) section.labels.try_emplace(label, static_cast<std::uint32_t>(section.operations.size()));
    section.operations.push_back(operation);
  }
  skip_blanks(false);
  const int end = source_.peek();
  if (end != '\n' && end != '}' && end != ByteSource::end && !skip_comment())
    throw error(fmt::format("found '{}'; the statement ends with its line", static_cast<char>(end)));
  return true;
}

}  // namespace weft
