// SPDX-License-Identifier: GPL-2.0-only
// Chakra execution traces as JSON: messages one after another, as protobuf's json_format prints them
// (src/jsonizer/chakra_jsonizer.py of github.com/mlcommons/chakra), a list of them, or the feeder's
// {"workload_graph": [...]} (src/feeder/json_node.cpp).
#include <array>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "workloads/chakra/chakra_node.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

/// Cuts a text into the objects of its list, one at a time, so that a long file needs memory for one.
class JsonObjects {
 public:
  explicit JsonObjects(ByteSource source) : source_(std::move(source)) {}

  /// The next object's text; false at the end.
  bool next(std::string& text) {
    if (!find_object()) return false;
    text.clear();
    line_of_object_ = line_;
    int depth = 0;
    while (true) {
      const int byte = take();
      if (byte == ByteSource::end) throw error("the file ends within an object; it has been cut off");
      text += static_cast<char>(byte);
      if (byte == '"') copy_string(text);
      if (byte == '[' && depth == 1 && !wrapped_ && opens_list_of_nodes(text)) {
        wrapped_ = true;
        return next(text);
      }
      if (byte == '{' || byte == '[') ++depth;
      if (byte == '}' || byte == ']') --depth;
      if (depth > max_depth) throw error("objects within objects, more than 64 deep; that is no trace");
      if (depth == 0) return true;
    }
  }
  int line_of_object() const { return line_of_object_; }
  const std::string& file() const { return source_.name(); }
  InputError error(const std::string& message) const { return InputError({source_.name(), line_}, message); }

 private:
  static constexpr int max_depth = 64;

  int take() {
    const int byte = source_.get();
    if (byte == '\n') ++line_;
    return byte;
  }

  /// Moves to the brace of the next object. In a wrapper, the content after its list is ignored.
  bool find_object() {
    while (true) {
      const int byte = source_.peek();
      if (byte == ByteSource::end) return false;
      if (byte == '{') return true;
      if (byte == ']' && wrapped_) return false;
      if (byte == 0 || std::strchr(" \t\r\n,[]", byte) == nullptr)
        throw error(fmt::format(
            "found '{}' between objects; expected a list of nodes",
            byte >= ' ' && byte < 0x7f ? std::string(1, static_cast<char>(byte)) : fmt::format("byte {}", byte)));
      take();
    }
  }

  void copy_string(std::string& text) {
    bool escaped = false;
    while (true) {
      const int byte = take();
      if (byte == ByteSource::end) throw error("the file ends within a text; it has been cut off");
      text += static_cast<char>(byte);
      if (byte == '"' && !escaped) return;
      escaped = byte == '\\' && !escaped;
    }
  }

  /// The text ends with the key of the wrapper's list, a colon and a bracket.
  static bool opens_list_of_nodes(const std::string& text) {
    std::string end;
    for (std::size_t at = text.size(); at-- > 0 && end.size() < 20;)
      if (std::strchr(" \t\r\n", text[at]) == nullptr) end.insert(0, 1, text[at]);
    return end.ends_with("\"workload_graph\":[") || end.ends_with("\"nodes\":[");
  }

  ByteSource source_;
  int line_ = 1;
  int line_of_object_ = 1;
  bool wrapped_ = false;
};

/// A field by any of its names, or null. Names are those of the schema, protobuf's in JSON, and the feeder's.
const Json* field_of(const Json& object, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto at = object.find(name); at != object.end() && !at->is_null()) return &*at;
  return nullptr;
}

ChakraValue json_value(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_unsigned()) return static_cast<__int128>(value.get<std::uint64_t>());
  if (value.is_number_integer()) return static_cast<__int128>(value.get<std::int64_t>());
  if (value.is_number_float()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object()) return {};
  const Json* list = field_of(value, {"values"});
  std::vector<bool> flags;
  if (list == nullptr || !list->is_array()) return {};
  for (const Json& flag : *list) {
    if (!flag.is_boolean()) return {};
    flags.push_back(flag.get<bool>());
  }
  return flags;
}

constexpr std::array<const char*, chakra_types> type_names{
    "INVALID_NODE",   "METADATA_NODE",  "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE",      "COMM_SEND_NODE",
    "COMM_RECV_NODE", "COMM_COLL_NODE", "STORAGE_NODE",  "BATCH_NODE",     "CHECKPOINT_NODE"};
constexpr std::array<const char*, 5> storage_level_names{
    "STORAGE_LEVEL_UNKNOWN", "STORAGE_LEVEL_FS", "STORAGE_LEVEL_PAGE", "STORAGE_LEVEL_BLOCK", "STORAGE_LEVEL_DEVICE"};

class JsonStream : public ChakraStream {
 public:
  explicit JsonStream(ByteSource source) : objects_(std::move(source)) {
    has_object_ = read_object();
    if (!has_object_) throw objects_.error("there is no node in it; a trace has a node or more");
    if (is_node(object_)) return;
    read_metadata();
    has_object_ = false;
  }

  bool next(ChakraNode& node) override {
    if (!has_object_ && !read_object()) return false;
    has_object_ = false;
    if (!is_node(object_)) throw error("an object without 'id', 'name' and 'type'; a node has them");
    node = ChakraNode();
    if (const Json* id = field_of(object_, {"id", "Id"})) node.id = natural(*id, "id");
    if (const Json* name = field_of(object_, {"name", "Name"})) {
      if (!name->is_string()) throw error("'name' is no text");
      node.name = name->get<std::string>();
    }
    read_type(node);
    read_ids({"dataDeps", "data_deps"}, node.data_dependencies);
    read_ids({"ctrlDeps", "ctrl_deps"}, node.control_dependencies);
    read_duration(node);
    if (const Json* inputs = field_of(object_, {"inputs"});
        node.type == ChakraType::metadata && inputs != nullptr && inputs->is_object())
      if (const Json* values = field_of(*inputs, {"values"}); values != nullptr && values->is_string())
        node.input_values = values->get<std::string>();
    read_attributes(node);
    settle_host_work(node, storage_level());
    return true;
  }

 private:
  static bool is_node(const Json& object) {
    return field_of(object, {"id", "Id", "type", "NodeType", "name", "Name"}) != nullptr;
  }

  InputError error(const std::string& message) const {
    return InputError({objects_.file(), objects_.line_of_object()}, message);
  }

  bool read_object() {
    if (!objects_.next(text_)) return false;
    try {
      object_ = Json::parse(text_);
    } catch (const Json::exception& problem) {
      throw error(fmt::format("no JSON: {}", problem.what()));
    }
    return true;
  }

  void read_metadata() {
    if (const Json* version = field_of(object_, {"version"}); version != nullptr && version->is_string())
      schema_ = version->get<std::string>();
    for_each_attribute([this](const std::string& name, const ChakraValue& value) {
      if (name == "schema" && std::holds_alternative<std::string>(value)) schema_ = std::get<std::string>(value);
    });
    require_schema(schema_, objects_.file());
  }

  // 64-bit numbers are texts in protobuf's JSON.
  std::uint64_t natural(const Json& value, const char* what) const {
    if (value.is_number_unsigned()) return value.get<std::uint64_t>();
    if (value.is_string()) {
      const auto& text = value.get_ref<const std::string&>();
      constexpr std::size_t max_digits = 19;
      if (!text.empty() && text.size() <= max_digits && text.find_first_not_of("0123456789") == std::string::npos)
        return std::stoull(text);
    }
    throw error(fmt::format("'{}' is {}; expected a whole number from 0 on", what,
                            value.dump(-1, ' ', false, Json::error_handler_t::replace)));
  }

  void read_type(ChakraNode& node) const {
    const Json* type = field_of(object_, {"type", "NodeType"});
    if (type == nullptr) return;
    if (type->is_string()) {
      for (std::uint64_t number = 0; number < chakra_types; ++number)
        if (type->get_ref<const std::string&>() == type_names[number]) {
          node.type = static_cast<ChakraType>(number);
          return;
        }
    } else if (type->is_number_unsigned() && type->get<std::uint64_t>() < chakra_types) {
      node.type = static_cast<ChakraType>(type->get<std::uint64_t>());
      return;
    }
    throw node_error(objects_.file(), node, "its type is unknown; expected COMP_NODE, COMM_COLL_NODE and the like");
  }

  std::uint64_t storage_level() const {
    const Json* storage = field_of(object_, {"storage"});
    const Json* level = storage != nullptr && storage->is_object() ? field_of(*storage, {"level"}) : nullptr;
    if (level == nullptr) return 0;
    if (level->is_number_unsigned()) return level->get<std::uint64_t>();
    for (std::uint64_t number = 0; number < storage_level_names.size(); ++number)
      if (*level == storage_level_names[number]) return number;
    throw error("the 'level' of 'storage' is unknown; expected STORAGE_LEVEL_FS and the like");
  }

  void read_ids(std::initializer_list<const char*> names, std::vector<std::uint64_t>& ids) const {
    const Json* list = field_of(object_, names);
    if (list == nullptr) return;
    if (!list->is_array()) throw error(fmt::format("'{}' is no list", *names.begin()));
    for (const Json& id : *list) ids.push_back(natural(id, *names.begin()));
  }

  void read_duration(ChakraNode& node) const {
    const Json* value = field_of(object_, {"durationMicros", "duration_micros", "runtime"});
    if (value == nullptr) return;
    const double microseconds =
        value->is_number() ? value->get<double>() : static_cast<double>(natural(*value, "durationMicros"));
    node.duration = chakra_duration(microseconds, node, objects_.file());
  }

  template <class Action>
  void for_each_attribute(const Action& action) const {
    const Json* list = field_of(object_, {"attr", "attrs"});
    if (list == nullptr) return;
    if (!list->is_array()) throw error("'attr' is no list");
    for (const Json& attribute : *list) {
      if (!attribute.is_object()) throw error("an attribute that is no object");
      const Json* name = field_of(attribute, {"name"});
      if (name == nullptr || !name->is_string()) throw error("an attribute without a name");
      for (const auto& [key, value] : attribute.items())
        if (key != "name" && key != "docString" && key != "doc_string")
          action(name->get_ref<const std::string&>(), json_value(value));
    }
  }

  // The feeder's JSON has them beside the others, protobuf's has a list.
  void read_attributes(ChakraNode& node) const {
    for (const auto& [key, value] : object_.items()) set_attribute(node, key, json_value(value), objects_.file());
    for_each_attribute(
        [&](const std::string& name, const ChakraValue& value) { set_attribute(node, name, value, objects_.file()); });
  }

  JsonObjects objects_;
  std::string text_;
  Json object_;
  bool has_object_ = false;
};

}  // namespace

std::unique_ptr<ChakraStream> open_chakra_json(ByteSource source) {
  return std::make_unique<JsonStream>(std::move(source));
}

}  // namespace weft
