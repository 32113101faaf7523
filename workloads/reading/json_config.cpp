// SPDX-License-Identifier: GPL-2.0-only
// Typed access to the objects of a JSON file, with the line of every complaint.
#include "workloads/reading/json_config.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/documents/spec.hpp"
#include "support/documents/text_file.hpp"

namespace weft {
namespace {

using nlohmann::json;

/// 1-based line of a byte offset.
int line_at(const std::string& text, std::size_t offset) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size()));
  return 1 + static_cast<int>(std::count(text.begin(), end, '\n'));
}

/// Offset after the string literal that opens at `quote`.
std::size_t end_of_string(const std::string& text, std::size_t quote) {
  std::size_t at = quote + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at + 1;
}

/// Line of a field of valid JSON by the keys that lead to it, or 0; of a repeated key the last, which is the one that
/// counts. nlohmann-json stores no positions of values.
int line_of_field(const std::string& text, const std::vector<std::string>& way) {
  std::vector<std::string> quoted;
  for (const std::string& key : way) quoted.push_back(json(key).dump());
  std::vector<std::string> open;  // for each open object or list the key that is being read, quoted
  int line = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '{' || c == '[') open.emplace_back();
    if (c == '}' || c == ']') open.pop_back();
    if (c != '"') continue;
    const std::size_t end = end_of_string(text, at);
    const std::size_t colon = text.find_first_not_of(" \t\r\n", end);
    if (colon != std::string::npos && text[colon] == ':') {
      open.back() = text.substr(at, end - at);
      if (open == quoted) line = line_at(text, at);
    }
    at = end - 1;
  }
  return line;
}

/// A value for people: structures could be of any size.
std::string shown(const json& value) {
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (value.is_object()) return fmt::format("an object of {}", value.size());
  const std::string text = value.dump();
  return text.size() <= 80 ? text : text.substr(0, 80) + "...";
}

}  // namespace

struct JsonConfig::Document {
  std::string file;
  std::string text;
  json root;
};

JsonConfig::JsonConfig(std::shared_ptr<const Document> document, const json& object, std::vector<std::string> way)
    : document_(std::move(document)),
      object_(&object),
      way_(std::move(way)),
      asked_(std::make_shared<std::set<std::string>>()) {}

JsonConfig JsonConfig::parse(const std::string& text, const std::string& name) {
  auto document = std::make_shared<Document>();
  document->file = name;
  document->text = text;
  // The parser takes a NUL for the end of the text, whatever follows.
  if (const std::size_t nul = text.find('\0'); nul != std::string::npos)
    throw InputError({name, line_at(text, nul)}, "not valid JSON: a NUL character");
  try {
    document->root = json::parse(text);
  } catch (const json::parse_error& failure) {
    // byte counts from 1 and is that of the last character read.
    throw InputError({name, line_at(text, failure.byte > 0 ? failure.byte - 1 : 0)},
                     fmt::format("not valid JSON: {}", failure.what()));
  } catch (const json::exception& failure) {
    throw InputError({name, 0}, fmt::format("not valid JSON: {}", failure.what()));  // a number beyond all doubles
  }
  if (!document->root.is_object())
    throw InputError({name, 1}, fmt::format("expected a JSON object, found {}", document->root.type_name()));
  const json& root = document->root;
  return {std::move(document), root, {}};
}

JsonConfig JsonConfig::load(const std::string& path) { return parse(text_of_file(path), path); }

const std::string& JsonConfig::file() const { return document_->file; }

std::string JsonConfig::path(const std::string& key) const {
  std::string path;
  for (const std::string& step : way_) path += step + ".";
  return path + key;
}

SourceLine JsonConfig::where(const std::string& key) const {
  std::vector<std::string> way = way_;
  way.push_back(key);
  return {file(), line_of_field(document_->text, way)};
}

InputError JsonConfig::error(const std::string& key, const std::string& message) const {
  return InputError(where(key), fmt::format("`{}`: {}", path(key), message));
}

const json* JsonConfig::find(const std::string& key) const {
  asked_->insert(key);
  const auto at = object_->find(key);
  return at != object_->end() && !at->is_null() ? &*at : nullptr;
}

bool JsonConfig::has(const std::string& key) const { return find(key) != nullptr; }

bool JsonConfig::is_object(const std::string& key) const {
  const json* value = find(key);
  return value != nullptr && value->is_object();
}

bool JsonConfig::is_boolean(const std::string& key) const {
  const json* value = find(key);
  return value != nullptr && value->is_boolean();
}

bool JsonConfig::is_text(const std::string& key) const {
  const json* value = find(key);
  return value != nullptr && value->is_string();
}

const json& JsonConfig::field(const std::string& key) const {
  if (const json* value = find(key)) return *value;
  std::vector<std::string> keys;
  for (const auto& item : object_->items()) keys.push_back(item.key());
  throw error(key, fmt::format("this field is missing{}", did_you_mean(key, keys)));
}

std::int64_t JsonConfig::count(const std::string& key) const {
  constexpr std::int64_t max = std::int64_t{1} << 24;
  const json& value = field(key);
  const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() >= 1 &&
                    value.get<std::uint64_t>() <= static_cast<std::uint64_t>(max);
  if (!fits) throw error(key, fmt::format("expected a whole number from 1 to {}, found {}", max, shown(value)));
  return value.get<std::int64_t>();
}

std::int64_t JsonConfig::count_or(const std::string& key, std::int64_t otherwise) const {
  return has(key) ? count(key) : otherwise;
}

std::int64_t JsonConfig::whole(const std::string& key, std::int64_t min, std::int64_t max) const {
  const double value = number(key, static_cast<double>(min), static_cast<double>(max));
  if (value != std::floor(value))
    throw error(key, fmt::format("expected a whole number from {} to {}, found {}", min, max, shown(field(key))));
  return static_cast<std::int64_t>(value);
}

double JsonConfig::number(const std::string& key, double min, double max) const {
  const json& value = field(key);
  if (!value.is_number() || !(value.get<double>() >= min && value.get<double>() <= max))
    throw error(key, fmt::format("expected a number from {} to {}, found {}", min, max, shown(value)));
  return value.get<double>();
}

bool JsonConfig::boolean_or(const std::string& key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const json& value = field(key);
  if (!value.is_boolean()) throw error(key, fmt::format("expected true or false, found {}", shown(value)));
  return value.get<bool>();
}

std::string JsonConfig::text(const std::string& key) const {
  const json& value = field(key);
  if (!value.is_string()) throw error(key, fmt::format("expected a text, found {}", shown(value)));
  return value.get<std::string>();
}

std::string JsonConfig::text_or(const std::string& key, const std::string& otherwise) const {
  return has(key) ? text(key) : otherwise;
}

const json* JsonConfig::list(const std::string& key) const {
  const json* value = find(key);
  if (value != nullptr && !value->is_array()) throw error(key, fmt::format("expected a list, found {}", shown(*value)));
  return value;
}

std::vector<std::int64_t> JsonConfig::counts(const std::string& key) const {
  constexpr std::uint64_t max = std::uint64_t{1} << 24;
  std::vector<std::int64_t> counts;
  if (const json* values = list(key))
    for (const json& value : *values) {
      if (!value.is_number_unsigned() || value.get<std::uint64_t>() > max)
        throw error(key, fmt::format("expected whole numbers from 0 to {}, found {}", max, shown(value)));
      counts.push_back(value.get<std::int64_t>());
    }
  return counts;
}

std::vector<std::string> JsonConfig::texts(const std::string& key) const {
  std::vector<std::string> texts;
  if (const json* values = list(key))
    for (const json& value : *values) {
      if (!value.is_string()) throw error(key, fmt::format("expected texts, found {}", shown(value)));
      texts.push_back(value.get<std::string>());
    }
  return texts;
}

JsonConfig JsonConfig::object(const std::string& key) const {
  const json& value = field(key);
  if (!value.is_object()) throw error(key, fmt::format("expected an object, found {}", shown(value)));
  std::vector<std::string> way = way_;
  way.push_back(key);
  return {document_, value, std::move(way)};
}

std::size_t JsonConfig::entries(const std::string& key) const {
  const json* value = find(key);
  return value != nullptr && value->is_structured() ? value->size() : 0;
}

std::vector<std::string> JsonConfig::unasked() const {
  std::vector<std::string> keys;
  for (const auto& item : object_->items())
    if (!asked_->contains(item.key())) keys.push_back(item.key());
  return keys;
}

}  // namespace weft
