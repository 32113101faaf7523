// SPDX-License-Identifier: GPL-2.0-only
// Bucket algorithms: rings along each dimension of a torus in turn.
//
// M. Barnett, R. Littlefield, D. Payne, R. van de Geijn, "Global combine on mesh architectures with wormhole routing",
// IPPS 1993, doi:10.1109/IPPS.1993.262873; N. Jain, Y. Sabharwal, "Optimal bucket algorithms for large MPI collectives
// on torus interconnects", ICS 2010, doi:10.1145/1810085.1810093. reduce_scatter takes the dimensions one after
// another, all_gather takes them backwards, all_reduce does both: 2 sum (k_i - 1) messages, 2 (P-1)/P S bytes. Channel
// c starts with dimension c mod D, and runs the other way round if c/D is odd: with 2D channels all links of a torus
// are used at the same time.
#include <fmt/format.h>

#include "collectives/steps/kinds.hpp"
#include "collectives/steps/torus_phases.hpp"

namespace weft {
namespace {

StepGenerator all_reduce(Grid grid, PhaseOrder order, std::uint32_t index, MessageSizes sizes, Piece part) {
  StepGenerator scattering = vector_reduce_scatter(grid, order, index, sizes, part, 0, grid.count);
  for (Step step; scattering.next(step);) co_yield step;
  StepGenerator gathering = vector_all_gather(grid, order, index, sizes, part, 0, grid.count);
  for (Step step; gathering.next(step);) co_yield step;
}

class Bucket final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return is_all_reduce_or_phase(kind); }
  bool takes_block_tables(CollectiveKind kind) const override { return kind != CollectiveKind::all_reduce; }
  std::uint32_t credits(const CollectiveCall& call) const override { return MessageSizes::whole(call).credits; }
  std::string refuses(const CollectiveCall& call) const override {
    const auto& dimensions = call.tuning.dimensions;
    std::uint64_t product = 1;
    for (const std::uint32_t size : dimensions) product *= size;
    if (dimensions.size() > Grid::max_dimensions)
      return fmt::format("{} dimensions; at most {}", dimensions.size(), Grid::max_dimensions);
    if (!dimensions.empty() && product != call.communicator->size())
      return fmt::format("the dimensions have {} nodes, but there are {} ranks", product, call.communicator->size());
    return CollectiveAlgorithm::refuses(call);
  }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    if (call.communicator->size() == 1) return lone_stream(call, lane);
    const Grid grid(torus_dimensions(call));
    const PhaseOrder order = PhaseOrder::from(grid, lane % grid.count, lane / grid.count % 2 == 1);
    const MessageSizes sizes = MessageSizes::whole(call);
    const ChannelShare share{call.tuning.channels, lane};
    if (call.kind == CollectiveKind::all_gather)
      return stream_of(block_all_gather(call, grid, order, index, sizes, share));
    if (call.kind == CollectiveKind::reduce_scatter)
      return stream_of(block_reduce_scatter(call, grid, order, index, sizes, share));
    return stream_of(all_reduce(grid, order, index, sizes, share.of(0, call.size.count())));
  }
};

const Registration<CollectiveAlgorithm, Bucket> bucket_registration("bucket",
                                                                    "rings along each dimension of a torus in turn");

}  // namespace
}  // namespace weft
