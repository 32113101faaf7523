// SPDX-License-Identifier: GPL-2.0-only
// Typed access to a flat JSON file, with the line of every complaint.
#include "workloads/json_config.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/spec.hpp"

namespace weft {
namespace {

using nlohmann::json;

/// 1-based line of a byte offset.
int line_at(const std::string& text, std::size_t offset) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size()));
  return 1 + static_cast<int>(std::count(text.begin(), end, '\n'));
}

/// Offset behind the string literal that opens at `quote`.
std::size_t end_of_string(const std::string& text, std::size_t quote) {
  std::size_t at = quote + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at + 1;
}

/// Line of a key of the outermost object of valid JSON, or 0. nlohmann-json keeps no places of values.
int line_of_key(const std::string& text, const std::string& key) {
  const std::string quoted = json(key).dump();
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    const std::size_t end = end_of_string(text, at);
    const std::size_t colon = text.find_first_not_of(" \t\r\n", end);
    if (depth == 1 && colon != std::string::npos && text[colon] == ':' && text.compare(at, end - at, quoted) == 0)
      return line_at(text, at);
    at = end - 1;
  }
  return 0;
}

}  // namespace

JsonConfig::JsonConfig(std::string file, std::string text) : file_(std::move(file)), text_(std::move(text)) {
  try {
    json_ = std::make_shared<const json>(json::parse(text_));
  } catch (const json::parse_error& failure) {
    // byte counts from 1 and stands on the last character read.
    throw InputError({file_, line_at(text_, failure.byte > 0 ? failure.byte - 1 : 0)},
                     fmt::format("not valid JSON: {}", failure.what()));
  }
  if (!json_->is_object())
    throw InputError({file_, 1}, fmt::format("a JSON object is due, found {}", json_->type_name()));
}

JsonConfig JsonConfig::load(const std::string& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) throw InputError({path, 0}, "the file cannot be read");
  return {path, text.str()};
}

JsonConfig JsonConfig::parse(const std::string& text, const std::string& name) { return {name, text}; }

InputError JsonConfig::error(const std::string& key, const std::string& message) const {
  return InputError({file_, line_of_key(text_, key)}, fmt::format("`{}`: {}", key, message));
}

bool JsonConfig::has(const std::string& key) const {
  const auto at = json_->find(key);
  return at != json_->end() && !at->is_null();
}

const json& JsonConfig::field(const std::string& key) const {
  if (has(key)) return *json_->find(key);
  std::vector<std::string> keys;
  for (const auto& item : json_->items()) keys.push_back(item.key());
  throw error(key, fmt::format("this field is missing{}", did_you_mean(key, keys)));
}

std::int64_t JsonConfig::count(const std::string& key) const {
  constexpr std::int64_t most = std::int64_t{1} << 24;
  const json& value = field(key);
  const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() >= 1 &&
                    value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
  if (!fits) throw error(key, fmt::format("a whole number from 1 to {} is due, found {}", most, value.dump()));
  return value.get<std::int64_t>();
}

std::int64_t JsonConfig::count_or(const std::string& key, std::int64_t otherwise) const {
  return has(key) ? count(key) : otherwise;
}

bool JsonConfig::boolean_or(const std::string& key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const json& value = field(key);
  if (!value.is_boolean()) throw error(key, fmt::format("true or false is due, found {}", value.dump()));
  return value.get<bool>();
}

std::string JsonConfig::text(const std::string& key) const {
  const json& value = field(key);
  if (!value.is_string()) throw error(key, fmt::format("a text is due, found {}", value.dump()));
  return value.get<std::string>();
}

}  // namespace weft
