// SPDX-License-Identifier: GPL-2.0-only
// NCCL's all-reduce over two complementary binary trees of servers, with a chain inside each server.
//
// P. Sanders, J. Speck, J. L. Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
// Computing 35(12), 2009, doi:10.1016/j.parco.2009.09.001. Trees: NCCL src/graph/trees.cc (ncclGetBtree, ncclGetDtree);
// who links servers: src/graph/connect.cc, pattern BALANCED_TREE (parent and second child at the first member of a
// server, first child at the second one); steps: src/device/all_reduce.h, runTreeSplit: reduction upwards and broadcast
// downwards at the same time, chunk by chunk; the root does both in one step.
//
// The first half of the channels has the first tree, the other half the second one, so there are at least two channels.
#include <algorithm>

#include "collectives/steps/exchange.hpp"
#include "collectives/steps/nccl_sizes.hpp"
#include "collectives/steps/nccl_trees.hpp"

namespace weft {
namespace {

/// Upwards: sums the children's and the own data for the parent; the root stores the sum and sends it down.
Step step_up(const TreePlace& place) {
  Step step;
  for (std::uint32_t i = 0; i < place.child_count; ++i) {
    if (i == 0)
      step.receive_peer = step.send_peer = place.children[0];
    else
      step.add_receive(place.children[i]);
  }
  if (place.parent != no_rank) {
    step.primitive = place.child_count > 0 ? Primitive::recv_reduce_send : Primitive::send;
    step.send_peer = place.parent;
  } else {
    step.primitive = Primitive::recv_reduce_copy_send;
    for (std::uint32_t i = 1; i < place.child_count; ++i) step.add_send(place.children[i]);
  }
  return step;
}

/// Downwards, of all but the root.
Step step_down(const TreePlace& place) {
  Step step;
  step.primitive = place.child_count > 0 ? Primitive::recv_copy_send : Primitive::recv;
  step.receive_peer = place.parent;
  for (std::uint32_t i = 0; i < place.child_count; ++i) {
    if (i == 0)
      step.send_peer = place.children[0];
    else
      step.add_send(place.children[i]);
  }
  return step;
}

MessageSizes tree_sizes(const CollectiveCall& call, std::uint32_t channels) {
  constexpr std::int64_t grain = 1920;  // bytes of data: ncclProtoGrainSize, src/include/comm.h
  MessageSizes sizes = MessageSizes::nccl_step(call);
  const bool ll128 = call.tuning.protocol == Protocol::ll128;
  const bool early = call.tuning.protocol == Protocol::simple && call.tuning.nccl_version == NcclVersion::v2_18;
  if (call.tuning.chunk.count() != 0 || (!ll128 && !early)) return sizes;
  const std::uint32_t ranks = call.communicator->size();
  const std::uint32_t servers =
      call.graph ? call.graph->servers() : std::max(1U, ranks / std::max(1U, call.tuning.ranks_per_server));
  const float in_server = static_cast<float>(ranks) / static_cast<float>(servers);
  if (early) {
    sizes.chunk = early_tree_chunk(call.size.count(), channels, servers, ranks / servers, sizes.chunk);
    return sizes;
  }
  sizes.chunk = ll128_tree_chunk(call.size.count(), channels, servers, in_server, sizes.chunk, grain);
  return sizes;
}

class DoubleBinaryTree final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::barrier;
  }
  std::uint32_t channels(const CollectiveCall& call) const override { return (call.tuning.channels + 1) / 2 * 2; }
  std::uint32_t lanes(const CollectiveCall& call) const override { return 2 * channels(call); }
  std::uint32_t credits(const CollectiveCall& call) const override { return MessageSizes::nccl_step(call).credits; }
  std::string refuses(const CollectiveCall& call) const override {
    if (call.graph) return CollectiveAlgorithm::refuses(call);
    const std::string parts = refuse_parts_of_servers(call, std::max(1U, call.tuning.ranks_per_server));
    return parts.empty() ? CollectiveAlgorithm::refuses(call) : parts;
  }

  std::uint32_t usual_channels(const CollectiveCall& call) const override { return nccl_channels(call); }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    if (call.communicator->size() == 1) return lone_stream(call, lane);
    const std::uint32_t count = channels(call);
    const std::uint32_t channel = lane % count;
    const TreePlace place = place_of(call, index, channel);
    const Piece part = ChannelShare{count, channel}.of(0, call.size.count());
    const MessageSizes sizes = tree_sizes(call, count);
    if (lane < count) return stream_of(chunks_of(step_up(place), sizes, part));
    return stream_of(chunks_of(step_down(place), sizes, place.parent == no_rank ? Piece{} : part));
  }

 private:
  TreePlace place_of(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel) const {
    const std::uint32_t n = call.communicator->size();
    const std::uint32_t half = channels(call) / 2;
    if (call.graph) {
      // NCCL's second tree is on the copies of channels; with fewer of them each tree has half.
      const std::uint32_t found = call.graph->found();
      const std::uint32_t tree = half >= found ? channel / found % 2 : channel / half;
      return nccl_tree_place(*call.graph, channel, index, tree);
    }
    const std::uint32_t server = std::max(1U, call.tuning.ranks_per_server);
    return nccl_tree_place(n, std::min(server, n), index, channel >= half ? 1 : 0);
  }
};

const Registration<CollectiveAlgorithm, DoubleBinaryTree> double_binary_tree_registration(
    "double_binary_tree", "NCCL's two complementary trees of servers, a chain inside each");

}  // namespace
}  // namespace weft
