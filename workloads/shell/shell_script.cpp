// SPDX-License-Identifier: GPL-2.0-only
// Launch scripts: the variables that they set and the commands that they give, without running anything.
#include "workloads/shell/shell_script.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

namespace weft {
namespace {

/// Tests of `[ ... ]` and `[[ ... ]]` over texts and numbers; nothing for all else.
std::optional<bool> truth_of(std::vector<std::string> words) {
  if (words.size() < 3 || (words.front() != "[" && words.front() != "[[")) return std::nullopt;
  words.erase(words.begin());
  words.pop_back();
  const bool negated = words.front() == "!";
  if (negated) words.erase(words.begin());
  std::optional<bool> result;
  if (words.size() == 2 && words[0] == "-n") result = !words[1].empty();
  if (words.size() == 2 && words[0] == "-z") result = words[1].empty();
  if (words.size() == 3) {
    const std::string& sign = words[1];
    if (sign == "=" || sign == "==") result = words[0] == words[2];
    if (sign == "!=") result = words[0] != words[2];
    const auto number = [](const std::string& word) -> std::optional<long long> {
      long long value = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
      return error == std::errc{} && end == word.data() + word.size() ? std::optional(value) : std::nullopt;
    };
    if (const auto left = number(words[0]), right = number(words[2]); left && right) {
      if (sign == "-eq") result = *left == *right;
      if (sign == "-ne") result = *left != *right;
      if (sign == "-gt") result = *left > *right;
      if (sign == "-ge") result = *left >= *right;
      if (sign == "-lt") result = *left < *right;
      if (sign == "-le") result = *left <= *right;
    }
  }
  return result && negated ? std::optional(!*result) : result;
}

class Reader {
 public:
  Reader(const std::string& text, const std::string& file, ShellScript& script)
      : text_(text), file_(file), script_(script), expansion_(script.variables, file) {}

  void read() {
    while (skip_to_statement()) statement();
  }

 private:
  /// An open `if`, loop, case or group.
  struct Frame {
    std::string closed_by;
    bool active = true;         ///< this value counts
    std::optional<bool> taken;  ///< of an `if`: one of its branches has counted; nothing: not to be known
    bool waits = false;         ///< of a function: its opening brace is still expected
  };

  // Characters -------------------------------------------------------------------------------------------------------
  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void advance(std::size_t to) {
    to = std::min(to, text_.size());
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }
  void skip_comment() {
    while (!at_end() && peek() != '\n') ++at_;
  }
  /// White space within a line, joined lines included.
  void skip_blanks() {
    for (;;) {
      if (peek() == '\\' && peek(1) == '\n')
        advance(at_ + 2);
      else if (peek() == '\\' && peek(1) == '\r' && peek(2) == '\n')
        advance(at_ + 3);
      else if (!at_end() && (peek() == ' ' || peek() == '\t' || peek() == '\r'))
        ++at_;
      else
        return;
    }
  }
  bool skip_to_statement() {
    for (;;) {
      skip_blanks();
      if (at_end()) return false;
      if (peek() == '\n') {
        advance(at_ + 1);
        skip_here_documents();
      } else if (peek() == '#') {
        skip_comment();
      } else if (std::string_view(";&|()").find(peek()) != std::string_view::npos) {
        ++at_;
      } else {
        return true;
      }
    }
  }
  static bool ends_word(char c) { return std::string_view(" \t\r\n;&|()<>").find(c) != std::string_view::npos; }
  /// The raw text of a word, quotes included.
  std::string_view word() {
    const std::size_t start = at_;
    std::size_t end = at_;
    while (end < text_.size() && !ends_word(text_[end])) end = end_of_shell_unit(text_, end);
    advance(end);
    return std::string_view(text_).substr(start, end - start);
  }

  // Statements -------------------------------------------------------------------------------------------------------
  bool active() const { return frames_.empty() || frames_.back().active; }

  void statement() {
    const int line = line_;
    if (peek() == '<' || peek() == '>') return redirection();
    const std::size_t start = at_;
    if (assignment()) return;
    at_ = start;
    line_ = line;
    const std::string first(word());
    if (keyword(first, line)) return;
    if (peek() == '(' && peek(1) == ')') {  // a function
      advance(at_ + 2);
      pass_over("function", "}", line);
      return;
    }
    at_ = start;
    line_ = line;
    command();
  }

  /// NAME=value, NAME+=value, NAME=( ... ); several may precede a command.
  bool assignment() {
    std::size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '_'))
      ++end;
    if (end == at_ || std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) return false;
    const std::string name = text_.substr(at_, end - at_);
    const bool adds = text_.compare(end, 2, "+=") == 0;
    if (!adds && text_.compare(end, 1, "=") != 0) return false;
    advance(end + (adds ? 2 : 1));
    if (peek() == '(') {
      array(name, adds);
    } else {
      const int line = line_;
      const ShellText value = expansion_.text(word(), line);
      if (active()) {
        auto& elements = script_.variables.set(name);
        if (!adds || elements.empty())
          elements = {value};
        else
          elements.front().append(value);
      }
    }
    return true;
  }

  void array(const std::string& name, bool adds) {
    const int start = line_;
    advance(at_ + 1);
    std::vector<ShellText> elements;
    for (;;) {
      skip_blanks();
      if (at_end())
        throw InputError({file_, start}, fmt::format("the array {} has no end; expected a closing parenthesis", name));
      if (peek() == ')') break;
      if (peek() == '\n') {
        advance(at_ + 1);
      } else if (peek() == '#') {
        skip_comment();
      } else if (ends_word(peek())) {
        ++at_;
      } else {
        const int line = line_;
        for (ShellText& field : expansion_.fields(word(), line)) elements.push_back(std::move(field));
      }
    }
    advance(at_ + 1);
    if (!active()) return;
    auto& values = script_.variables.set(name);
    if (!adds) values.clear();
    values.insert(values.end(), elements.begin(), elements.end());
  }

  bool keyword(const std::string& word, int line) {
    if (word == "then" || word == "do" || word == "time" || word == "!") return true;
    if (word == "export" || word == "readonly" || word == "local" || word == "declare" || word == "typeset") {
      declaration();
      return true;
    }
    if (word == "if" || word == "elif") {
      condition(word == "if", line);
      return true;
    }
    if (word == "for" || word == "while" || word == "until" || word == "select") return pass_over(word, "done", line);
    if (word == "case") return pass_over(word, "esac", line);
    if (word == "function") return pass_over(word, "}", line);
    if (word == "{") {
      if (!frames_.empty() && frames_.back().waits)
        frames_.back().waits = false;
      else
        open({"}", active(), {}});
      return true;
    }
    if (word == "else") {
      if (!frames_.empty()) branch(frames_.back(), frames_.back().taken ? std::optional(true) : std::nullopt);
      return true;
    }
    if (word == "fi" || word == "done" || word == "esac" || word == "}") {
      if (!frames_.empty() && frames_.back().closed_by == word) frames_.pop_back();
      return true;
    }
    return false;
  }

  void open(Frame frame) {
    constexpr std::size_t deepest = 256;
    if (frames_.size() >= deepest)
      throw InputError({file_, line_}, fmt::format("more than {} open blocks; at most so many can be read", deepest));
    frames_.push_back(std::move(frame));
  }

  bool pass_over(const std::string& what, const std::string& closed_by, int line) {
    note(what, line);
    open({closed_by, false, {}, closed_by == "}"});
    return true;
  }
  void note(const std::string& what, int line) {
    if (active()) script_.passed_over.push_back(fmt::format("{} (line {})", what, line));
  }

  /// `export NAME=value`: options and bare names have no effect.
  void declaration() {
    for (;;) {
      skip_blanks();
      if (at_end() || ends_word(peek()) || peek() == '#') return;
      const std::size_t start = at_;
      const int line = line_;
      if (assignment()) continue;
      at_ = start;
      line_ = line;
      word();
    }
  }

  void condition(bool opens, int line) {
    skip_blanks();
    std::vector<std::string> words;
    bool known = true;
    for (const ShellText& text : words_of_command()) {
      known = known && text.gap().empty();
      words.push_back(text.text());
    }
    const bool joined = (peek() == '&' && peek(1) == '&') || peek() == '|';
    std::optional<bool> truth = truth_of(words);
    // An unset variable is an empty text to -n and -z.
    if (!known)
      truth = words.size() == 4 && (words[1] == "-n" || words[1] == "-z") ? truth_of({"[", words[1], "", "]"})
                                                                          : std::nullopt;
    if (joined) truth.reset();
    if (!truth) note(opens ? "if" : "elif", line);
    if (opens) open({"fi", active(), false});
    if (!frames_.empty()) branch(frames_.back(), truth);
  }

  /// The next branch of an `if`. Behind a condition that cannot be known none counts.
  void branch(Frame& frame, std::optional<bool> truth) {
    const bool around = frames_.size() < 2 || frames_[frames_.size() - 2].active;
    if (!truth || !frame.taken) {
      frame.taken.reset();
      frame.active = false;
      return;
    }
    frame.active = around && *truth && !*frame.taken;
    frame.taken = *frame.taken || *truth;
  }

  void redirection() {
    const bool here = peek() == '<' && peek(1) == '<' && peek(2) != '<';
    while (peek() == '<' || peek() == '>' || peek() == '&' || peek() == '-') ++at_;
    skip_blanks();
    const int line = line_;
    const std::string target = expansion_.text(word(), line).text();
    if (here && !target.empty()) here_documents_.push_back(target);
  }

  void skip_here_documents() {
    for (const std::string& delimiter : here_documents_)
      for (bool done = false; !done && !at_end();) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string_view row = std::string_view(text_).substr(at_, end - at_);
        row.remove_prefix(std::min(row.find_first_not_of('\t'), row.size()));
        done = row == delimiter;
        advance(end + 1);
      }
    here_documents_.clear();
  }

  std::vector<ShellText> words_of_command() {
    std::vector<ShellText> words;
    for (;;) {
      skip_blanks();
      if (at_end() || std::string_view("\n;&|()").find(peek()) != std::string_view::npos) return words;
      if (peek() == '#') {
        skip_comment();
      } else if (peek() == '<' || peek() == '>') {
        redirection();
      } else {
        const int line = line_;
        for (ShellText& field : expansion_.fields(word(), line)) words.push_back(std::move(field));
      }
    }
  }

  void command() {
    std::vector<ShellText> words = words_of_command();
    if (active() && !words.empty()) script_.commands.push_back(std::move(words));
  }

  const std::string& text_;
  const std::string& file_;
  ShellScript& script_;
  ShellExpansion expansion_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Frame> frames_;
  std::vector<std::string> here_documents_;
};

}  // namespace

ShellScript read_shell_script(const std::string& text, const std::string& file,
                              std::function<std::optional<std::string>(const std::string&)> outside) {
  ShellScript script;
  script.variables.outside = std::move(outside);
  Reader(text, file, script).read();
  return script;
}

}  // namespace weft
