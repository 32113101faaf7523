// SPDX-License-Identifier: GPL-2.0-only
// Chakra execution traces as length-delimited protobuf messages: the wire format, and the fields of et_def.proto
// (github.com/mlcommons/chakra, schema/protobuf; protobuf.dev/programming-guides/encoding).
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "workloads/chakra/chakra_node.hpp"

namespace weft {
namespace {

/// A field of a message: its number, and its value by wire type.
struct WireField {
  std::uint32_t number = 0;
  std::uint32_t wire = 0;
  std::uint64_t value = 0;  ///< wire types 0, 1, 5
  std::string_view bytes;   ///< wire type 2
  enum Wire : std::uint32_t { varint = 0, eight_bytes = 1, delimited = 2, four_bytes = 5 };
};

/// The fields of one message in order. A wrong one is an error of the file.
class WireMessage {
 public:
  WireMessage(std::string_view bytes, const ByteSource& source) : rest_(bytes), source_(&source) {}

  bool empty() const { return rest_.empty(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) throw cut_off();
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    throw source_->error("a number of more than 10 bytes; the file is damaged, or no Chakra trace");
  }
  bool next(WireField& field) {
    if (rest_.empty()) return false;
    const std::uint64_t key = varint();
    field = WireField{};
    field.number = static_cast<std::uint32_t>(key >> 3);
    field.wire = key & 7U;
    switch (field.wire) {
      case WireField::varint:
        field.value = varint();
        break;
      case WireField::eight_bytes:
        field.value = fixed<std::uint64_t>();
        break;
      case WireField::four_bytes:
        field.value = fixed<std::uint32_t>();
        break;
      case WireField::delimited:
        field.bytes = take(varint());
        break;
      default:
        throw source_->error(
            fmt::format("a field of wire type {}; the file is damaged, or no Chakra trace", field.wire));
    }
    return true;
  }

 private:
  InputError cut_off() const {
    return source_->error("a message whose fields are longer than itself; the file is damaged, or no Chakra trace");
  }
  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) throw cut_off();
    const std::string_view part = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return part;
  }
  template <class Number>
  std::uint64_t fixed() {
    static_assert(std::endian::native == std::endian::little);
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::string_view rest_;
  const ByteSource* source_;
};

std::int64_t zigzag(std::uint64_t value) { return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1)); }

/// The value of an AttributeProto by its field's number; lists have even ones.
ChakraValue attribute_value(const WireField& field) {
  switch (field.number) {
    case 3:  // double
      return std::bit_cast<double>(field.value);
    case 5:  // float
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(field.value)));
    case 7:   // int32: negative ones have 64 bits on the wire
    case 9:   // int64
    case 25:  // sfixed64
      return static_cast<__int128>(static_cast<std::int64_t>(field.value));
    case 11:  // uint32
    case 13:  // uint64
    case 19:  // fixed32
    case 21:  // fixed64
      return static_cast<__int128>(field.value);
    case 15:  // sint32
    case 17:  // sint64
      return static_cast<__int128>(zigzag(field.value));
    case 23:  // sfixed32
      return static_cast<__int128>(static_cast<std::int32_t>(field.value));
    case 27:
      return field.value != 0;
    case 28: {  // BoolList { repeated bool values = 1 }, packed: a byte each
      std::vector<bool> flags;
      for (std::size_t i = 2; i < field.bytes.size(); ++i) flags.push_back(field.bytes[i] != 0);
      return flags;
    }
    case 29:  // string
    case 31:  // bytes
      return std::string(field.bytes);
    default:
      return {};
  }
}

class ProtobufStream : public ChakraStream {
 public:
  explicit ProtobufStream(ByteSource source) : source_(std::move(source)) {
    if (!read_message()) throw InputError({source_.name(), 0}, "the file is empty; a trace has a node or more");
    read_metadata();
  }

  bool next(ChakraNode& node) override {
    if (!read_message()) return false;
    node = ChakraNode();
    WireMessage message(message_, source_);
    std::uint64_t microseconds = 0, type = 0, level = 0;
    attributes_.clear();
    for (WireField field; message.next(field);) {
      if (field.number == 1) node.id = field.value;
      if (field.number == 2) node.name = field.bytes;
      if (field.number == 3) type = field.value;
      if (field.number == 4) read_ids(field, node.control_dependencies);
      if (field.number == 5) read_ids(field, node.data_dependencies);
      if (field.number == 7) microseconds = field.value;
      if (field.number == 8) read_inputs(field.bytes, node);
      if (field.number == 10) attributes_.push_back(field.bytes);
      if (field.number == 11) level = storage_level(field.bytes);
    }
    // Last, because complaints name the node.
    if (type >= chakra_types)
      throw node_error(source_.name(), node, fmt::format("found type {}; 0 to {} are known", type, chakra_types - 1));
    node.type = static_cast<ChakraType>(type);
    if (node.type != ChakraType::metadata) node.input_values = std::string();
    node.duration = chakra_duration(static_cast<double>(microseconds), node, source_.name());
    for (const std::string_view attribute : attributes_) read_attribute(attribute, node);
    settle_host_work(node, level);
    return true;
  }

 private:
  bool read_message() {
    if (source_.peek() == ByteSource::end) return false;
    std::uint64_t size = 0;
    for (unsigned shift = 0;; shift += 7) {
      const int byte = source_.get();
      if (byte == ByteSource::end || shift > 28)
        throw source_.error("no length of a message; the file is cut off or damaged, or no Chakra trace");
      size |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    message_.clear();
    source_.read(message_, size);
    if (message_.size() < size)
      throw source_.error(
          fmt::format("the last message should have {} bytes and has {}; the file has been cut off, or is no Chakra "
                      "trace",
                      size, message_.size()));
    return true;
  }

  // GlobalMetadata{string version = 1; repeated AttributeProto attr = 2}
  void read_metadata() {
    WireMessage message(message_, source_);
    for (WireField field; message.next(field);) {
      if (field.number == 1) schema_ = field.bytes;
      if (field.number != 2) continue;
      const auto [name, value] = named_value(field.bytes);
      if (name == "schema" && std::holds_alternative<std::string>(value)) schema_ = std::get<std::string>(value);
    }
    require_schema(schema_, source_.name());
  }

  // Repeated numbers are packed into one field, or not.
  void read_ids(const WireField& field, std::vector<std::uint64_t>& ids) {
    if (field.wire == WireField::varint) ids.push_back(field.value);
    if (field.wire != WireField::delimited) return;
    for (WireMessage packed(field.bytes, source_); !packed.empty();) ids.push_back(packed.varint());
  }

  // Tensors and shapes are of no interest, process groups are.
  void read_inputs(std::string_view bytes, ChakraNode& node) {
    WireMessage message(bytes, source_);
    for (WireField field; message.next(field);)
      if (field.number == 1) node.input_values = field.bytes;
  }

  // StorageInfo{StorageLevel level = 1; ...}
  std::uint64_t storage_level(std::string_view bytes) {
    WireMessage message(bytes, source_);
    std::uint64_t level = 0;
    for (WireField field; message.next(field);)
      if (field.number == 1) level = field.value;
    return level;
  }

  std::pair<std::string_view, ChakraValue> named_value(std::string_view bytes) {
    WireMessage message(bytes, source_);
    std::pair<std::string_view, ChakraValue> result;
    for (WireField field; message.next(field);) {
      if (field.number == 1) result.first = field.bytes;
      if (field.number > 2) result.second = attribute_value(field);
    }
    return result;
  }

  void read_attribute(std::string_view bytes, ChakraNode& node) {
    const auto [name, value] = named_value(bytes);
    set_attribute(node, name, value, source_.name());
  }

  ByteSource source_;
  std::string message_;
  std::vector<std::string_view> attributes_;
};

}  // namespace

std::unique_ptr<ChakraStream> open_chakra_protobuf(ByteSource source) {
  return std::make_unique<ProtobufStream>(std::move(source));
}

}  // namespace weft
