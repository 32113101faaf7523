// SPDX-License-Identifier: GPL-2.0-only
// Recursive doubling: few rounds, for short vectors.
//
// all_reduce: in round k, partners at distance 2^k exchange their whole vectors and both reduce: log2 P rounds, S log2
// P bytes sent per rank. all_gather: they exchange all the blocks that they hold. R. Thakur, R. Rabenseifner, W. Gropp,
// "Optimization of Collective Communication Operations in MPICH", International Journal of High Performance Computing
// Applications 19(1), 2005, doi:10.1177/1094342005051521.
#include <memory>

#include "collectives/steps/partner_rounds.hpp"
#include "schedule/collective/collective.hpp"
#include "support/basics/contract.hpp"

namespace weft {
namespace {

class DoublingAllReduceStream final : public FoldedAllReduce {
 public:
  DoublingAllReduceStream(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel)
      : FoldedAllReduce(call, index, channel, 1) {}

 private:
  std::uint32_t exchanges() const override { return fold().levels; }
  void exchange(std::uint32_t number, Round& round) const override {
    round.peer = fold().rank_at(position() ^ (1U << number));
    round.send = round.receive = all();
    reduce(number == 0 && !paired(), round);
    if (number + 1 == fold().levels) round.target = Buffer::output;
  }
};

class RecursiveDoubling final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather;
  }
  std::uint32_t credits(const CollectiveCall& call) const override { return ExchangeSizes(call).credits; }
  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t channel) const override {
    expect_valid(call, index, channel);
    WEFT_EXPECT(supports(call.kind), "recursive doubling has no {}", to_text(call.kind));
    if (call.kind == CollectiveKind::all_gather) return doubling_all_gather(call, index, channel);
    return std::make_unique<DoublingAllReduceStream>(call, index, channel);
  }
};

const Registration<CollectiveAlgorithm, RecursiveDoubling> recursive_doubling_registration(
    "recursive_doubling", "log2 P rounds at distances 1, 2, 4, ...: whole vectors, or all blocks so far");

}  // namespace
}  // namespace weft
