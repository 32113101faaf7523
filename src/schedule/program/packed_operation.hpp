// SPDX-License-Identifier: GPL-2.0-only
// Operations that wait, in few bytes: of a long trace, thousands of each rank wait at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "schedule/program/program.hpp"

namespace weft {

/// Texts that many operations have, such as the names of kernels that all ranks run. Each is here once, for as long as
/// somebody uses it.
class SharedTexts {
 public:
  class Entry;
  SharedTexts() = default;
  SharedTexts(const SharedTexts&) = delete;  // entries know where they are
  SharedTexts& operator=(const SharedTexts&) = delete;

  Entry& take(std::string_view text);
  std::size_t size() const { return entries_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, std::unique_ptr<Entry>, Hash, std::equal_to<>> entries_;
};

class SharedTexts::Entry {
 public:
  const std::string& text() const { return *text_; }
  /// Its user does not use it any more.
  void give_back();

 private:
  friend class SharedTexts;
  SharedTexts* texts_ = nullptr;
  const std::string* text_ = nullptr;
  std::uint64_t users_ = 0;
};

/// Everything of an operation but its id and its call. What has its default takes no bytes.
class PackedOperation {
 public:
  PackedOperation() = default;
  /// `texts` has to live longer.
  PackedOperation(const Operation& operation, SharedTexts& texts);
  ~PackedOperation();
  PackedOperation(PackedOperation&& other) noexcept = default;
  PackedOperation& operator=(PackedOperation&& other) noexcept;

  bool empty() const { return bytes_ == nullptr; }
  /// The operation, without its id and its call.
  Operation operation() const;

 private:
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace weft
