// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/program/packed_operation.hpp"

#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {
namespace {

// A reference to a text that only one operation has takes more than a short text itself.
constexpr std::size_t longest_own_label = 24;

/// The bytes begin with a word of bits: bit i, if field i has another value than its default; and this one, if a
/// reference to a shared label follows.
using Present = std::uint32_t;
constexpr Present label_is_shared = Present{1} << 31;

/// Calls `each` for the fields of an operation but its id, its call and its label.
template <class SomeOperation, class Each>
void for_each_field(SomeOperation& operation, Each& each) {
  each(operation.kind);
  each(operation.stream);
  each(operation.after);
  each(operation.after_start);
  each(operation.not_before);
  each(operation.duration);
  each(operation.peer);
  each(operation.tag);
  each(operation.bytes);
  each(operation.any_source);
  each(operation.any_tag);
  each(operation.at_most);
  each(operation.queue_pair);
  each(operation.cpu);
  each(operation.line);
  each(operation.phase);
  each(operation.group);
  each(operation.operator_name);
  each(operation.flops);
  each(operation.slowdown);
  each(operation.worker);
}

template <class Field>
constexpr bool is_list = std::is_same_v<Field, std::string> || std::is_same_v<Field, std::vector<std::uint64_t>>;

/// Gives the fields and the label to a writer, or to what measures it. A text that is `shared` is not written here.
template <class Each>
void write(const Operation& operation, bool shared, Each& each) {
  for_each_field(operation, each);
  each(operation.label.maker());
  if (!shared) each(operation.label.own_text());
}

/// How many bytes the fields take.
struct Measure {
  template <class Field>
  void operator()(const Field& field) {
    if (field == Field{}) return;
    if constexpr (is_list<Field>)
      bytes += sizeof(std::uint32_t) + field.size() * sizeof(typename Field::value_type);
    else
      bytes += sizeof(Field);
  }
  std::size_t bytes = 0;
};

class Writer {
 public:
  explicit Writer(std::byte* to) : to_(to) {}
  template <class Field>
  void operator()(const Field& field) {
    const Present bit = Present{1} << number_++;
    if (field == Field{}) return;
    present |= bit;
    if constexpr (is_list<Field>) {
      put(static_cast<std::uint32_t>(field.size()));
      copy(field.data(), field.size() * sizeof(typename Field::value_type));
    } else {
      put(field);
    }
  }
  template <class Value>
  void put(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    copy(&value, sizeof value);
  }
  Present present = 0;

 private:
  void copy(const void* from, std::size_t bytes) {
    std::memcpy(to_, from, bytes);
    to_ += bytes;
  }
  std::byte* to_;
  unsigned number_ = 0;
};

class Reader {
 public:
  explicit Reader(const std::byte* from) : from_(from), present(take<Present>()) {}
  template <class Field>
  void operator()(Field& field) {
    if ((present >> number_++ & 1U) == 0) return;
    if constexpr (is_list<Field>) {
      field.resize(take<std::uint32_t>());
      copy(field.data(), field.size() * sizeof(typename Field::value_type));
    } else {
      field = take<Field>();
    }
  }
  template <class Value>
  Value take() {
    Value value;
    copy(&value, sizeof value);
    return value;
  }

 private:
  void copy(void* to, std::size_t bytes) {
    std::memcpy(to, from_, bytes);
    from_ += bytes;
  }
  const std::byte* from_;
  unsigned number_ = 0;

 public:
  const Present present;
};

}  // namespace

SharedTexts::Entry& SharedTexts::take(std::string_view text) {
  auto found = entries_.find(text);
  if (found == entries_.end()) {
    found = entries_.emplace(std::string(text), std::make_unique<Entry>()).first;
    found->second->texts_ = this;
    found->second->text_ = &found->first;
  }
  ++found->second->users_;
  return *found->second;
}

void SharedTexts::Entry::give_back() {
  if (--users_ == 0) texts_->entries_.erase(texts_->entries_.find(std::string_view(*text_)));
}

PackedOperation::PackedOperation(const Operation& operation, SharedTexts& texts) {
  const bool shared = operation.label.own_text().size() > longest_own_label;
  Measure measure;
  write(operation, shared, measure);
  const std::size_t bytes = sizeof(Present) + (shared ? sizeof(SharedTexts::Entry*) : 0) + measure.bytes;
  bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
  Writer writer(bytes_.get() + sizeof(Present));
  if (shared) writer.put(&texts.take(operation.label.own_text()));
  write(operation, shared, writer);
  const Present present = writer.present | (shared ? label_is_shared : 0);
  std::memcpy(bytes_.get(), &present, sizeof present);
}

PackedOperation& PackedOperation::operator=(PackedOperation&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

PackedOperation::~PackedOperation() {
  if (empty()) return;
  Reader reader(bytes_.get());
  if ((reader.present & label_is_shared) != 0) reader.take<SharedTexts::Entry*>()->give_back();
}

Operation PackedOperation::operation() const {
  Operation operation;
  Reader reader(bytes_.get());
  const bool shared = (reader.present & label_is_shared) != 0;
  if (shared) operation.label = reader.take<SharedTexts::Entry*>()->text();
  for_each_field(operation, reader);
  Label::Maker maker;
  reader(maker);
  if (maker != Label::Maker{}) {
    operation.label = Label(maker);
  } else if (!shared) {
    std::string text;
    reader(text);
    operation.label = std::move(text);
  }
  return operation;
}

}  // namespace weft
