// SPDX-License-Identifier: GPL-2.0-only
// An ordered group of ranks.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "support/basics/contract.hpp"
#include "units/id.hpp"

namespace weft {

/// Ordered ranks of one collective. Index i (0..size-1) is the position within the communicator.
/// first, first+stride, ... needs no list, so that a communicator of all ranks is O(1).
class Communicator {
 public:
  Communicator(std::uint32_t id, std::uint32_t size, std::uint32_t first = 0, std::uint32_t stride = 1)
      : id_(id), size_(size), first_(first), stride_(stride) {}
  Communicator(std::uint32_t id, std::vector<Rank> ranks)
      : id_(id), size_(static_cast<std::uint32_t>(ranks.size())), ranks_(std::move(ranks)) {}

  /// The same group within a workload in which its ranks count from `by` on.
  Communicator shifted(std::uint32_t id, std::uint32_t by) const {
    Communicator result = *this;
    result.id_ = id;
    result.first_ += by;
    for (Rank& rank : result.ranks_) rank = Rank(rank.value() + by);
    return result;
  }

  std::uint32_t id() const { return id_; }
  std::uint32_t size() const { return size_; }
  Rank rank(std::uint32_t index) const {
    WEFT_EXPECT(index < size_, "index {} of a communicator of {}", index, size_);
    return ranks_.empty() ? Rank(first_ + index * stride_) : ranks_[index];
  }
  /// Position of `rank`, or size() if it is no member.
  std::uint32_t index_of(Rank rank) const {
    if (!ranks_.empty()) {
      for (std::uint32_t i = 0; i < size_; ++i)
        if (ranks_[i] == rank) return i;
      return size_;
    }
    if (rank.value() < first_ || (rank.value() - first_) % stride_ != 0) return size_;
    const std::uint32_t index = (rank.value() - first_) / stride_;
    return index < size_ ? index : size_;
  }

 private:
  std::uint32_t id_;
  std::uint32_t size_;
  std::uint32_t first_ = 0;
  std::uint32_t stride_ = 1;
  std::vector<Rank> ranks_;
};

}  // namespace weft
