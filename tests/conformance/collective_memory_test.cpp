// SPDX-License-Identifier: GPL-2.0-only
// Streams of steps are lazy: their memory does not grow with ranks, bytes or steps.
// Also in Release: bounds of memory under the allocator that users have
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>
#include <malloc.h>

#include "schedule/collective/collective.hpp"

namespace {
std::size_t live_bytes = 0;  ///< held through operator new
}

// Not inlined: the compiler would see a call of malloc() that belongs to an operator delete and warn. All forms that
// give memory to the operator delete below: std::stable_sort takes the one that does not throw.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory != nullptr) live_bytes += malloc_usable_size(memory);
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* memory = operator new(size, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory != nullptr) live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace weft::collective_memory_test {
namespace {

/// Steps of one lane of a rank, or of an aggregator.
void expect_small(const CollectiveAlgorithm& algorithm, const CollectiveCall& call, std::uint32_t index) {
  constexpr std::size_t limit = 16 << 10;  // O(log P) of small things
  for (std::uint32_t lane = 0; lane < algorithm.lanes(call); ++lane) {
    const std::size_t before = live_bytes;
    const auto stream = algorithm.steps(call, index, lane);
    EXPECT_GT(live_bytes, before);  // the counter counts
    Step step;
    for (int i = 0; i < 5000 && stream->next(step); ++i)
      ASSERT_LE(live_bytes - before, limit)
          << call.algorithm << " " << to_text(call.kind) << ", index " << index << ", step " << i;
  }
}

TEST(CollectiveMemory, DoesNotGrow) {
  constexpr std::uint32_t ranks = 16384;
  const Communicator communicator(0, ranks);
  for (const auto& [name, entry] : CollectiveRegistry::instance().entries()) {
    const auto algorithm = entry.make();
    for (const std::string& kind : collective_kind_names()) {
      CollectiveCall call;
      call.algorithm = name;
      call.kind = parse_collective_kind(kind).value();
      if (!algorithm->supports(call.kind)) continue;
      call.communicator = &communicator;
      call.size = Bytes(std::int64_t{1} << 40);
      expect_small(*algorithm, call, ranks / 3);
      // Switches that reduce, with all ranks below one, and with several of them.
      for (const std::uint32_t below : {0U, 128U}) {
        call.tuning.ranks_per_server = below;
        call.tuning.ranks_per_leaf = 16 * below;
        if (!algorithm->refuses(call).empty()) continue;
        const std::uint32_t aggregators = algorithm->aggregators(call);
        if (aggregators == 0) continue;
        ASSERT_NO_FATAL_FAILURE(expect_small(*algorithm, call, ranks));
        ASSERT_NO_FATAL_FAILURE(expect_small(*algorithm, call, ranks + aggregators - 1));
      }
    }
  }
}

}  // namespace
}  // namespace weft::collective_memory_test
