// SPDX-License-Identifier: GPL-2.0-only
// GOAL schedules as text. Grammar: Schedgen and txt2bin of LogGOPSim (github.com/spcl/LogGOPSim; T. Hoefler, T.
// Schneider, A. Lumsdaine, "LogGOPSim - Simulating Large-Scale Applications in the LogGOPS Model",
// doi:10.1145/1851476.1851564).
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "support/system/temporary_file.hpp"
#include "workloads/importers/goal_file.hpp"
#include "workloads/importers/goal_order.hpp"
#include "workloads/importers/goal_waits.hpp"

namespace weft {
namespace {

constexpr std::uint64_t goal_most_of_u32 = std::numeric_limits<std::uint32_t>::max();

bool is_goal_word(int byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '_' ||
         byte == '-';
}

/// Receives a rank's statements, one by one.
class GoalStatements {
 public:
  virtual ~GoalStatements() = default;
  virtual void operation(const GoalOperation& /*one*/, const std::string& /*label*/) {}
  /// `label` waits for `before`.
  virtual void relation(const std::string& /*label*/, const std::string& /*before*/, bool /*at_start*/) {}
};

/// Reads a file section by section. Every mistake is an InputError with file and line.
class GoalTextReader {
 public:
  explicit GoalTextReader(ByteSource source);
  std::uint32_t ranks() const { return ranks_; }
  const std::string& name() const { return source_.name(); }
  /// Goes through the section of the next rank, in the order of the file.
  void next(GoalStatements& statements);
  /// Where next() begins.
  struct Place {
    std::uint64_t byte = 0;
    std::uint32_t line = 0;
  };
  Place place() const { return {source_.taken(), line_}; }
  /// Continues there, with this rank.
  void go_to(const Place& place, std::uint32_t rank);
  /// A complaint about the statement that is being read.
  InputError error(const std::string& message) const {
    return InputError({source_.name(), static_cast<int>(line_)}, message);
  }

 private:
  int take();
  void skip_blanks(bool lines);
  bool skip_comment();
  std::string word();
  std::uint64_t number(const std::string& text, const std::string& what, std::uint64_t max) const;
  void expect(const std::string& text);
  bool statement(GoalStatements& statements);
  void relation(GoalStatements& statements, const std::string& verb, const std::string& label);
  void operation(GoalStatements& statements, const std::string& verb, const std::string& label, std::uint32_t line);
  void size_and_peer(GoalOperation& operation);
  void options(GoalOperation& operation);

  ByteSource source_;
  std::uint32_t line_ = 1;
  std::uint32_t ranks_ = 0;
  std::uint32_t rank_ = 0;        // next one
  std::uint32_t operations_ = 0;  // of this rank
};

GoalTextReader::GoalTextReader(ByteSource source) : source_(std::move(source)) {
  skip_blanks(true);
  expect("num_ranks");
  skip_blanks(false);
  ranks_ = static_cast<std::uint32_t>(number(word(), "the number of ranks", std::numeric_limits<std::int32_t>::max()));
  if (ranks_ == 0) throw error("0 ranks; expected 1 or more");
  skip_blanks(true);
}

void GoalTextReader::go_to(const Place& place, std::uint32_t rank) {
  source_.skip_to(place.byte);
  line_ = place.line;
  rank_ = rank;
}

int GoalTextReader::take() {
  const int byte = source_.get();
  if (byte == '\n') ++line_;
  return byte;
}

// Blanks, and with `lines` also ends of lines and comments, which are allowed where a statement begins.
void GoalTextReader::skip_blanks(bool lines) {
  while (true) {
    const int byte = source_.peek();
    if (byte == ' ' || byte == '\t' || byte == '\r' || (lines && byte == '\n'))
      take();
    else if (!lines || !skip_comment())
      return;
  }
}

bool GoalTextReader::skip_comment() {
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

std::string GoalTextReader::word() {
  std::string text;
  constexpr std::size_t longest = 1000;
  while (is_goal_word(source_.peek())) {
    text += static_cast<char>(take());
    if (text.size() > longest) throw error("a word of more than 1000 letters");
  }
  if (!text.empty()) return text;
  const int byte = source_.peek();
  if (byte == ByteSource::end) throw error("the file ends in the middle of a schedule");
  throw error(byte == '\n' ? "the line ends in the middle of a statement"
                           : fmt::format("found '{}', which no statement has here", static_cast<char>(byte)));
}

std::uint64_t GoalTextReader::number(const std::string& text, const std::string& what, std::uint64_t max) const {
  constexpr std::size_t max_digits = 19;
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || text.size() > max_digits || std::stoull(text) > max)
    throw error(fmt::format("{} is '{}'; expected a whole number from 0 to {}", what, text, max));
  return std::stoull(text);
}

void GoalTextReader::expect(const std::string& text) {
  const std::string found = word();
  if (found != text) throw error(fmt::format("found '{}'; expected '{}'", found, text));
}

void GoalTextReader::next(GoalStatements& statements) {
  skip_blanks(true);
  expect("rank");
  skip_blanks(false);
  if (const auto found = number(word(), "the rank", goal_most_of_u32); found != rank_)
    throw error(fmt::format("found rank {}; expected rank {}: they stand in ascending order", found, rank_));
  skip_blanks(true);
  if (take() != '{') throw error("expected a '{' after the rank");
  operations_ = 0;
  while (statement(statements)) {
  }
  ++rank_;
  skip_blanks(true);
}

// [LABEL:] calc N [cpu C] | [LABEL:] send Nb to R [tag T] [cpu C] [nic C] | recv Nb from R ... | A requires B | A
// irequires B. False after the closing brace.
bool GoalTextReader::statement(GoalStatements& statements) {
  skip_blanks(true);
  if (source_.peek() == '}') {
    take();
    return false;
  }
  const std::uint32_t line = line_;
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
  if (verb != "calc" && verb != "send" && verb != "recv")
    relation(statements, verb, label);
  else
    operation(statements, verb, label, line);
  skip_blanks(false);
  const int end = source_.peek();
  if (end != '\n' && end != '}' && end != ByteSource::end && !skip_comment())
    throw error(fmt::format("found '{}'; the statement ends with its line", static_cast<char>(end)));
  return true;
}

void GoalTextReader::relation(GoalStatements& statements, const std::string& verb, const std::string& label) {
  const std::string relation = label.empty() ? word() : "";
  if (relation != "requires" && relation != "irequires")
    throw error(fmt::format("found '{}'; expected calc, send, recv, or LABEL requires LABEL", verb));
  skip_blanks(false);
  statements.relation(verb, word(), relation == "irequires");
}

void GoalTextReader::operation(GoalStatements& statements, const std::string& verb, const std::string& label,
                               std::uint32_t line) {
  GoalOperation operation;
  operation.place = line;
  operation.kind = verb == "calc"   ? Operation::Kind::compute
                   : verb == "send" ? Operation::Kind::send
                                    : Operation::Kind::recv;
  size_and_peer(operation);
  options(operation);
  if (operations_ == max_goal_operations)
    throw error(fmt::format("more than {} operations of a rank", max_goal_operations));
  ++operations_;
  statements.operation(operation, label);
}

void GoalTextReader::size_and_peer(GoalOperation& operation) {
  const bool calc = operation.kind == Operation::Kind::compute;
  std::string size = word();
  if (!calc) {
    skip_blanks(false);
    if (size.back() != 'b' && source_.peek() == 'b') size += word();  // txt2bin takes blanks before the b
    if (size.back() != 'b') throw error(fmt::format("the size is '{}'; expected bytes such as 4096b", size));
    size.pop_back();
  }
  operation.size = static_cast<std::int64_t>(
      number(size, calc ? "the time in ns" : "the size in bytes", std::numeric_limits<std::int64_t>::max()));
  if (calc) return;
  skip_blanks(false);
  expect(operation.kind == Operation::Kind::send ? "to" : "from");
  skip_blanks(false);
  const std::string peer = word();
  if (peer == "-1" && operation.kind == Operation::Kind::recv) {
    operation.peer = goal_any;
    return;
  }
  operation.peer = static_cast<std::uint32_t>(number(peer, "the other rank", goal_most_of_u32));
  if (operation.peer >= ranks_)
    throw error(fmt::format("rank {} is out of range: the file has ranks 0 to {}", operation.peer, ranks_ - 1));
  if (operation.peer == rank_) throw error("a message of a rank to itself; expected another one");
}

void GoalTextReader::options(GoalOperation& operation) {
  const bool calc = operation.kind == Operation::Kind::compute;
  for (skip_blanks(false); is_goal_word(source_.peek()); skip_blanks(false)) {
    const std::string option = word();
    skip_blanks(false);
    constexpr std::uint64_t max_cpus = 255, max_nics = 255;
    if (option == "cpu") {
      operation.cpu = static_cast<std::uint8_t>(number(word(), "'cpu'", max_cpus));
    } else if (option == "nic" && !calc) {
      operation.nic = static_cast<std::uint8_t>(number(word(), "'nic'", max_nics));
    } else if (option == "tag" && !calc) {
      const std::string tag = word();
      // The largest number is the binary form's -1.
      operation.tag = tag == "-1" && operation.kind == Operation::Kind::recv
                          ? goal_any
                          : static_cast<std::uint32_t>(number(tag, "'tag'", goal_most_of_u32 - 1));
    } else {
      throw error(fmt::format("found '{}'; expected {}", option, calc ? "cpu" : "tag, cpu or nic"));
    }
  }
}

/// Splits a section into operations and their waits.
class GoalConversion final : public GoalStatements {
 public:
  void operation(const GoalOperation& one, const std::string& label) override {
    operations_.append(&one, sizeof(one));
    waits_.operation(label);
  }
  void relation(const std::string& label, const std::string& before, bool at_start) override {
    waits_.relation(label, before, at_start);
  }
  std::optional<GoalWaits::Unknown> resolve() { return waits_.resolve(); }
  const std::optional<GoalWaits::Twice>& twice() const { return waits_.twice(); }

  /// Appends the rank. Behind resolve().
  ConvertedGoals::Part write(ConvertedGoals& goals) {
    ConvertedGoals::Part part = goals.begin();
    constexpr std::size_t at_a_time = 256;
    std::vector<GoalOperation> some(at_a_time);
    std::uint32_t number = 0;
    for (std::uint64_t at = 0; at < operations_.size(); at += at_a_time * sizeof(GoalOperation)) {
      const std::size_t bytes = operations_.read(at, some.data(), at_a_time * sizeof(GoalOperation));
      for (std::size_t i = 0; i < bytes / sizeof(GoalOperation); ++i, ++number) {
        waits_.of(number, before_);
        goals.append(part, number, some[i], before_);
      }
    }
    return part;
  }

 private:
  TemporaryFile operations_;
  GoalWaits waits_;
  std::vector<std::uint32_t> before_;
};

/// Throws for a label of a relation, when it reaches it.
class UnknownLabel final : public GoalStatements {
 public:
  UnknownLabel(const GoalTextReader& reader, std::uint32_t rank, const GoalWaits::Unknown& unknown)
      : reader_(reader), rank_(rank), unknown_(unknown) {}
  void relation(const std::string& label, const std::string& before, bool /*at_start*/) override {
    if (relations_++ == unknown_.relation)
      throw reader_.error(
          fmt::format("no operation of rank {} above has the label '{}'", rank_, unknown_.before ? before : label));
  }

 private:
  const GoalTextReader& reader_;
  std::uint32_t rank_;
  GoalWaits::Unknown unknown_;
  std::uint64_t relations_ = 0;
};

/// Throws for an operation with the label of one above, when it reaches it: a relation would not say which it means.
class LabelTwice final : public GoalStatements {
 public:
  LabelTwice(const GoalTextReader& reader, std::uint32_t rank, const GoalWaits::Twice& twice)
      : reader_(reader), rank_(rank), twice_(twice) {}
  void operation(const GoalOperation& one, const std::string& label) override {
    if (operations_ == twice_.first) line_ = one.place;
    if (operations_++ == twice_.second)
      throw reader_.error(
          fmt::format("the label '{}' is that of line {}; expected another one for each operation of "
                      "rank {}",
                      label, line_, rank_));
  }

 private:
  const GoalTextReader& reader_;
  std::uint32_t rank_;
  GoalWaits::Twice twice_;
  std::uint32_t operations_ = 0;
  std::uint64_t line_ = 0;
};

/// Each requested rank is read once, and converted into operations with their waits, in a temporary file. Memory does
/// not follow the length of the text.
class TextGoal final : public GoalFile {
 public:
  explicit TextGoal(const GoalContent& content)
      : content_(content), reader_(content()), places_{reader_.place()}, name_(reader_.name()) {}

  std::uint32_t ranks() const override { return reader_.ranks(); }

  std::unique_ptr<GoalStream> stream(std::uint32_t rank) override {
    const auto [at, fresh] = converted_.try_emplace(rank);
    if (fresh) at->second = convert(rank);
    return goals_.stream(at->second);
  }

  InputError error(std::uint32_t /*rank*/, const GoalOperation& operation, const std::string& message) const override {
    return InputError({name_, static_cast<int>(operation.place)}, message);
  }
  std::string text_of_place(const GoalOperation& operation) const override {
    return fmt::format("line {}", operation.place);
  }

 private:
  ConvertedGoals::Part convert(std::uint32_t rank) {
    GoalStatements nothing;
    for (; places_.size() <= rank; places_.push_back(reader_.place())) reader_.next(nothing);
    GoalConversion conversion;
    if (places_.size() == rank + std::size_t{1}) {
      reader_.next(conversion);
      places_.push_back(reader_.place());
    } else {
      read_again(rank).next(conversion);
    }
    const auto unknown = conversion.resolve();
    if (conversion.twice()) complain(rank, *conversion.twice());
    if (unknown) complain(rank, *unknown);
    const ConvertedGoals::Part part = conversion.write(goals_);
    return part.in_order ? part : sort(rank, part);
  }

  GoalTextReader read_again(std::uint32_t rank) const {
    GoalTextReader reader(content_());
    reader.go_to(places_[rank], rank);
    return reader;
  }

  [[noreturn]] void complain(std::uint32_t rank, const GoalWaits::Unknown& unknown) const {
    GoalTextReader reader = read_again(rank);
    UnknownLabel complaint(reader, rank, unknown);
    reader.next(complaint);
    throw InternalError(fmt::format("{}: relation {} of rank {} is gone", name_, unknown.relation, rank));
  }

  [[noreturn]] void complain(std::uint32_t rank, const GoalWaits::Twice& twice) const {
    GoalTextReader reader = read_again(rank);
    LabelTwice complaint(reader, rank, twice);
    reader.next(complaint);
    throw InternalError(fmt::format("{}: operation {} of rank {} is gone", name_, twice.second, rank));
  }

  ConvertedGoals::Part sort(std::uint32_t rank, const ConvertedGoals::Part& part) {
    GoalSorting sorting;
    const auto stream = goals_.stream(part);
    std::vector<std::uint32_t> before;
    for (GoalOperation one; stream->next(one, before);) sorting.add(one, before);
    return sorting.write(goals_, [this, rank](const GoalOperation& one, const std::string& message) {
      return error(rank, one, message);
    });
  }

  GoalContent content_;
  GoalTextReader reader_;                      // after the requested ranks
  std::vector<GoalTextReader::Place> places_;  // [rank] of the word `rank`
  std::string name_;
  ConvertedGoals goals_;
  std::map<std::uint32_t, ConvertedGoals::Part> converted_;
};

}  // namespace

std::unique_ptr<GoalFile> open_goal_text(const GoalContent& content) { return std::make_unique<TextGoal>(content); }

}  // namespace weft
