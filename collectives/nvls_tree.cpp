// SPDX-License-Identifier: GPL-2.0-only
// NVLink SHARP inside servers, NCCL's double binary tree between them.
//
// NCCL src/device/all_reduce.h (NCCL_ALGO_NVLS_TREE): the head of a chunk reads the sum of its server through the
// NVSwitch, reduces it up the tree of the servers' heads of the same place, and writes what comes down to the NVSwitch,
// which copies it to all GPUs of the server. Half of the channels has the first tree, the other half the second one
// (src/graph/trees.cc). An all-reduce of S bytes puts S + S/g bytes on the NVLink of a GPU (g in a server), and at most
// 2 S/g on its network link, in each direction.
#include <fmt/format.h>

#include "collectives/in_network.hpp"
#include "collectives/nccl_trees.hpp"

namespace weft {
namespace {

/// One lane's view of a call. Scratch: first the sums of the server, then those of all.
struct Part {
  HeadShares shares;
  MessageSizes sizes;
  std::uint32_t server = 0;     ///< own
  std::uint32_t head = 0;       ///< own place in it
  std::uint32_t in_server = 1;  ///< GPUs
  std::uint32_t servers = 1;
  std::uint32_t tree = 0;

  std::uint32_t aggregator() const { return servers * in_server + server; }
  std::vector<std::uint32_t> gpus() const {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t gpu = 0; gpu < in_server; ++gpu) ranks.push_back(server * in_server + gpu);
    return ranks;
  }
  Place server_sum(std::int64_t loop) const { return {Buffer::scratch, shares.scratch(loop)}; }
  Place sum(std::int64_t loop) const { return {Buffer::scratch, shares.scratch_end() + shares.scratch(loop)}; }

  bool is_root() const { return nccl_double_tree(servers, server, tree).up == no_rank; }
  std::uint32_t parent() const { return nccl_double_tree(servers, server, tree).up * in_server + head; }
  std::vector<std::uint32_t> children() const {
    const BinaryTreeNode node = nccl_double_tree(servers, server, tree);
    std::vector<std::uint32_t> ranks;
    for (const std::uint32_t down : {node.down0, node.down1})
      if (down != no_rank) ranks.push_back(down * in_server + head);
    return ranks;
  }
};

StepGenerator contribute(Part part) {
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    for (std::uint32_t head = 0; head < part.in_server; ++head) {
      const Piece piece = part.shares.at(loop, head);
      if (piece.bytes == 0) continue;
      Step step = step_of(Primitive::send, part.sizes, piece.bytes);
      step.send_peer = part.aggregator();
      step.input_offset = Bytes(piece.offset);
      co_yield step;
    }
  }
}

StepGenerator take_all(Part part) {
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    for (std::uint32_t head = 0; head < part.in_server; ++head) {
      const Piece piece = part.shares.at(loop, head);
      if (piece.bytes == 0) continue;
      Step step = step_of(Primitive::recv, part.sizes, piece.bytes);
      step.receive_peer = part.aggregator();
      step.output_offset = Bytes(piece.offset);
      co_yield step;
    }
  }
}

/// The server's sums, from the switch.
StepGenerator take_sums(Part part) {
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    const std::int64_t bytes = part.shares.at(loop, part.head).bytes;
    if (bytes == 0) continue;
    StepGenerator steps = copy_to_all(part.aggregator(), {}, part.sizes, bytes, part.server_sum(loop));
    for (Step step; steps.next(step);) co_yield step;
  }
}

/// Up the tree: the children's sums and the server's to the parent; the root keeps the sum of all.
StepGenerator reduce_up(Part part, std::uint32_t sums) {
  std::uint64_t number = 0;
  const std::vector<std::uint32_t> children = part.children();
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    const std::int64_t bytes = part.shares.at(loop, part.head).bytes;
    if (bytes == 0) continue;
    ++number;
    const Place own = part.server_sum(loop);
    if (children.empty()) {
      Step step = step_of(part.is_root() ? Primitive::copy : Primitive::send, part.sizes, bytes);
      step.input_offset = Bytes(own.offset);
      step.source = step.target = Buffer::scratch;
      step.output_offset = Bytes(part.sum(loop).offset);
      if (!part.is_root()) step.send_peer = part.parent();
      step.wait_lane = sums;
      step.wait_marks = number;
      step.mark = true;
      co_yield step;
      continue;
    }
    const std::optional<std::uint32_t> to = part.is_root() ? std::nullopt : std::optional(part.parent());
    StepGenerator steps = sum_of(children, part.sizes, bytes, own, part.sum(loop), to);
    for (Step step; steps.next(step);) {
      step.wait_lane = sums;
      step.wait_marks = number;
      co_yield step;
    }
  }
}

/// Down the tree.
StepGenerator copy_down(Part part, std::uint32_t root_sums) {
  std::uint64_t number = 0;
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    const std::int64_t bytes = part.shares.at(loop, part.head).bytes;
    if (bytes == 0) continue;
    StepGenerator steps = part.is_root()
                              ? send_to_all(part.children(), part.sizes, bytes, part.sum(loop), root_sums, ++number)
                              : copy_to_all(part.parent(), part.children(), part.sizes, bytes, part.sum(loop));
    for (Step step; steps.next(step);) co_yield step;
  }
}

/// The sums of all, to the switch.
StepGenerator publish(Part part, std::uint32_t sums) {
  std::uint64_t number = 0;
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    const std::int64_t bytes = part.shares.at(loop, part.head).bytes;
    if (bytes == 0) continue;
    StepGenerator steps = send_to_all({part.aggregator()}, part.sizes, bytes, part.sum(loop), sums, ++number);
    for (Step step; steps.next(step);) co_yield step;
  }
}

StepGenerator in_switch(Part part, bool reduction) {
  const std::vector<std::uint32_t> gpus = part.gpus();
  const Place other_scratch{Buffer::scratch, part.shares.scratch_end()};  // than that of the sums
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    for (std::uint32_t head = 0; head < part.in_server; ++head) {
      const std::int64_t bytes = part.shares.at(loop, head).bytes;
      if (bytes == 0) continue;
      StepGenerator steps = reduction ? sum_of(gpus, part.sizes, bytes, std::nullopt, {}, gpus[head])
                                      : copy_to_all(gpus[head], gpus, part.sizes, bytes, other_scratch);
      for (Step step; steps.next(step);) co_yield step;
    }
  }
}

class NvlsTree final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  std::optional<Protocol> fixed_protocol() const override { return Protocol::simple; }
  std::uint32_t credits(const CollectiveCall& call) const override {
    return nvls_sizes(call, server_size(call)).credits;
  }
  // First those of the reduction, then those of the broadcast; each has both trees.
  std::uint32_t channels(const CollectiveCall& call) const override { return 2 * half(call); }
  std::uint32_t lanes(const CollectiveCall& call) const override { return 3 * channels(call); }
  std::uint32_t memory_of(const CollectiveCall& call, std::uint32_t lane) const override { return lane % half(call); }
  std::uint32_t aggregators(const CollectiveCall& call) const override {
    const std::uint32_t n = call.communicator->size();
    return n > 1 ? n / server_size(call) : 0;
  }
  AggregatorSite aggregator_site(const CollectiveCall& call, std::uint32_t number) const override {
    return {number * server_size(call), AggregatorSite::Level::server, 0, server_size(call), 1};
  }
  std::string refuses(const CollectiveCall& call) const override {
    const std::uint32_t server = server_size(call);
    if (call.communicator->size() % server != 0)
      return fmt::format("{} ranks are not whole servers of {}", call.communicator->size(), server);
    return CollectiveAlgorithm::refuses(call);
  }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    const std::uint32_t n = call.communicator->size();
    if (n == 1) return lone_stream(call, lane);
    const std::uint32_t count = half(call);
    const std::uint32_t in_server = server_size(call);
    const MessageSizes sizes = nvls_sizes(call, in_server);
    const ChannelShare share{count, lane % count};
    Part part{HeadShares::of_vector(call, share, in_server, sizes.chunk),
              sizes,
              0,
              0,
              in_server,
              n / in_server,
              lane % count >= count / 2 ? 1U : 0U};
    part.server = index < n ? index / in_server : index - n;
    part.head = index % in_server;
    const bool reduction = lane % (2 * count) < count;
    const std::uint32_t kind = lane / (2 * count);  // to the switch, from the switch, tree
    if (index >= n) return stream_of(kind == 0 ? in_switch(part, reduction) : no_steps());
    const std::uint32_t sums = 2 * count + lane % count;
    const std::uint32_t up = 4 * count + lane % count;
    if (kind == 0) return stream_of(reduction ? contribute(part) : publish(part, part.is_root() ? up : up + count));
    if (kind == 1) return stream_of(reduction ? take_sums(part) : take_all(part));
    return stream_of(reduction ? reduce_up(part, sums) : copy_down(part, up));
  }

 private:
  /// Channels that have a share of the data: an even number.
  static std::uint32_t half(const CollectiveCall& call) { return (call.tuning.channels + 1) / 2 * 2; }
};

const Registration<CollectiveAlgorithm, NvlsTree> registration(
    "nvls_tree", "NVSwitches reduce and multicast in each server, trees between servers");

}  // namespace
}  // namespace weft
