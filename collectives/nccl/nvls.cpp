// SPDX-License-Identifier: GPL-2.0-only
// NVLink SHARP inside one server: NVSwitches sum up reads from all GPUs, and write the data of one GPU to all.
//
// NCCL src/device/{all_reduce,all_gather,reduce_scatter}.h (NCCL_ALGO_NVLS). The data are divided among the GPUs, at
// most 32, the heads. Reduction: a head reads its chunk through the switch (multimem.ld_reduce), which fetches it from
// each GPU. Broadcast: a head writes a chunk to the switch (multimem.st), which copies it to each GPU, the writer among
// them. So an all-reduce of S bytes over n GPUs puts S + S/n bytes on the link of each head, in each direction, where a
// ring puts 2 (n-1)/n S; an all-gather S/n up and S down, a reduce-scatter S up and S/n down. Requests for data are not
// modelled; the switch sums up whole slices, not packets. Reduction and broadcast use connections of their own.
#include <fmt/format.h>

#include "collectives/steps/in_network.hpp"
#include "collectives/steps/kinds.hpp"
#include "collectives/steps/nccl_sizes.hpp"

namespace weft {
namespace {

/// The sums for which the rank is the head: into its result, or aside for the broadcast.
StepGenerator take_sums(SwitchedServer server, std::uint32_t index, bool of_blocks) {
  return of_chunks(server.shares, Peers::only(index), [=](const HeadChunk& chunk) {
    const Place target = of_blocks ? Place{Buffer::output, server.shares.in_block(chunk.loop, index)}
                                   : Place{Buffer::scratch, server.shares.scratch(chunk.loop)};
    return copy_to_all(server.aggregator, {}, server.sizes, chunk.bytes, target);
  });
}

/// The rank's data as a head, sent to the switch for all: its block, or sums that have arrived on the lane `sums`.
StepGenerator publish(SwitchedServer server, std::uint32_t index, std::uint32_t sums) {
  return of_chunks(server.shares, Peers::only(index), [=](const HeadChunk& chunk) {
    const Peers to = Peers::only(server.aggregator);
    if (sums == no_lane)
      return send_to_all(to, server.sizes, chunk.bytes, {Buffer::input, server.shares.in_block(chunk.loop, index)});
    // NCCL reduces and broadcasts in one step.
    return joined(true, send_to_all(to, server.sizes, chunk.bytes, {Buffer::scratch, server.shares.scratch(chunk.loop)},
                                    sums, chunk.number));
  });
}

class Nvls final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return is_all_reduce_or_phase(kind); }
  bool takes_block_tables(CollectiveKind kind) const override { return kind != CollectiveKind::all_reduce; }
  std::optional<Protocol> fixed_protocol() const override { return Protocol::simple; }
  std::uint32_t credits(const CollectiveCall& call) const override { return nvls_sizes(call, heads_of(call)).credits; }
  std::uint32_t channels(const CollectiveCall& call) const override {
    return call.tuning.channels * (call.kind == CollectiveKind::all_reduce ? 2 : 1);
  }
  std::uint32_t usual_channels(const CollectiveCall& call) const override { return nvls_channels(call); }
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
    if (call.kind != CollectiveKind::all_reduce && call.communicator->size() > max_nvls_heads)
      return fmt::format("NCCL gathers and scatters with it among at most {} ranks, and these are {}", max_nvls_heads,
                         call.communicator->size());
    return CollectiveAlgorithm::refuses(call);
  }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    const std::uint32_t n = call.communicator->size();
    if (n == 1) return lone_stream(call, lane);
    const std::uint32_t count = call.tuning.channels;
    const ChannelShare share{count, lane % count};
    const MessageSizes sizes = nvls_sizes(call, heads_of(call));
    const bool of_blocks = call.kind != CollectiveKind::all_reduce;
    const HeadShares shares = of_blocks ? HeadShares::of_blocks(call, share, sizes.chunk)
                                        : HeadShares::of_vector(call, share, heads_of(call), sizes.chunk);
    const SwitchedServer server{shares, sizes, n, Peers::range(0, n)};
    // Lanes that send, then those that receive; in each case first the channels of the reduction.
    const bool receiving = lane >= channels(call);
    const bool reduction = of_blocks ? call.kind == CollectiveKind::reduce_scatter : lane % channels(call) < count;
    if (index == n)
      return stream_of(receiving ? no_steps() : reduction ? server.sums_in_switch() : server.copies_in_switch());
    if (reduction && !receiving) return stream_of(server.contribute());
    if (!reduction && receiving) return stream_of(server.take_all());
    if (!server.is_head(index)) return stream_of(no_steps());
    const std::uint32_t sums = of_blocks ? no_lane : channels(call) + lane % count;
    return stream_of(receiving ? take_sums(server, index, of_blocks) : publish(server, index, sums));
  }

 private:
  static std::uint32_t heads_of(const CollectiveCall& call) {
    const std::uint32_t n = call.communicator->size();
    return call.kind == CollectiveKind::all_reduce ? nvls_heads(n) : n;
  }
};

const Registration<CollectiveAlgorithm, Nvls> nvls_registration("nvls",
                                                                "NVLink SHARP: NVSwitches reduce and multicast");

}  // namespace
}  // namespace weft
