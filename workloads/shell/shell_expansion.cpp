// SPDX-License-Identifier: GPL-2.0-only
// Words of shell scripts: quotes, variables and arithmetic, as far as launch scripts of training jobs use them.
#include "workloads/shell/shell_expansion.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr char gap_begins = '\x01';
constexpr char gap_ends = '\x02';
constexpr int deepest = 32;
constexpr std::size_t max_bytes = std::size_t{8} << 20;

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

int lines_in(std::string_view text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

/// Offset after the bracket that closes the one at `at`; quotations are skipped.
std::size_t end_of_brackets(std::string_view text, std::size_t at, char open, char close) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == open) ++depth;
    if (c == close && --depth == 0) return at + 1;
    if (c == '\\') {
      at += 2;
    } else if (c == '\'' || c == '"') {
      const std::size_t end = text.find(c, at + 1);
      at = end == std::string_view::npos ? text.size() : end + 1;
    } else {
      ++at;
    }
  }
  return text.size();
}

std::size_t end_of_dollar(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size()) return at + 1;
  const char next = text[at + 1];
  if (next == '(') return end_of_brackets(text, at + 1, '(', ')');
  if (next == '{') return end_of_brackets(text, at + 1, '{', '}');
  std::size_t end = at + 1;
  if (std::isdigit(static_cast<unsigned char>(next)) != 0) return end + 1;
  while (end < text.size() && is_name(text[end])) ++end;
  if (end == at + 1 && std::string_view("@*#?$!-").find(next) != std::string_view::npos) return at + 2;
  return end;
}

std::size_t end_of_double_quotes(std::string_view text, std::size_t at) {
  ++at;
  while (at < text.size() && text[at] != '"') {
    if (text[at] == '\\')
      at += 2;
    else if (text[at] == '$')
      at = end_of_dollar(text, at);
    else
      ++at;
  }
  return std::min(at + 1, text.size());
}

std::size_t behind(std::string_view text, char wanted, std::size_t from) {
  const std::size_t found = text.find(wanted, from);
  return found == std::string_view::npos ? text.size() : found + 1;
}

}  // namespace

std::size_t end_of_shell_unit(std::string_view text, std::size_t at) {
  switch (text[at]) {
    case '\\':
      return std::min(at + 2, text.size());
    case '\'':
    case '`':
      return behind(text, text[at], at + 1);
    case '"':
      return end_of_double_quotes(text, at);
    case '$':
      return std::min(end_of_dollar(text, at), text.size());
    default:
      return at + 1;
  }
}

ShellText::ShellText(std::string_view text, int line) { append(text, line); }

int ShellText::line_at(std::size_t offset) const {
  int line = marks_.empty() ? 0 : marks_.front().line;
  for (const Mark& mark : marks_)
    if (mark.offset <= offset) line = mark.line;
  return line;
}

std::string ShellText::gap() const {
  const std::size_t begin = text_.find(gap_begins);
  if (begin == std::string::npos) return "";
  const std::size_t end = text_.find(gap_ends, begin);
  return text_.substr(begin + 1, end == std::string::npos ? end : end - begin - 1);
}

void ShellText::append(std::string_view text, int line) {
  if (marks_.empty() || marks_.back().line != line) marks_.push_back({text_.size(), line});
  for (const char c : text)
    if (c != gap_begins && c != gap_ends && c != '\0') text_ += c;
}

void ShellText::append(const ShellText& other) {
  for (const Mark& mark : other.marks_)
    if (marks_.empty() || marks_.back().line != mark.line) marks_.push_back({text_.size() + mark.offset, mark.line});
  text_ += other.text_;
}

void ShellText::append_gap(std::string_view source, int line) {
  append("", line);
  text_ += gap_begins;
  for (const char c : source) text_ += is_space(c) || c == gap_begins || c == gap_ends ? '_' : c;
  text_ += gap_ends;
}

std::vector<ShellText> ShellText::fields() const {
  std::vector<ShellText> fields;
  std::size_t mark = 0;
  for (std::size_t at = 0; at < text_.size();) {
    if (is_space(text_[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text_.size() && !is_space(text_[end])) ++end;
    while (mark + 1 < marks_.size() && marks_[mark + 1].offset <= at) ++mark;
    ShellText field;
    field.text_ = text_.substr(at, end - at);
    field.marks_ = {{0, marks_[mark].line}};
    fields.push_back(std::move(field));
    at = end;
  }
  return fields;
}

std::vector<ShellText>& ShellVariables::set(const std::string& name) {
  const auto [at, is_new] = values.try_emplace(name);
  if (is_new) order.push_back(name);
  return at->second;
}

const std::vector<ShellText>* ShellVariables::find(const std::string& name) {
  if (const auto at = values.find(name); at != values.end()) return &at->second;
  const auto given = outside ? outside(name) : std::nullopt;
  if (!given) return nullptr;
  return &values.emplace(name, std::vector<ShellText>{ShellText(*given, 0)}).first->second;
}

/// Fields under construction.
class ShellExpansion::Output {
 public:
  explicit Output(bool splits) : splits_(splits) {}

  void add(std::string_view text, int line) {
    current_.append(text, line);
    begun_ = true;
  }
  void add_gap(std::string_view source, int line) {
    current_.append_gap(source, line);
    begun_ = true;
  }
  void begin() { begun_ = true; }
  /// The value of a variable: in quotes each element is a field, otherwise white space parts fields too.
  void add_value(const std::vector<ShellText>& elements, bool quoted) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (i > 0) part();
      if (quoted || !splits_) {
        current_.append(elements[i]);
        begun_ = begun_ || quoted || !elements[i].text().empty();
      } else {
        add_split(elements[i]);
      }
    }
  }
  std::vector<ShellText> take() {
    if (begun_) fields_.push_back(std::move(current_));
    return std::move(fields_);
  }
  ShellText take_text() { return std::move(current_); }

 private:
  void add_split(const ShellText& element) {
    const std::string& text = element.text();
    if (!text.empty() && is_space(text.front())) part();
    const auto fields = element.fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i > 0) part();
      current_.append(fields[i]);
      begun_ = true;
    }
    if (!text.empty() && is_space(text.back())) part();
  }
  void part() {
    if (!splits_) {
      current_.append(" ", current_.line());
      return;
    }
    if (begun_) fields_.push_back(std::move(current_));
    current_ = ShellText();
    begun_ = false;
  }

  bool splits_;
  bool begun_ = false;
  ShellText current_;
  std::vector<ShellText> fields_;
};

ShellExpansion::ShellExpansion(ShellVariables& variables, std::string file)
    : variables_(variables), file_(std::move(file)) {}

std::vector<ShellText> ShellExpansion::fields(std::string_view word, int line) {
  Output output(true);
  expand(word, line, false, output, 0);
  return output.take();
}

ShellText ShellExpansion::text(std::string_view word, int line) {
  Output output(false);
  expand(word, line, false, output, 0);
  return output.take_text();
}

void ShellExpansion::spend(std::size_t bytes, int line) {
  spent_ += bytes;
  if (spent_ > max_bytes)
    throw InputError({file_, line}, fmt::format("the variables of this script expand to more than {} MiB; is one put "
                                                "into itself again and again?",
                                                max_bytes >> 20U));
}

void ShellExpansion::expand(std::string_view raw, int line, bool quoted, Output& output, int depth) {
  for (std::size_t at = 0; at < raw.size();) {
    const std::size_t end = std::min(end_of_shell_unit(raw, at), raw.size());
    const std::string_view unit = raw.substr(at, end - at);
    spend(unit.size(), line);
    const char c = unit.front();
    if (c == '\\') {
      // A backslash before a line's end joins lines; within double quotes it stays before most characters.
      const bool escapes =
          unit.size() > 1 && (!quoted || std::string_view("$`\"\\\n").find(unit[1]) != std::string_view::npos);
      const std::string_view kept = escapes ? unit.substr(1) : unit;
      if (kept != "\n") output.add(kept, line);
    } else if (c == '$') {
      dollar(raw, at, line, quoted, output, depth);
    } else if (c == '`') {
      output.add_gap(unit, line);
    } else if (!quoted && c == '"') {
      output.begin();
      if (unit.size() > 2) expand(unit.substr(1, unit.size() - 2), line, true, output, depth);
    } else if (!quoted && c == '\'') {
      output.begin();
      for (std::size_t i = 1, inner = static_cast<std::size_t>(line); i + 1 < unit.size(); ++i) {
        output.add(unit.substr(i, 1), static_cast<int>(inner));
        if (unit[i] == '\n') ++inner;
      }
    } else {
      output.add(unit, line);
    }
    line += lines_in(unit);
    at = end;
  }
}

std::size_t ShellExpansion::dollar(std::string_view raw, std::size_t at, int line, bool quoted, Output& output,
                                   int depth) {
  const std::size_t end = std::min(end_of_dollar(raw, at), raw.size());
  const std::string_view source = raw.substr(at, end - at);
  if (depth > deepest || source.size() < 2) {
    output.add(source, line);
  } else if (source.starts_with("$((") && source.ends_with("))")) {
    Output inner(false);
    expand(source.substr(3, source.size() - 5), line, true, inner, depth + 1);
    const auto value = shell_arithmetic(inner.take_text().text(), variables_);
    value ? output.add(std::to_string(*value), line) : output.add_gap(source, line);
  } else if (source[1] == '{' && source.ends_with('}')) {
    parameter(source.substr(2, source.size() - 3), source, line, quoted, output, depth);
  } else if (is_name(source[1])) {
    value_of(std::string(source.substr(1)), source, line, quoted, output);
  } else {
    output.add_gap(source, line);
  }
  return end;
}

void ShellExpansion::parameter(std::string_view inner, std::string_view source, int line, bool quoted, Output& output,
                               int depth) {
  std::size_t length = 0;
  while (length < inner.size() && is_name(inner[length])) ++length;
  const std::string name(inner.substr(0, length));
  std::string_view rest = inner.substr(length);
  if (name.empty()) return output.add_gap(source, line);
  if (rest == "[@]" || rest == "[*]" || rest.empty()) return value_of(name, source, line, quoted, output);
  const bool empty_too = rest.front() == ':';
  if (empty_too) rest.remove_prefix(1);
  const auto* value = variables_.find(name);
  const bool is_set = value != nullptr && !(empty_too && (value->empty() || value->front().text().empty()));
  if (rest.empty()) return output.add_gap(source, line);
  switch (rest.front()) {
    case '=':
      if (!is_set) {
        Output fallback(false);
        expand(rest.substr(1), line, true, fallback, depth + 1);
        variables_.set(name) = {fallback.take_text()};
      }
      return value_of(name, source, line, quoted, output);
    case '-':
      if (is_set) return value_of(name, source, line, quoted, output);
      return expand(rest.substr(1), line, quoted, output, depth + 1);
    case '?':
      return value_of(name, source, line, quoted, output);
    case '+':
      if (is_set) expand(rest.substr(1), line, quoted, output, depth + 1);
      return;
    default:
      output.add_gap(source, line);
  }
}

void ShellExpansion::value_of(const std::string& name, std::string_view source, int line, bool quoted, Output& output) {
  const auto* value = variables_.find(name);
  if (value == nullptr) return output.add_gap(source, line);
  for (const ShellText& element : *value) spend(element.text().size() + 1, line);
  output.add_value(*value, quoted);
}

}  // namespace weft
