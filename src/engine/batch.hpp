// SPDX-License-Identifier: GPL-2.0-only
// Batches: the records that one process hands to another between two epochs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

#include "support/basics/contract.hpp"

namespace weft {

/// Bytes that are appended record by record and removed all at once. As long as they fit, they are in memory lent by
/// the caller, so that another process can read them without a copy.
class Batch {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const std::byte* data() const { return data_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// Bytes that can be added without moving the batch to other memory.
  std::size_t room() const { return capacity_ - size_; }
  void reserve(std::size_t count) {
    if (count > room()) grow(count);
  }
  /// Appends `count` bytes, which the caller fills in place.
  std::byte* extend(std::size_t count) {
    if (count > room()) [[unlikely]]
      grow(count);
    std::byte* const end = data_ + size_;
    size_ += count;
    return end;
  }
  void append(const void* bytes, std::size_t count) { std::memcpy(extend(count), bytes, count); }
  template <class Value>
  void append(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    append(&value, sizeof(Value));
  }

  /// Forgets the content.
  void clear() { size_ = 0; }
  /// The next content goes to `memory`, which must exist until lend() is called again; an empty span ends the loan.
  /// Only while the batch is empty.
  void lend(std::span<std::byte> memory) {
    WEFT_EXPECT(empty(), "{} bytes lie in memory that was lent", size_);
    data_ = memory.empty() ? own_.get() : memory.data();
    capacity_ = memory.empty() ? own_capacity_ : memory.size();
  }

 private:
  // Into memory of its own, from lent memory too.
  [[gnu::noinline]] void grow(std::size_t count) {
    constexpr std::size_t smallest = 4096;
    if (own_capacity_ < size_ + count || data_ == own_.get()) {
      own_capacity_ = std::max({smallest, 2 * own_capacity_, 2 * (size_ + count)});
      std::unique_ptr<std::byte[]> larger(new std::byte[own_capacity_]);
      if (size_ > 0) std::memcpy(larger.get(), data_, size_);
      own_ = std::move(larger);
    } else {
      std::memcpy(own_.get(), data_, size_);
    }
    data_ = own_.get();
    capacity_ = own_capacity_;
  }

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::unique_ptr<std::byte[]> own_;
  std::size_t own_capacity_ = 0;
};

/// The record at `at` of a batch; advances `at` to the next record.
template <class Value>
Value take_record(std::span<const std::byte> batch, std::size_t& at) {
  static_assert(std::is_trivially_copyable_v<Value>);
  Value value;
  WEFT_EXPECT(at + sizeof(Value) <= batch.size(), "batch of {} bytes ends at {}", batch.size(), at);
  std::memcpy(&value, batch.data() + at, sizeof(Value));
  at += sizeof(Value);
  return value;
}

}  // namespace weft
