// SPDX-License-Identifier: GPL-2.0-only
// NVLink SHARP inside servers, NCCL's double binary tree between them.
//
// NCCL src/device/all_reduce.h (NCCL_ALGO_NVLS_TREE): the head of a chunk reads the sum of its server through the
// NVSwitch, reduces it up the tree of the servers' heads of the same place, and writes the result from above to the
// NVSwitch, which copies it to all GPUs of the server. Half of the channels has the first tree, the other half the
// second one (src/graph/trees.cc). An all-reduce of S bytes puts S + S/g bytes on the NVLink of a GPU (g in a server),
// and at most 2 S/g on its network link, in each direction.
#include "collectives/steps/in_network.hpp"
#include "collectives/steps/nccl_sizes.hpp"
#include "collectives/steps/nccl_trees.hpp"

namespace weft {
namespace {

/// One lane's view of a call. Scratch: first the sums of the server, then those of all.
struct TreePart {
  SwitchedServer own;
  std::uint32_t server = 0;
  std::uint32_t head = 0;  ///< own place in the server
  std::uint32_t servers = 1;
  std::uint32_t tree = 0;

  Place server_sum(std::int64_t loop) const { return {Buffer::scratch, own.shares.scratch(loop)}; }
  Place sum(std::int64_t loop) const { return {Buffer::scratch, own.shares.scratch_end() + own.shares.scratch(loop)}; }
  StepGenerator chunks(std::function<StepGenerator(const HeadChunk&)> steps) const {
    return of_chunks(own.shares, Peers::only(head), std::move(steps));
  }

  BinaryTreeNode node() const { return nccl_double_tree(servers, server, tree); }
  bool is_root() const { return node().up == no_rank; }
  std::uint32_t parent() const { return node().up * own.gpus.count + head; }
  Peers children() const {
    const auto [up, down0, down1] = node();
    const auto rank = [&](std::uint32_t of) { return of * own.gpus.count + head; };
    if (down0 == no_rank) return Peers::pair(rank(down1), 0, down1 == no_rank ? 0 : 1);
    return Peers::pair(rank(down0), rank(down1), down1 == no_rank ? 1 : 2);
  }
};

/// The server's sums, from the switch.
StepGenerator take_sums(const TreePart& part) {
  return part.chunks([part](const HeadChunk& chunk) {  // one step to NCCL with that up the tree
    return joined(true, copy_to_all(part.own.aggregator, {}, part.own.sizes, chunk.bytes, part.server_sum(chunk.loop)));
  });
}

/// Up the tree: the children's sums and the server's to the parent; the root keeps the sum of all. `sums`: the lane of
/// the server's.
StepGenerator reduce_up(TreePart part, HeadChunk chunk, std::uint32_t sums) {
  const Place own = part.server_sum(chunk.loop);
  const Peers children = part.children();
  if (children.count == 0) {
    Step step = step_of(part.is_root() ? Primitive::copy : Primitive::send, part.own.sizes, chunk.bytes);
    step.input_offset = Bytes(own.offset);
    step.source = step.target = Buffer::scratch;
    step.output_offset = Bytes(part.sum(chunk.loop).offset);
    if (!part.is_root()) step.send_peer = part.parent();
    step.wait_lane = sums;
    step.wait_marks = chunk.number;
    step.mark = true;
    co_yield step;
    co_return;
  }
  const std::optional<std::uint32_t> to = part.is_root() ? std::nullopt : std::optional(part.parent());
  StepGenerator steps = sum_of(children, part.own.sizes, chunk.bytes, own, part.sum(chunk.loop), to);
  for (Step step; steps.next(step);) {
    step.wait_lane = sums;
    step.wait_marks = chunk.number;
    co_yield step;
  }
}

/// Down the tree.
StepGenerator copy_down(const TreePart& part, std::uint32_t root_sums) {
  return part.chunks([=](const HeadChunk& chunk) {
    const Place sum = part.sum(chunk.loop);
    if (part.is_root())  // one step with that of the sums
      return joined(true, send_to_all(part.children(), part.own.sizes, chunk.bytes, sum, root_sums, chunk.number));
    return copy_to_all(part.parent(), part.children(), part.own.sizes, chunk.bytes, sum);
  });
}

/// The sums of all, to the switch.
StepGenerator publish(const TreePart& part, std::uint32_t sums) {
  return part.chunks([=](const HeadChunk& chunk) {  // one step with that down the tree
    return joined(true, send_to_all(Peers::only(part.own.aggregator), part.own.sizes, chunk.bytes, part.sum(chunk.loop),
                                    sums, chunk.number));
  });
}

class NvlsTree final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  std::optional<Protocol> fixed_protocol() const override { return Protocol::simple; }
  std::uint32_t credits(const CollectiveCall& call) const override {
    return nvls_tree_sizes(call, nvls_heads(server_size(call))).credits;
  }
  // First those of the reduction, then those of the broadcast; each has both trees.
  std::uint32_t channels(const CollectiveCall& call) const override { return 2 * half(call); }
  std::uint32_t usual_channels(const CollectiveCall& call) const override { return nvls_channels(call); }
  std::uint32_t lanes(const CollectiveCall& call) const override { return 3 * channels(call); }
  std::uint32_t memory_of(const CollectiveCall& call, std::uint32_t lane) const override { return lane % half(call); }
  std::uint32_t aggregators(const CollectiveCall& call) const override {
    const std::uint32_t n = call.communicator->size();
    return n > 1 ? n / server_size(call) : 0;
  }
  AggregatorSite aggregator_site(const CollectiveCall& call, std::uint32_t number) const override {
    return {number * server_size(call), AggregatorSite::Level::server, number, server_size(call), 1};
  }
  std::string refuses(const CollectiveCall& call) const override {
    if (std::string parts = refuse_parts_of_servers(call, server_size(call)); !parts.empty()) return parts;
    if (aggregators(call) > AggregatorSite::max_units)
      return fmt::format("{} servers are too many; at most {}", aggregators(call), AggregatorSite::max_units);
    return CollectiveAlgorithm::refuses(call);
  }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    const std::uint32_t n = call.communicator->size();
    if (n == 1) return lone_stream(call, lane);
    const std::uint32_t count = half(call);
    const std::uint32_t in_server = server_size(call);
    const std::uint32_t heads = nvls_heads(in_server);
    const MessageSizes sizes = nvls_tree_sizes(call, heads);
    const ChannelShare share{count, lane % count};
    const std::uint32_t server = index < n ? index / in_server : index - n;
    const SwitchedServer own{HeadShares::of_vector(call, share, heads, sizes.chunk), sizes, n + server,
                             Peers::range(server * in_server, in_server)};
    const TreePart part{own, server, index % in_server, n / in_server, lane % count >= count / 2 ? 1U : 0U};
    const bool reduction = lane % (2 * count) < count;
    const std::uint32_t kind = lane / (2 * count);  // to the switch, from the switch, tree
    if (index >= n)
      return stream_of(kind != 0 ? no_steps() : reduction ? own.sums_in_switch() : own.copies_in_switch());
    const std::uint32_t sums = 2 * count + lane % count;
    const std::uint32_t up = 4 * count + lane % count;
    if (kind == 0 && reduction) return stream_of(own.contribute());
    if (kind == 1 && !reduction) return stream_of(own.take_all());
    if (!own.is_head(part.head)) return stream_of(no_steps());
    if (kind == 0) return stream_of(publish(part, part.is_root() ? up : up + count));
    if (kind == 1) return stream_of(take_sums(part));
    if (!reduction) return stream_of(copy_down(part, up));
    return stream_of(part.chunks([=](const HeadChunk& chunk) { return reduce_up(part, chunk, sums); }));
  }

 private:
  /// Channels that have a share of the data: an even number.
  static std::uint32_t half(const CollectiveCall& call) { return (call.tuning.channels + 1) / 2 * 2; }
};

const Registration<CollectiveAlgorithm, NvlsTree> nvls_tree_registration(
    "nvls_tree", "NVSwitches reduce and multicast in each server, trees between servers");

}  // namespace
}  // namespace weft
