// SPDX-License-Identifier: GPL-2.0-only
// Words of shell scripts: quotes, variables and arithmetic, as far as launch scripts of training jobs use them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/basics/error.hpp"

namespace weft {

/// Text with the line of each part of it. Parts that cannot be known without running commands are gaps.
class ShellText {
 public:
  ShellText() = default;
  ShellText(std::string_view text, int line);

  const std::string& text() const { return text_; }
  /// Line of the first character.
  int line() const { return line_at(0); }
  /// What is unknown in it ("${TP}"), or an empty text.
  std::string gap() const;

  void append(std::string_view text, int line);
  void append(const ShellText& other);
  void append_gap(std::string_view source, int line);
  /// Split at white space.
  std::vector<ShellText> fields() const;

 private:
  struct Mark {
    std::size_t offset;
    int line;
  };
  int line_at(std::size_t offset) const;

  std::string text_;
  std::vector<Mark> marks_;
};

/// Variables of a script. A plain variable is an array of one.
struct ShellVariables {
  std::map<std::string, std::vector<ShellText>> values;
  std::vector<std::string> order;  ///< names as they were first set
  /// A variable that the script does not set, such as one of the environment.
  std::function<std::optional<std::string>(const std::string&)> outside;

  std::vector<ShellText>& set(const std::string& name);
  /// Null if nothing sets it.
  const std::vector<ShellText>* find(const std::string& name);
};

/// Expands words of a script.
class ShellExpansion {
 public:
  /// `file` is for complaints.
  ShellExpansion(ShellVariables& variables, std::string file);
  /// A word as written in the script, including quotes, from `line` on: no field, one, or several. Throws InputError if
  /// it grows beyond all measure.
  std::vector<ShellText> fields(std::string_view word, int line);
  /// The same without splitting, as in an assignment.
  ShellText text(std::string_view word, int line);

 private:
  class Output;
  void expand(std::string_view raw, int line, bool quoted, Output& output, int depth);
  /// Expands the expression that starts with a dollar sign at `at`, and returns the offset after it.
  std::size_t dollar(std::string_view raw, std::size_t at, int line, bool quoted, Output& output, int depth);
  void parameter(std::string_view inner, std::string_view source, int line, bool quoted, Output& output, int depth);
  void value_of(const std::string& name, std::string_view source, int line, bool quoted, Output& output);
  void spend(std::size_t bytes, int line);

  ShellVariables& variables_;
  std::string file_;
  std::size_t spent_ = 0;
};

/// Offset after the quotation, expansion or plain character that starts at `at`.
std::size_t end_of_shell_unit(std::string_view text, std::size_t at);

/// Value of an arithmetic expression: + - * / % and parentheses over whole numbers and variables; nothing if it is
/// anything else, divides by zero or leaves 64 bits.
std::optional<std::int64_t> shell_arithmetic(std::string_view expression, ShellVariables& variables);

}  // namespace weft
