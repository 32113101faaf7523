// SPDX-License-Identifier: GPL-2.0-only
// Memory in huge pages for state that is walked through once per epoch: the walk of page tables costs as much as the
// memory itself.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include <sys/mman.h>

namespace weft {

constexpr std::size_t huge_page = std::size_t{2} << 20;  ///< bytes, on x86-64 and, with pages of 4 KiB, on AArch64

/// `bytes` at the beginning of a huge page, where the system gives such. Given back by std::free().
/// Throws std::bad_alloc.
inline void* allocate_huge(std::size_t bytes) {
  const std::size_t whole = (bytes + huge_page - 1) / huge_page * huge_page;
  void* memory = std::aligned_alloc(huge_page, whole);
  if (memory == nullptr) throw std::bad_alloc();
  madvise(memory, whole, MADV_HUGEPAGE);  // advice only: it may be refused
  return memory;
}

/// Allocates large arrays in huge pages; small ones as usual, because a huge page of each would be mostly empty.
template <class Value>
struct HugeAllocator {
  using value_type = Value;

  HugeAllocator() = default;
  template <class Other>
  HugeAllocator(const HugeAllocator<Other>&) {}

  Value* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(Value)) throw std::bad_array_new_length();
    const std::size_t bytes = count * sizeof(Value);
    return bytes < huge_page / 2 ? std::allocator<Value>().allocate(count) : static_cast<Value*>(allocate_huge(bytes));
  }
  void deallocate(Value* memory, std::size_t count) {
    if (count * sizeof(Value) < huge_page / 2)
      std::allocator<Value>().deallocate(memory, count);
    else
      std::free(memory);
  }
  bool operator==(const HugeAllocator&) const { return true; }
};

/// A vector of much state.
template <class Value>
using HugeVector = std::vector<Value, HugeAllocator<Value>>;

}  // namespace weft
