// SPDX-License-Identifier: GPL-2.0-only
// Arithmetic of shell scripts.
#include <cctype>
#include <charconv>

#include "workloads/shell/shell_expansion.hpp"

namespace weft {
namespace {

/// Recursive descent; a failure is remembered, and the result thrown away.
class Arithmetic {
 public:
  Arithmetic(std::string_view text, ShellVariables& variables) : text_(text), variables_(variables) {}

  std::optional<std::int64_t> value() {
    const std::int64_t result = sum(0);
    skip_space();
    if (failed_ || at_ != text_.size()) return std::nullopt;
    return result;
  }

 private:
  static constexpr int deepest = 64;

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(char wanted) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  std::int64_t fail() {
    failed_ = true;
    at_ = text_.size();
    return 0;
  }

  std::int64_t sum(int depth) {
    std::int64_t left = product(depth);
    for (;;) {
      const bool add = take('+');
      if (!add && !take('-')) return left;
      const std::int64_t right = product(depth);
      if (add ? __builtin_add_overflow(left, right, &left) : __builtin_sub_overflow(left, right, &left)) return fail();
    }
  }

  std::int64_t product(int depth) {
    std::int64_t left = factor(depth);
    for (;;) {
      skip_space();
      const char sign = at_ < text_.size() ? text_[at_] : '\0';
      if (sign != '*' && sign != '/' && sign != '%') return left;
      ++at_;
      const std::int64_t right = factor(depth);
      if (sign == '*') {
        if (__builtin_mul_overflow(left, right, &left)) return fail();
      } else {
        if (right <= 0) return fail();
        left = sign == '/' ? left / right : left % right;
      }
    }
  }

  std::int64_t factor(int depth) {
    if (depth > deepest) return fail();
    if (take('(')) {
      const std::int64_t inner = sum(depth + 1);
      return take(')') ? inner : fail();
    }
    if (take('-')) {
      std::int64_t negated = 0;
      return __builtin_sub_overflow(std::int64_t{0}, factor(depth + 1), &negated) ? fail() : negated;
    }
    skip_space();
    const std::size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    return number(text_.substr(start, at_ - start));
  }

  std::int64_t number(std::string_view word) {
    std::string found;  // the value of a variable
    if (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) == 0) {
      const auto* value = variables_.find(std::string(word));
      if (value == nullptr || value->size() != 1) return fail();
      found = value->front().text();
      word = found;
    }
    std::int64_t result = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), result);
    return error == std::errc{} && end == word.data() + word.size() ? result : fail();
  }

  std::string_view text_;
  ShellVariables& variables_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(std::string_view expression, ShellVariables& variables) {
  return Arithmetic(expression, variables).value();
}

}  // namespace weft
