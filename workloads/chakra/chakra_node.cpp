// SPDX-License-Identifier: GPL-2.0-only
// The meaning of a Chakra node's attributes, and the recognition of Chakra's files.
#include "workloads/chakra/chakra_node.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace weft {
namespace {

/// Any integer width, whole floating-point numbers, booleans and texts of digits (JSON has 64-bit integers as texts).
std::optional<std::int64_t> whole_value(const ChakraValue& value) {
  constexpr __int128 max = std::numeric_limits<std::int64_t>::max();
  constexpr __int128 min = std::numeric_limits<std::int64_t>::min();
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  if (const auto* whole = std::get_if<__int128>(&value))
    return *whole <= max && *whole >= min ? std::optional(static_cast<std::int64_t>(*whole)) : std::nullopt;
  if (const auto* real = std::get_if<double>(&value)) {
    constexpr double limit = 9.2e18;
    const bool is_whole = std::isfinite(*real) && std::abs(*real) < limit && std::floor(*real) == *real;
    return is_whole ? std::optional(static_cast<std::int64_t>(*real)) : std::nullopt;
  }
  const auto* text = std::get_if<std::string>(&value);
  constexpr std::size_t max_digits = 18;
  if (text == nullptr || text->empty() || text->size() > max_digits + 1) return std::nullopt;
  const std::string digits = text->front() == '-' ? text->substr(1) : *text;
  if (digits.empty() || digits.size() > max_digits || digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoll(*text);
}

struct WholeAttribute {
  std::string_view name;
  std::optional<std::int64_t> ChakraNode::*field;
  bool may_be_negative;
};
constexpr std::array<WholeAttribute, 13> whole_attributes{{
    {"num_ops", &ChakraNode::operations, false},
    {"tensor_size", &ChakraNode::tensor_size, false},
    {"comm_type", &ChakraNode::comm_type, false},
    {"comm_size", &ChakraNode::comm_size, false},
    {"comm_src", &ChakraNode::comm_source, false},
    {"comm_dst", &ChakraNode::comm_destination, false},
    {"comm_tag", &ChakraNode::comm_tag, false},
    {"root", &ChakraNode::root, true},
    {"root_rank", &ChakraNode::root, true},
    {"comm_root", &ChakraNode::root, true},
    {"stream", &ChakraNode::stream, true},
    {"tid", &ChakraNode::thread, true},
    {"weft_call", &ChakraNode::call, false},
}};

}  // namespace

namespace {

/// Bytes of the character at the beginning of `text`, which is not empty: 0 unless it is well-formed UTF-8 (Unicode 15,
/// table 3-7) and no control character.
std::size_t printable_character(std::string_view text) {
  const auto byte = [text](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : static_cast<unsigned char>(0);
  };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (std::size_t at = 1; at < length; ++at)
    if ((byte(at) & 0xc0U) != 0x80) return 0;
  const unsigned second = byte(1);
  const bool too_long = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool no_character = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  const bool control = first == 0xc2 && second < 0xa0;
  return too_long || no_character || control ? 0 : length;
}

/// How many characters at the beginning of `text` are printable ASCII: in most names all.
std::size_t printable_ascii(std::string_view text) {
  const auto other = std::find_if(text.begin(), text.end(), [](char letter) { return letter < 0x20 || letter > 0x7e; });
  return static_cast<std::size_t>(other - text.begin());
}

}  // namespace

std::string printable_name(const ChakraNode& node) {
  constexpr std::size_t longest = 120;
  std::string name;
  for (std::string_view rest = node.name; !rest.empty();) {
    if (const std::size_t plain = printable_ascii(rest); plain > 0) {
      if (name.size() + plain > longest) return name.append(rest, 0, longest - name.size()) + "...";
      name += rest.substr(0, plain);
      rest.remove_prefix(plain);
      continue;
    }
    const std::size_t length = printable_character(rest);
    const std::size_t taken = std::max<std::size_t>(length, 1);
    if (name.size() + taken > longest) return name + "...";
    name += length == 0 ? std::string_view("?") : rest.substr(0, taken);
    rest.remove_prefix(taken);
  }
  return name;
}

InputError node_error(const std::string& file, const ChakraNode& node, const std::string& message) {
  return InputError({file, 0}, fmt::format("node {} '{}': {}", node.id, printable_name(node), message));
}

Time chakra_duration(double microseconds, const ChakraNode& node, const std::string& file) {
  const double picoseconds = std::round(microseconds * 1e6);
  if (!(microseconds >= 0) || picoseconds >= static_cast<double>(Time::limit().ps()))
    throw node_error(
        file, node,
        fmt::format("found a duration of {} us; expected 0 to 106 days, where simulated time ends", microseconds));
  return Time::from_ps(static_cast<std::int64_t>(picoseconds));
}

void set_attribute(ChakraNode& node, std::string_view name, const ChakraValue& value, const std::string& file) {
  if (std::holds_alternative<std::monostate>(value)) return;
  if (const auto* list = std::get_if<std::vector<bool>>(&value)) {
    if (name == "involved_dim")
      node.leaves_out_dimensions = std::find(list->begin(), list->end(), false) != list->end();
    return;
  }
  if (name == "pg_name") {
    const auto* text = std::get_if<std::string>(&value);
    if (text != nullptr) {
      node.group = *text;
      return;
    }
    const auto number = whole_value(value);
    if (!number) throw node_error(file, node, "'pg_name' is neither a text nor a number");
    node.group = std::to_string(*number);
    return;
  }
  if (name == "duration_ps" || name == "not_before_ps") {  // of traces that weft has written
    const auto picoseconds = whole_value(value);
    if (!picoseconds || *picoseconds < 0 || *picoseconds >= Time::limit().ps())
      throw node_error(file, node, fmt::format("'{}' is no whole number from 0 to 106 days", name));
    (name == "duration_ps" ? node.duration : node.not_before) = Time::from_ps(*picoseconds);
    return;
  }
  if (name == "is_cpu_op") {
    const auto flag = whole_value(value);
    if (!flag) throw node_error(file, node, "'is_cpu_op' is neither true nor false");
    node.on_cpu = *flag != 0;
    return;
  }
  for (const WholeAttribute& attribute : whole_attributes) {
    if (name != attribute.name) continue;
    const auto number = whole_value(value);
    if (!number || (*number < 0 && !attribute.may_be_negative))
      throw node_error(
          file, node,
          fmt::format("'{}' is no whole number{} within 63 bits", name, attribute.may_be_negative ? "" : " from 0 on"));
    node.*attribute.field = *number;
    return;
  }
}

void settle_host_work(ChakraNode& node, std::uint64_t storage_level) {
  if (node.type < ChakraType::storage) return;
  // A page's or a block's operation is within a system call, which is a node of its own (et_def.proto, its scopes).
  if (node.type == ChakraType::storage && storage_level > static_cast<std::uint64_t>(ChakraStorageLevel::file_system))
    node.duration = Time();
  node.type = ChakraType::compute;
  node.on_cpu = true;
  node.operations.reset();
}

// Field numbers are those of et_def.proto since version 0.0.4 (its comments); earlier schemas, called "0.0.1" to
// "0.0.3" in the metadata, have others. PyTorch's own traces, converted, have "1.0.1" and the like.
void require_schema(const std::string& schema, const std::string& file) {
  if (schema != "0.0.1" && schema != "0.0.2" && schema != "0.0.3") return;
  throw InputError({file, 0}, fmt::format("found Chakra's schema '{}', whose fields have other numbers; expected 0.0.4 "
                                          "or newer: convert the trace once more with a newer Chakra",
                                          schema));
}

std::unique_ptr<ChakraStream> open_chakra(ByteSource source) {
  constexpr std::size_t farthest = 60;
  std::size_t at = 0;
  const auto skip_blanks = [&] {
    while (at < farthest &&
           (source.peek(at) == ' ' || source.peek(at) == '\n' || source.peek(at) == '\r' || source.peek(at) == '\t'))
      ++at;
    return source.peek(at);
  };
  int first = skip_blanks();
  if (first == ByteSource::end) throw InputError({source.name(), 0}, "the file is empty; a trace has a node or more");
  if (first == '[') {
    ++at;
    first = skip_blanks();
    if (first == ']') return open_chakra_json(std::move(source));
  }
  // A protobuf message of 123 bytes begins with the same byte as an object, and continues with a field's number.
  if (first != '{') return open_chakra_protobuf(std::move(source));
  ++at;
  const int second = skip_blanks();
  return second == '"' || second == '}' ? open_chakra_json(std::move(source)) : open_chakra_protobuf(std::move(source));
}

}  // namespace weft
