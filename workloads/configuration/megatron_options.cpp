// SPDX-License-Identifier: GPL-2.0-only
// Options of a Megatron-LM command, however they were written, with typed access.
#include "workloads/configuration/megatron_options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr std::int64_t max_count = std::int64_t{1} << 24;

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(value) ? std::optional(value)
                                                                                          : std::nullopt;
}

bool is_option(const std::string& word) { return word.size() > 2 && word.starts_with("--"); }

}  // namespace

std::string MegatronOptions::canonical(std::string name) {
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

void MegatronOptions::add(const std::string& name, std::vector<ShellText> values, const SourceLine& where) {
  options_[canonical(name)] = {std::move(values), where};
}

void MegatronOptions::add_words(const std::vector<ShellText>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i].text();
    if (!is_option(word)) continue;
    const SourceLine where{file_, words[i].line()};
    if (const std::size_t sign = word.find('='); sign != std::string::npos) {
      ShellText value(std::string_view(word).substr(sign + 1), words[i].line());
      if (!words[i].gap().empty()) value.append_gap(words[i].gap(), words[i].line());
      add(word.substr(0, sign), {std::move(value)}, where);
      continue;
    }
    std::vector<ShellText> values;
    while (i + 1 < words.size() && !is_option(words[i + 1].text())) values.push_back(words[++i]);
    add(word, std::move(values), where);
  }
}

const MegatronOptions::Option* MegatronOptions::find(const std::string& name) const {
  asked_.insert(name);
  const auto at = options_.find(name);
  return at == options_.end() ? nullptr : &at->second;
}

bool MegatronOptions::has(const std::string& name) const { return find(name) != nullptr; }

bool MegatronOptions::flag(const std::string& name) const {
  const Option* option = find(name);
  if (option == nullptr) return false;
  if (option->values.empty()) return true;
  const std::string& value = option->values.front().text();
  return value != "false" && value != "False" && value != "0";
}

std::string MegatronOptions::value(const std::string& name) const {
  const Option* option = find(name);
  if (option == nullptr) throw error(name, "this option is missing");
  if (option->values.empty()) throw error(name, "expected a value, found none");
  const ShellText& value = option->values.front();
  if (const std::string gap = value.gap(); !gap.empty())
    throw error(name,
                fmt::format("its value is {}, which nothing here sets; set that variable, or write the value", gap));
  return value.text();
}

std::int64_t MegatronOptions::whole(const std::string& name, std::int64_t min, std::int64_t max) const {
  const std::string text = value(name);
  const auto number = number_in(text);
  if (!number || *number != std::floor(*number) || *number < static_cast<double>(min) ||
      *number > static_cast<double>(max))
    throw error(name, fmt::format("expected a whole number from {} to {}, found '{}'", min, max, text));
  return static_cast<std::int64_t>(*number);
}

std::int64_t MegatronOptions::count(const std::string& name) const { return whole(name, 1, max_count); }

std::int64_t MegatronOptions::count_or(const std::string& name, std::int64_t otherwise) const {
  return has(name) ? count(name) : otherwise;
}

double MegatronOptions::number(const std::string& name) const {
  const std::string text = value(name);
  const auto number = number_in(text);
  if (!number) throw error(name, fmt::format("expected a number, found '{}'", text));
  return *number;
}

std::string MegatronOptions::text(const std::string& name) const { return value(name); }

std::string MegatronOptions::text_or(const std::string& name, const std::string& otherwise) const {
  return has(name) ? value(name) : otherwise;
}

std::vector<std::string> MegatronOptions::texts(const std::string& name) const {
  std::vector<std::string> texts;
  if (const Option* option = find(name))
    for (const ShellText& value : option->values) texts.push_back(value.text());
  return texts;
}

SourceLine MegatronOptions::where(const std::string& name) const {
  const auto at = options_.find(name);
  return at == options_.end() ? SourceLine{file_, 0} : at->second.where;
}

InputError MegatronOptions::error(const std::string& name, const std::string& message) const {
  return InputError(where(name), fmt::format("--{}: {}", name, message));
}

std::vector<std::string> MegatronOptions::unasked() const {
  std::vector<std::string> names;
  for (const auto& [name, option] : options_)
    if (!asked_.contains(name)) names.push_back("--" + name);
  return names;
}

void MegatronOptions::refuse_misspelt() const {
  // Megatron-LM has these, too (megatron/training/arguments.py).
  static const std::set<std::string> others = {"vocab-file", "decoder-seq-length", "fp4-param-gather"};
  constexpr std::size_t min = 8;  // shorter names are near to many others
  constexpr std::size_t edits = 2;
  for (const auto& [name, option] : options_) {
    if (asked_.contains(name) || name.size() < min || others.contains(name)) continue;
    for (const std::string& known : asked_)
      if (nearly_the_same(name, known, edits))
        throw error(name, fmt::format("there is no such option (did you mean '--{}'?)", known));
  }
}

}  // namespace weft
