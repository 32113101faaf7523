// SPDX-License-Identifier: GPL-2.0-only
// NVLink SHARP inside one server: NVSwitches sum up what they read from all GPUs, and write what one has to all.
//
// NCCL src/device/{all_reduce,all_gather,reduce_scatter}.h (NCCL_ALGO_NVLS). The data are divided among the GPUs, the
// heads. Reduction: a head reads its chunk through the switch (multimem.ld_reduce), which fetches it from each GPU.
// Broadcast: a head writes a chunk to the switch (multimem.st), which copies it to each GPU, the writer among them. So
// an all-reduce of S bytes over n GPUs puts S + S/n bytes on the link of each GPU, in each direction, where a ring puts
// 2 (n-1)/n S; an all-gather S/n up and S down, a reduce-scatter S up and S/n down. Requests for data are not modelled;
// the switch sums up whole slices, not packets. Reduction and broadcast use connections of their own.
#include <fmt/format.h>

#include "collectives/in_network.hpp"

namespace weft {
namespace {

/// One lane's view of a call.
struct Part {
  HeadShares shares;
  MessageSizes sizes;
  std::uint32_t index = 0;
  std::uint32_t aggregator = 0;
  bool of_blocks = false;

  std::vector<std::uint32_t> all() const {
    std::vector<std::uint32_t> ranks(aggregator);
    for (std::uint32_t rank = 0; rank < aggregator; ++rank) ranks[rank] = rank;
    return ranks;
  }
};

/// The rank's own data of every head, to the switch.
StepGenerator contribute(Part part) {
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    for (std::uint32_t head = 0; head < part.shares.heads(); ++head) {
      const Piece piece = part.shares.at(loop, head);
      if (piece.bytes == 0) continue;
      Step step = step_of(Primitive::send, part.sizes, piece.bytes);
      step.send_peer = part.aggregator;
      step.input_offset = Bytes(piece.offset);
      co_yield step;
    }
  }
}

/// The sums for which the rank is the head: into its result, or aside for the broadcast.
StepGenerator take_sums(Part part) {
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    const Piece piece = part.shares.at(loop, part.index);
    if (piece.bytes == 0) continue;
    Step step = step_of(Primitive::recv, part.sizes, piece.bytes);
    step.receive_peer = part.aggregator;
    step.target = part.of_blocks ? Buffer::output : Buffer::scratch;
    step.output_offset = Bytes(part.of_blocks ? part.shares.in_block(loop, part.index) : part.shares.scratch(loop));
    step.mark = true;
    co_yield step;
  }
}

/// What the rank is the head of, to the switch, for all: its block, or sums that have come on `sums`.
StepGenerator publish(Part part, std::uint32_t sums) {
  std::uint64_t number = 0;
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    const Piece piece = part.shares.at(loop, part.index);
    if (piece.bytes == 0) continue;
    Step step = step_of(Primitive::send, part.sizes, piece.bytes);
    step.send_peer = part.aggregator;
    step.source = part.of_blocks ? Buffer::input : Buffer::scratch;
    step.input_offset = Bytes(part.of_blocks ? part.shares.in_block(loop, part.index) : part.shares.scratch(loop));
    step.wait_lane = sums;
    step.wait_marks = sums == no_lane ? 0 : ++number;
    co_yield step;
  }
}

StepGenerator take_all(Part part) {
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    for (std::uint32_t head = 0; head < part.shares.heads(); ++head) {
      const Piece piece = part.shares.at(loop, head);
      if (piece.bytes == 0) continue;
      Step step = step_of(Primitive::recv, part.sizes, piece.bytes);
      step.receive_peer = part.aggregator;
      step.output_offset = Bytes(piece.offset);
      co_yield step;
    }
  }
}

/// The switch: the sum of all for each head, or what each head has for all; each has scratch of its own.
StepGenerator reduce_in_switch(Part part) {
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    for (std::uint32_t head = 0; head < part.shares.heads(); ++head) {
      const std::int64_t bytes = part.shares.at(loop, head).bytes;
      if (bytes == 0) continue;
      StepGenerator steps = sum_of(part.all(), part.sizes, bytes, std::nullopt, {}, head);
      for (Step step; steps.next(step);) co_yield step;
    }
  }
}

StepGenerator copy_in_switch(Part part) {
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    for (std::uint32_t head = 0; head < part.shares.heads(); ++head) {
      const std::int64_t bytes = part.shares.at(loop, head).bytes;
      if (bytes == 0) continue;
      StepGenerator steps =
          copy_to_all(head, part.all(), part.sizes, bytes, {Buffer::scratch, part.shares.scratch_end()});
      for (Step step; steps.next(step);) co_yield step;
    }
  }
}

class Nvls final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
           kind == CollectiveKind::reduce_scatter;
  }
  bool takes_block_tables(CollectiveKind kind) const override { return kind != CollectiveKind::all_reduce; }
  std::optional<Protocol> fixed_protocol() const override { return Protocol::simple; }
  std::uint32_t credits(const CollectiveCall& call) const override {
    return nvls_sizes(call, call.communicator->size()).credits;
  }
  std::uint32_t channels(const CollectiveCall& call) const override {
    return call.tuning.channels * (call.kind == CollectiveKind::all_reduce ? 2 : 1);
  }
  std::uint32_t lanes(const CollectiveCall& call) const override { return 2 * channels(call); }
  std::uint32_t memory_of(const CollectiveCall& call, std::uint32_t lane) const override {
    return lane % call.tuning.channels;
  }
  std::uint32_t aggregators(const CollectiveCall& call) const override { return call.communicator->size() > 1 ? 1 : 0; }
  AggregatorSite aggregator_site(const CollectiveCall& call, std::uint32_t /*number*/) const override {
    return {0, AggregatorSite::Level::server, 0, call.communicator->size(), 1};
  }
  std::string refuses(const CollectiveCall& call) const override {
    const std::uint32_t server = call.tuning.ranks_per_server;
    if (server != 0 && server < call.communicator->size())
      return fmt::format("its {} ranks are on servers of {}; for several servers there is nvls_tree",
                         call.communicator->size(), server);
    return CollectiveAlgorithm::refuses(call);
  }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    const std::uint32_t n = call.communicator->size();
    if (n == 1) return lone_stream(call, lane);
    const std::uint32_t count = call.tuning.channels;
    const ChannelShare share{count, lane % count};
    const MessageSizes sizes = nvls_sizes(call, n);
    const bool of_blocks = call.kind != CollectiveKind::all_reduce;
    const HeadShares shares = of_blocks ? HeadShares::of_blocks(call, share, sizes.chunk)
                                        : HeadShares::of_vector(call, share, n, sizes.chunk);
    const Part part{shares, sizes, index, n, of_blocks};
    // Lanes that send, then those that receive; in each case first the channels of the reduction.
    const bool receiving = lane >= channels(call);
    const bool reduction = of_blocks ? call.kind == CollectiveKind::reduce_scatter : lane % channels(call) < count;
    if (index == n)
      return stream_of(receiving ? no_steps() : reduction ? reduce_in_switch(part) : copy_in_switch(part));
    if (reduction) return stream_of(receiving ? take_sums(part) : contribute(part));
    const std::uint32_t sums = of_blocks ? no_lane : channels(call) + lane % count;
    return stream_of(receiving ? take_all(part) : publish(part, sums));
  }
};

const Registration<CollectiveAlgorithm, Nvls> registration("nvls", "NVLink SHARP: NVSwitches reduce and multicast");

}  // namespace
}  // namespace weft
