// SPDX-License-Identifier: GPL-2.0-only
// Typed access to an experiment file, and the text of everything that can be wrong with it.
#include "support/documents/spec.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/documents/spec_document.hpp"
#include "support/documents/text_file.hpp"
#include "units/text.hpp"

namespace weft {

using Value = Spec::Value;
using Kind = Spec::Value::Kind;

namespace {

/// A description of a value, for "found ...".
std::string found(const Value& value) {
  switch (value.kind) {
    case Kind::null:
      return "nothing";
    case Kind::scalar: {  // a file of another format may be one long text
      constexpr std::size_t longest = 60;
      if (value.text.size() <= longest) return fmt::format("'{}'", value.text);
      std::size_t end = longest;
      while (end > 0 && (static_cast<unsigned char>(value.text[end]) & 0xc0U) == 0x80U) --end;  // whole characters
      return fmt::format("'{}...'", value.text.substr(0, end));
    }
    case Kind::map:
      return "a map";
    case Kind::sequence:
      return "a list";
  }
  return "";
}

std::string joined(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  return list.empty() ? "nothing" : list;
}

/// " from 1 to 16", " of at least 1", " of at most 16" or "", for "expected a whole number...".
template <class Number>
std::string range_text(Number min, Number max, Number lowest, Number highest) {
  if (min > lowest && max < highest) return fmt::format(" from {} to {}", min, max);
  if (min > lowest) return fmt::format(" of at least {}", min);
  if (max < highest) return fmt::format(" of at most {}", max);
  return "";
}

std::vector<std::string> split_path(const std::string& path, const SourceLine& where) {
  std::vector<std::string> steps;
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    steps.push_back(path.substr(begin, end - begin));
    if (steps.back().empty()) {
      throw InputError(
          where, fmt::format("'{}' is not a path of keys with dots between; write for example 'topology.k'", path));
    }
    begin = end + 1;
  }
  return steps;
}

/// The child of a sequence that --set names by its number; index `size` is made.
Value& step_into_sequence(Value& sequence, const std::string& step, const std::string* option) {
  auto& items = sequence.children->in_order;
  std::size_t index = 0;
  const char* end = step.data() + step.size();
  const auto [stop, problem] = std::from_chars(step.data(), end, index);
  if (problem != std::errc() || stop != end || index > items.size()) {
    throw InputError({*option, 0}, fmt::format("'{}' is not a place in the list `{}`; it has {} items, counted from 0",
                                               step, sequence.dotted_path(), items.size()));
  }
  if (index == items.size()) sequence.append(sequence.document->create(option, 0));
  return *items[index];
}

/// One step of a --set path; missing maps are created.
Value& step_into(Value& from, const std::string& step, const std::string* option) {
  if (from.kind == Kind::scalar) {
    throw InputError({*option, 0}, fmt::format("`{}` is the single value '{}', so there is no '{}' in it to set",
                                               from.dotted_path(), from.text, step));
  }
  if (from.kind == Kind::null) from.make(step == "0" ? Kind::sequence : Kind::map);
  if (from.kind == Kind::sequence) return step_into_sequence(from, step, option);
  if (Value* child = from.find(step)) return *child;
  Value& child = from.document->create(option, 0);
  from.insert(step, child);
  return child;
}

}  // namespace

// The document --------------------------------------------------------------------------------------------------------

Spec Spec::load(const std::string& path) {
  const std::string text = text_of_file(path);
  // The signature of HDF5's file format, section II.A.
  if (text.starts_with("\x89HDF\r\n"))
    throw InputError({path, 0}, "this is an HDF5 file, such as `weft run` writes for its results; expected YAML");
  return parse(text, path);
}

Spec Spec::parse(const std::string& text, const std::string& name) {
  auto document = std::make_shared<Document>();
  document->verbatim = text;
  const std::string* file = document->add_file(name);
  document->root = read_yaml(*document, text, file, true);
  if (document->root == nullptr || document->root->kind == Kind::null) {
    throw InputError({name, 0}, "this file is empty; expected YAML, for example 'topology: {kind: fat_tree, k: 4}'");
  }
  return Spec(std::shared_ptr<Value>(document, document->root));
}

Spec Spec::of_option(const std::string& option, const std::string& yaml) {
  auto document = std::make_shared<Document>();
  const std::string* place = document->add_file(option);
  document->root = read_yaml(*document, yaml, place, false);
  if (document->root == nullptr) document->root = &document->create(place, 0);
  return Spec(std::shared_ptr<Value>(document, document->root));
}

void Spec::set(const std::string& path, const std::string& yaml) {
  Document& document = *value_->document;
  const std::string* option = document.add_file(fmt::format("--set {}={}", path, yaml));
  const auto steps = split_path(path, {*option, 0});
  Value* given = read_yaml(document, yaml, option, false);
  if (given == nullptr) given = &document.create(option, 0);
  Value* target = value_.get();
  for (const std::string& step : steps) target = &step_into(*target, step, option);
  target->take_content(*given);
}

void Spec::remove(const std::string& path) {
  Value* target = value_.get();
  Value* map = nullptr;
  const auto steps = split_path(path, where());
  for (const std::string& step : steps) {
    map = target;
    target = map->kind == Kind::map ? map->find(step) : nullptr;
    if (target == nullptr) return;
  }
  map->erase(*target);
}

std::string Spec::dump() const { return write_yaml(*value_->document->root); }

const std::string& Spec::verbatim() const { return value_->document->verbatim; }

SourceLine Spec::where() const { return value_->where(); }
const std::string& Spec::path() const { return value_->dotted_path(); }
bool Spec::is_map() const { return value_->kind == Kind::map; }
bool Spec::is_sequence() const { return value_->kind == Kind::sequence; }
bool Spec::is_scalar() const { return value_->kind == Kind::scalar; }
bool Spec::is_null() const { return value_->kind == Kind::null; }

InputError Spec::error(const std::string& message) const {
  return InputError(where(), path().empty() ? message : fmt::format("`{}`: {}", path(), message));
}

// Maps ----------------------------------------------------------------------------------------------------------------

std::optional<Spec> Spec::find(const std::string& key) const {
  if (is_null()) throw error("expected a map, found nothing; leave the key out if nothing is set below it");
  if (!is_map()) throw error(fmt::format("expected a map with the key '{}', found {}", key, found(*value_)));
  value_->children->asked.insert(key);
  Value* child = value_->find(key);
  if (child == nullptr) return std::nullopt;
  return Spec(std::shared_ptr<Value>(value_, child));
}

Spec Spec::at(const std::string& key) const {
  if (is_null()) throw error(fmt::format("expected a map with the key '{}', found nothing", key));
  if (auto child = find(key)) return *child;
  // The key may be there, misspelt: finish() would find it, but this check is earlier.
  for (const Value* child : value_->children->in_order) {
    if (value_->children->asked.contains(child->key)) continue;
    const std::string hint = did_you_mean(child->key, {key});
    if (hint.empty()) continue;
    const std::string place = path().empty() ? "" : fmt::format("`{}`: ", path());
    throw InputError(child->key_where(), fmt::format("{}missing key '{}', found '{}'{}", place, key, child->key, hint));
  }
  std::vector<std::string> present;
  for (const Value* child : value_->children->in_order) {
    if (child->key.starts_with(key + ":"))
      throw InputError(child->key_where(),
                       fmt::format("missing key '{}', found '{}'; expected a space after the colon", key, child->key));
    present.push_back(child->key);
  }
  throw error(fmt::format("missing key '{}'; found here: {}", key, joined(present)));
}

std::vector<std::pair<std::string, Spec>> Spec::entries() const {
  if (!is_map()) throw error(fmt::format("expected a map, found {}", found(*value_)));
  std::vector<std::pair<std::string, Spec>> result;
  for (Value* child : value_->children->in_order) {
    value_->children->asked.insert(child->key);
    result.emplace_back(child->key, Spec(std::shared_ptr<Value>(value_, child)));
  }
  return result;
}

namespace {

/// The first maps of the document whose readers looked for the key.
std::vector<std::string> maps_that_know(Spec::Document& document, const std::string& key) {
  constexpr std::size_t max = 3;
  std::vector<std::string> found;
  for (Spec::Value& value : document.values)
    if (value.kind == Kind::map && value.children->asked.contains(key) && found.size() < max)
      found.push_back(value.dotted_path());
  return found;
}

/// The key that may be meant by an unknown one.
std::string hint_for_key(const Spec::Value& map, const Spec::Value& child, const std::vector<std::string>& known,
                         const std::map<std::string, std::string>& meant) {
  if (const auto other = meant.find(child.key); other != meant.end())
    return fmt::format(" (did you mean '{}'?)", other->second);
  if (const std::string hint = did_you_mean(child.key, known); !hint.empty()) return hint;
  for (const Spec::Value* outer = map.parent; outer != nullptr; outer = outer->parent)
    if (outer->kind == Kind::map && outer->children->asked.contains(child.key))
      return fmt::format(" (it is a key of {}: is this line indented too far?)",
                         outer->parent == nullptr ? "the whole file" : fmt::format("'{}'", outer->key));
  if (const auto others = maps_that_know(*map.document, child.key); !others.empty())
    return fmt::format(" (it is a key of '{}')", fmt::join(others, "' and of '"));
  const auto& order = map.children->in_order;
  const auto before = std::find(order.begin(), order.end(), &child);
  const bool after_block = before != order.begin() && before[-1]->kind == Kind::map && !before[-1]->flow;
  return map.parent == nullptr && after_block && child.kind != Kind::map ? " (is this line not indented far enough?)"
                                                                         : "";
}

}  // namespace

void Spec::finish(const std::map<std::string, std::string>& meant) const {
  if (!is_map()) throw error(fmt::format("expected a map, found {}", found(*value_)));
  const auto& asked = value_->children->asked;
  for (const Value* child : value_->children->in_order) {
    if (asked.contains(child->key)) continue;
    const std::vector<std::string> known(asked.begin(), asked.end());
    const std::string place = path().empty() ? "" : fmt::format(" in '{}'", path());
    throw InputError(child->key_where(), fmt::format("unknown key '{}'{}{}; known here: {}", child->key, place,
                                                     hint_for_key(*value_, *child, known, meant), joined(known)));
  }
}

// Sequences -----------------------------------------------------------------------------------------------------------

std::size_t Spec::size() const {
  if (!value_->children) throw error(fmt::format("expected a list or a map, found {}", found(*value_)));
  return value_->children->in_order.size();
}

Spec Spec::operator[](std::size_t index) const {
  if (!is_sequence()) throw error(fmt::format("expected a list, found {}", found(*value_)));
  const auto& items = value_->children->in_order;
  if (index >= items.size())
    throw error(fmt::format("expected a list of at least {} items, found {}", index + 1, items.size()));
  return Spec(std::shared_ptr<Value>(value_, items[index]));
}

std::vector<Spec> Spec::items() const {
  if (!is_sequence()) throw error(fmt::format("expected a list, found {}", found(*value_)));
  std::vector<Spec> result;
  result.reserve(size());
  for (Value* child : value_->children->in_order) result.push_back(Spec(std::shared_ptr<Value>(value_, child)));
  return result;
}

// Scalars -------------------------------------------------------------------------------------------------------------

std::string Spec::text() const {
  if (!is_scalar()) throw error(fmt::format("expected a text, found {}", found(*value_)));
  return value_->text;
}

bool Spec::boolean() const {
  const auto is = [this](std::initializer_list<std::string_view> words) {
    return is_scalar() && std::find(words.begin(), words.end(), value_->text) != words.end();
  };
  if (is({"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) return true;
  if (is({"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) return false;
  throw error(fmt::format("expected true or false, found {}", found(*value_)));
}

std::int64_t Spec::integer(std::int64_t min, std::int64_t max) const {
  const auto wrong = [&] {
    return error(
        fmt::format("expected a whole number{}, found {}", range_text(min, max, INT64_MIN, INT64_MAX), found(*value_)));
  };
  if (!is_scalar()) throw wrong();
  std::string_view digits = value_->text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  if (value_->text.starts_with("+-")) throw wrong();
  std::int64_t result = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, problem] = std::from_chars(digits.data(), end, result);
  if (problem != std::errc() || stop != end || result < min || result > max) throw wrong();
  return result;
}

std::uint64_t Spec::natural() const {
  constexpr std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
  const std::string_view digits = is_scalar() ? std::string_view(value_->text) : std::string_view();
  std::uint64_t result = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, problem] = std::from_chars(digits.data(), end, result);
  if (digits.empty() || problem != std::errc() || stop != end)
    throw error(fmt::format("expected a whole number from 0 to {}, found {}", max, found(*value_)));
  return result;
}

double Spec::number(double min, double max) const {
  const auto wrong = [&] {
    return error(fmt::format("expected a number{}, found {}", range_text(min, max, -1e300, 1e300), found(*value_)));
  };
  if (!is_scalar()) throw wrong();
  std::string_view digits = value_->text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  if (value_->text.starts_with("+-")) throw wrong();
  double result = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, problem] = std::from_chars(digits.data(), end, result);
  const bool good = problem == std::errc() && stop == end && std::isfinite(result);
  if (!good || result < min || result > max) throw wrong();
  return result;
}

namespace {

/// The shared way of time(), bytes() and bandwidth().
template <class Quantity>
Quantity read_quantity(const Spec& spec, const Value& value, const char* expected,
                       std::optional<Quantity> (*parse)(std::string_view, QuantityError&)) {
  QuantityError problem;
  if (value.kind == Kind::scalar) {
    if (const auto result = parse(value.text, problem)) return *result;
    throw spec.error(fmt::format("expected {}, found {}: {}", expected, found(value), problem.what));
  }
  throw spec.error(fmt::format("expected {}, found {}", expected, found(value)));
}

}  // namespace

Time Spec::time() const {
  const Time time = read_quantity(*this, *value_, "a time such as '500 ns'", parse_time);
  if (time >= Time::limit())
    throw error(fmt::format("found {}; simulated time ends after 106 days, as far as 63 bits of picoseconds reach",
                            found(*value_)));
  return time;
}

Time Spec::wait() const {
  const Time wait = time();
  if (wait > Time::longest_wait())
    throw error(fmt::format("found {}; expected at most {}", found(*value_), to_text(Time::longest_wait())));
  return wait;
}

Bytes Spec::bytes() const { return read_quantity(*this, *value_, "a size such as '64 MiB'", parse_bytes); }

Bandwidth Spec::bandwidth() const {
  const Bandwidth rate = read_quantity(*this, *value_, "a rate such as '400 Gb/s'", parse_bandwidth);
  if (rate.bps() <= 0) throw error(fmt::format("expected a rate above 0, found {}", found(*value_)));
  return rate;
}

std::string Spec::one_of(const std::vector<std::string>& words) const {
  if (!is_scalar()) throw error(fmt::format("expected one of: {}; found {}", joined(words), found(*value_)));
  if (std::find(words.begin(), words.end(), value_->text) != words.end()) return value_->text;
  throw error(fmt::format("unknown value {}{}; expected one of: {}", found(*value_), did_you_mean(value_->text, words),
                          joined(words)));
}

}  // namespace weft
