// SPDX-License-Identifier: GPL-2.0-only
// Broadcast of long vectors: a binomial scatter of blocks, then a ring all-gather.
//
// M. Barnett, S. Gupta, D. Payne, L. Shuler, R. van de Geijn, J. Watts, "Interprocessor collective communication
// library", SHPCC 1994, doi:10.1109/SHPCC.1994.296665; in MPICH for long messages (Thakur, Rabenseifner, Gropp 2005):
// (log2 P + P - 1) alpha + 2 (P-1)/P S beta.
#include <algorithm>
#include <bit>

#include "collectives/steps/exchange.hpp"
#include "schedule/collective/step_generator.hpp"

namespace weft {
namespace {

/// ScatteredBlocks by member counted from the root; members' borders are aligned.
struct ScatteredBlocks {
  Piece part;
  std::uint32_t ranks = 0;
  std::int64_t block() const { return aligned(ceil_divide(part.bytes, ranks)); }
  Piece of(std::uint32_t begin, std::uint32_t end) const {
    const std::int64_t low = std::min(part.bytes, begin * block());
    return {part.offset + low, std::min(part.bytes, end * block()) - low};
  }
};

StepGenerator broadcast(std::uint32_t self, std::uint32_t root, MessageSizes sizes, ScatteredBlocks blocks) {
  const std::uint32_t n = blocks.ranks;
  const auto real = [n, root](std::uint32_t member) { return (member + root) % n; };
  const Buffer have = self == 0 ? Buffer::input : Buffer::output;
  const std::uint32_t lowest = self == 0 ? std::bit_ceil(n) : self & (~self + 1);
  if (self != 0) {
    Exchange exchange(sizes);
    exchange.receive(real(self & (self - 1)), Buffer::output, one_piece(blocks.of(self, std::min(n, self + lowest))));
    for (Step step; exchange.next(step);) co_yield step;
  }
  for (std::uint32_t bit = lowest >> 1; bit > 0; bit >>= 1) {
    const std::uint32_t child = self + bit;
    if (child >= n) continue;
    Exchange exchange(sizes);
    exchange.send(real(child), have, one_piece(blocks.of(child, std::min(n, child + bit))));
    for (Step step; exchange.next(step);) co_yield step;
  }
  // The ring ignores the blocks that a member already has from its subtree: they arrive once more, in scratch.
  for (std::uint32_t round = 0; round + 1 < n; ++round) {
    const std::uint32_t out = (self + n - round) % n;
    const std::uint32_t in = (self + 2 * n - 1 - round) % n;
    const std::uint32_t subtree = self == 0 ? n : lowest;
    const bool known = in >= self && in < self + subtree;
    Exchange exchange(sizes);
    exchange.send(real((self + 1) % n), have, one_piece(blocks.of(out, out + 1)));
    exchange.receive(real((self + n - 1) % n), known ? Buffer::scratch : Buffer::output,
                     one_piece(blocks.of(in, in + 1)));
    for (Step step; exchange.next(step);) co_yield step;
  }
}

class ScatterAllgather final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::broadcast; }
  std::uint32_t credits(const CollectiveCall& call) const override { return MessageSizes::whole(call).credits; }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    const std::uint32_t n = call.communicator->size();
    if (n == 1) return lone_stream(call, lane);
    const Piece part = ChannelShare{call.tuning.channels, lane}.of(0, call.size.count());
    return stream_of(broadcast((index + n - call.root) % n, call.root, MessageSizes::whole(call), {part, n}));
  }
};

const Registration<CollectiveAlgorithm, ScatterAllgather> scatter_allgather_registration(
    "scatter_allgather", "broadcast as binomial scatter and ring all-gather, for long vectors");

}  // namespace
}  // namespace weft
