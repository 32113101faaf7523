// SPDX-License-Identifier: GPL-2.0-only
// Numbers and texts one after another, for another process of the same run.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "support/basics/contract.hpp"

namespace weft {

class Packer {
 public:
  template <class Number>
  void put(Number value) {
    static_assert(std::is_trivially_copyable_v<Number>);
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(Number));
  }
  template <class Number>
  void put(const std::vector<Number>& values) {
    put(values.size());
    for (const Number& value : values) put(value);
  }
  void put(const std::string& text) {
    put(text.size());
    for (const char letter : text) put(letter);
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Takes out in the same order.
class Unpacker {
 public:
  explicit Unpacker(const std::vector<std::byte>& bytes) : bytes_(bytes) {}
  bool at_end() const { return at_ == bytes_.size(); }
  template <class Number>
  Number take() {
    static_assert(std::is_trivially_copyable_v<Number>);
    WEFT_EXPECT(at_ + sizeof(Number) <= bytes_.size(), "byte {} of {}", at_, bytes_.size());
    Number value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(Number));
    at_ += sizeof(Number);
    return value;
  }
  template <class Number>
  std::vector<Number> take_list() {
    std::vector<Number> values(take<std::size_t>());
    for (Number& value : values) value = take<Number>();
    return values;
  }
  std::string text() {
    std::string result(take<std::size_t>(), '\0');
    for (char& letter : result) letter = take<char>();
    return result;
  }

 private:
  const std::vector<std::byte>& bytes_;
  std::size_t at_ = 0;
};

}  // namespace weft
