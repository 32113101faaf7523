// SPDX-License-Identifier: GPL-2.0-only
// Recursive halving and doubling: few rounds and few bytes, for long vectors.
//
// all_reduce: a reduce-scatter in which each round halves what partners exchange and doubles their distance, then its
// mirror image as all-gather: 2 log2 P rounds, 2 S (P-1)/P bytes sent per rank. R. Rabenseifner, "Optimization of
// Collective Reduction Operations", Computational Science - ICCS 2004, doi:10.1007/978-3-540-24685-5_1. For other P as
// in MPICH: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH",
// International Journal of High Performance Computing Applications 19(1), 2005, doi:10.1177/1094342005051521.
// reduce_scatter alone halves the distance too, from P/2 on, for so each rank ends with its own block; all_gather alone
// is recursive doubling.
#include <memory>

#include "collectives/steps/kinds.hpp"
#include "collectives/steps/partner_rounds.hpp"
#include "schedule/collective/collective.hpp"
#include "support/basics/contract.hpp"

namespace weft {
namespace {

/// At distances 1, 2, 4, ...: bit k of a position decides between the halves of round k.
class HalvingAllReduceStream final : public HalvingAllReduce {
 public:
  using HalvingAllReduce::HalvingAllReduce;

 private:
  std::uint32_t partner(std::uint32_t position, std::uint32_t level) const override { return position ^ (1U << level); }
  bool keeps_upper(std::uint32_t position, std::uint32_t level) const override {
    return ((position >> level) & 1U) != 0;
  }
};

/// Rounds: folding, halving, own block into the output if it is not yet there, back to the rank that sat out.
class HalvingReduceScatterStream final : public RoundStream {
 public:
  HalvingReduceScatterStream(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel)
      : RoundStream(call, index, BlockLayout::of_ranks(call, channel), Buffer::output) {}

 private:
  std::uint32_t rounds() const override { return packing_rounds() + fold().levels + 3; }

  void fill(std::uint32_t number, Round& round) const override {
    if (number < packing_rounds()) {
      copy_part(number, Buffer::input, Buffer::scratch, round);
    } else {
      exchange(number - packing_rounds(), round);
    }
  }

  void exchange(std::uint32_t number, Round& round) const {
    const std::uint32_t levels = fold().levels;
    if (number == 0) {
      fold_in({0, ranks()}, round);
    } else if (number <= levels) {
      if (!sits_out()) halve(number - 1, round);
    } else if (number == levels + 1) {
      if (levels > 0 && (!paired() || sits_out())) return;
      round.source = levels > 0 ? Buffer::scratch : place_of(Buffer::input);
      round.copy = {index(), index() + 1};
    } else {
      fold_out({index() & ~1U, index() | 1U}, Buffer::scratch, round);
    }
  }

  void halve(std::uint32_t number, Round& round) const {
    const std::uint32_t level = fold().levels - 1 - number;
    const std::uint32_t partner = position() ^ (1U << level);
    round.peer = fold().rank_at(partner);
    round.send = half(partner, level);
    round.receive = half(position(), level);
    reduce(number == 0 && !paired(), round);
    // A position that represents two ranks ends with two blocks, of which only one is its own.
    if (level == 0 && !paired()) round.target = Buffer::output;
  }

  /// The blocks of the ranks that are represented by a position and by those next to it with the same bits from `level`
  /// on.
  BlockRange half(std::uint32_t position, std::uint32_t level) const {
    const std::uint32_t group = position >> level;
    return {fold().first_rank(group << level), fold().first_rank((group + 1) << level)};
  }
};

class HalvingDoubling final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return is_all_reduce_or_phase(kind); }
  std::uint32_t credits(const CollectiveCall& call) const override { return ExchangeSizes(call).credits; }
  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t channel) const override {
    expect_valid(call, index, channel);
    WEFT_EXPECT(supports(call.kind), "halving and doubling has no {}", to_text(call.kind));
    if (call.kind == CollectiveKind::all_gather) return doubling_all_gather(call, index, channel);
    if (call.kind == CollectiveKind::reduce_scatter)
      return std::make_unique<HalvingReduceScatterStream>(call, index, channel);
    return std::make_unique<HalvingAllReduceStream>(call, index, channel);
  }
};

const Registration<CollectiveAlgorithm, HalvingDoubling> halving_doubling_registration(
    "halving_doubling", "Rabenseifner's: halving reduce-scatter, doubling all-gather, in 2 log2 P rounds");

}  // namespace
}  // namespace weft
