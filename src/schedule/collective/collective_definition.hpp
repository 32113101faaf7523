// SPDX-License-Identifier: GPL-2.0-only
// What each kind of collective starts from and what it has to produce.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/collective/collective.hpp"
#include "schedule/collective/collective_content.hpp"

namespace weft {

/// Lengths and contents of the buffers, by the definitions in collective.hpp.
class Buffers {
 public:
  Buffers(const CollectiveCall& call, bool in_place)
      : call_(call), in_place_(in_place), ranks_(call.communicator->size()), size_(call.size.count()) {}

  bool at_most_once() const { return call_.kind == CollectiveKind::barrier; }

  /// What a rank has at first: ranges of its input, each from a place in its own data.
  struct Own {
    std::int64_t place = 0;
    std::int64_t bytes = 0;
    std::int64_t offset = 0;  ///< in the data of the rank
  };
  Own own(std::uint32_t index) const {
    switch (call_.kind) {
      case CollectiveKind::all_gather:
      case CollectiveKind::gather:
        return {in_place_ ? block_begin(call_, index) : 0, block_bytes(call_, index), 0};
      case CollectiveKind::broadcast:
      case CollectiveKind::scatter:
        return {0, index == call_.root ? size_ : 0, 0};
      case CollectiveKind::all_to_all:
        return {0, pair_input(call_, index, ranks_ - 1) + pair_bytes(call_, index, ranks_ - 1), 0};
      default:
        return {0, size_, 0};
    }
  }
  /// The results of a rank, without empty ranges.
  std::vector<Expected> results(std::uint32_t index) const {
    std::vector<Expected> all;
    switch (call_.kind) {
      case CollectiveKind::all_reduce:
      case CollectiveKind::barrier:
        all.push_back({0, size_, all_ranks(0)});
        break;
      case CollectiveKind::reduce:
        if (index == call_.root) all.push_back({0, size_, all_ranks(0)});
        break;
      case CollectiveKind::reduce_scatter:
        all.push_back({in_place_ ? block_begin(call_, index) : 0, block_bytes(call_, index),
                       all_ranks(block_begin(call_, index))});
        break;
      case CollectiveKind::broadcast:
        if (index != call_.root) all.push_back({0, size_, {{call_.root, 0}}});
        break;
      case CollectiveKind::scatter:
        all.push_back({0, block_bytes(call_, index), {{call_.root, block_begin(call_, index)}}});
        break;
      case CollectiveKind::gather:
        if (index != call_.root) break;
        [[fallthrough]];
      case CollectiveKind::all_gather:
        for (std::uint32_t rank = 0; rank < ranks_; ++rank)
          all.push_back({block_begin(call_, rank), block_bytes(call_, rank), {{rank, 0}}});
        break;
      case CollectiveKind::send_recv:
        all.push_back({0, size_, {{(index + ranks_ - 1) % ranks_, 0}}});
        break;
      case CollectiveKind::all_to_all:
        for (std::uint32_t rank = 0; rank < ranks_; ++rank)
          all.push_back({pair_output(call_, rank, index),
                         pair_bytes(call_, rank, index),
                         {{rank, pair_input(call_, rank, index)}}});
        break;
    }
    std::erase_if(all, [](const Expected& range) { return range.bytes == 0; });
    return all;
  }
  /// One rank alone: its output may be its input.
  bool may_be_untouched() const {
    return ranks_ == 1 && (call_.kind == CollectiveKind::all_reduce || call_.kind == CollectiveKind::broadcast ||
                           call_.kind == CollectiveKind::reduce || call_.kind == CollectiveKind::barrier);
  }

 private:
  std::vector<Contribution> all_ranks(std::int64_t offset) const {
    std::vector<Contribution> contributions;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) contributions.push_back({rank, offset});
    return contributions;
  }

  const CollectiveCall& call_;
  bool in_place_;
  std::uint32_t ranks_;
  std::int64_t size_;
};

}  // namespace weft
