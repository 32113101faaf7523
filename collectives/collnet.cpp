// SPDX-License-Identifier: GPL-2.0-only
// SHARP between servers: switches of the network sum up what the servers have and copy the sum to all of them.
//
// NCCL src/device/all_reduce.h (NCCL_ALGO_COLLNET_DIRECT): inside a server each GPU gets its share of the data from all
// others (scatter) and sends the sum to the network; what comes back goes to all others (gather). In the network: R.
// Graham et al., "Scalable Hierarchical Aggregation Protocol (SHArP)", COMHPC 2016, doi:10.1109/COMHPC.2016.006: a tree
// of aggregation nodes in switches, of two levels here: leaf switches with `ranks_per_leaf` ranks each and one root, or
// a single switch. Each share has a tree of its own. A GPU sends and receives S/g bytes over its NIC (g in a server),
// and (g-1)/g 2S inside the server; a leaf sends S/g per share to the root. The switches sum up whole slices.
#include <fmt/format.h>

#include "collectives/in_network.hpp"

namespace weft {
namespace {

/// One lane's view of a call. Scratch: first the sum so far, then the sum of all.
struct Part {
  HeadShares shares;
  MessageSizes sizes;
  std::uint32_t ranks = 1;
  std::uint32_t in_server = 1;
  std::uint32_t in_leaf = 1;  ///< ranks
  std::uint32_t index = 0;

  std::uint32_t head() const { return index < ranks ? index % in_server : (index - ranks) % in_server; }
  std::uint32_t leaves() const { return ranks / in_leaf; }
  /// Which leaf's aggregator it is, or leaves() for the root.
  std::uint32_t leaf() const { return (index - ranks) / in_server; }
  std::uint32_t aggregator(std::uint32_t of_leaf) const { return ranks + of_leaf * in_server + head(); }
  std::uint32_t own_aggregator() const { return aggregator(index / in_leaf); }
  std::vector<std::uint32_t> neighbours() const {
    std::vector<std::uint32_t> others;
    for (std::uint32_t i = 1; i < in_server; ++i)
      others.push_back(index / in_server * in_server + (index + i) % in_server);
    return others;
  }
  /// Of an aggregator: the heads of a leaf's servers, or the leaves.
  std::vector<std::uint32_t> children() const {
    std::vector<std::uint32_t> below;
    const bool is_root = leaf() == leaves();
    for (std::uint32_t i = 0; i < (is_root ? leaves() : in_leaf / in_server); ++i)
      below.push_back(is_root ? aggregator(i) : leaf() * in_leaf + i * in_server + head());
    return below;
  }
  /// The sums of this aggregator are those of all.
  bool is_top() const { return leaves() == 1 || leaf() == leaves(); }
  Place so_far(std::int64_t loop) const { return {Buffer::scratch, shares.scratch(loop)}; }
  Place final_sum(std::int64_t loop) const { return {Buffer::scratch, shares.scratch_end() + shares.scratch(loop)}; }
};

/// To each other GPU of the server what it is the head of.
StepGenerator scatter(Part part) {
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    for (const std::uint32_t peer : part.neighbours()) {
      const Piece piece = part.shares.at(loop, peer % part.in_server);
      if (piece.bytes == 0) continue;
      StepGenerator steps = send_to_all({peer}, part.sizes, piece.bytes, {Buffer::input, piece.offset});
      for (Step step; steps.next(step);) co_yield step;
    }
  }
}

/// The server's sum of what the rank is the head of, to the network.
StepGenerator reduce(Part part) {
  const std::vector<std::uint32_t> others = part.neighbours();
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    const Piece piece = part.shares.at(loop, part.head());
    if (piece.bytes == 0) continue;
    const Place own{Buffer::input, piece.offset};
    StepGenerator steps = others.empty()
                              ? send_to_all({part.own_aggregator()}, part.sizes, piece.bytes, own)
                              : sum_of(others, part.sizes, piece.bytes, own, part.so_far(loop), part.own_aggregator());
    for (Step step; steps.next(step);) co_yield step;
  }
}

/// The sum of all from the network, for the rank and the others of the server.
StepGenerator spread(Part part) {
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    const Piece piece = part.shares.at(loop, part.head());
    if (piece.bytes == 0) continue;
    StepGenerator steps =
        copy_to_all(part.own_aggregator(), part.neighbours(), part.sizes, piece.bytes, {Buffer::output, piece.offset});
    for (Step step; steps.next(step);) co_yield step;
  }
}

StepGenerator gather(Part part) {
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    // In the order in which the others send: each starts with the next of the server.
    for (const std::uint32_t peer : part.neighbours()) {
      const Piece piece = part.shares.at(loop, peer % part.in_server);
      if (piece.bytes == 0) continue;
      StepGenerator steps = copy_to_all(peer, {}, part.sizes, piece.bytes, {Buffer::output, piece.offset});
      for (Step step; steps.next(step);) co_yield step;
    }
  }
}

/// In a switch, upwards.
StepGenerator aggregate(Part part) {
  const std::vector<std::uint32_t> children = part.children();
  const std::optional<std::uint32_t> to = part.is_top() ? std::nullopt : std::optional(part.aggregator(part.leaves()));
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    const std::int64_t bytes = part.shares.at(loop, part.head()).bytes;
    if (bytes == 0) continue;
    StepGenerator steps = sum_of(children, part.sizes, bytes, std::nullopt, part.so_far(loop), to);
    for (Step step; steps.next(step);) co_yield step;
  }
}

/// In a switch, downwards.
StepGenerator distribute(Part part, std::uint32_t sums) {
  std::uint64_t number = 0;
  for (std::int64_t loop = 0; loop < part.shares.loops(); ++loop) {
    const std::int64_t bytes = part.shares.at(loop, part.head()).bytes;
    if (bytes == 0) continue;
    StepGenerator steps =
        part.is_top()
            ? send_to_all(part.children(), part.sizes, bytes, part.so_far(loop), sums, ++number)
            : copy_to_all(part.aggregator(part.leaves()), part.children(), part.sizes, bytes, part.final_sum(loop));
    for (Step step; steps.next(step);) co_yield step;
  }
}

class CollNet final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  std::optional<Protocol> fixed_protocol() const override { return Protocol::simple; }
  std::uint32_t credits(const CollectiveCall& call) const override { return nvls_sizes(call, heads(call)).credits; }
  // First those upwards, then those downwards.
  std::uint32_t channels(const CollectiveCall& call) const override { return 2 * call.tuning.channels; }
  std::uint32_t lanes(const CollectiveCall& call) const override { return 2 * channels(call); }
  std::uint32_t memory_of(const CollectiveCall& call, std::uint32_t lane) const override {
    return lane % call.tuning.channels;
  }
  std::uint32_t aggregators(const CollectiveCall& call) const override {
    const std::uint32_t leaves = call.communicator->size() / in_leaf(call);
    return call.communicator->size() > 1 ? (leaves + (leaves > 1 ? 1 : 0)) * heads(call) : 0;
  }
  AggregatorSite aggregator_site(const CollectiveCall& call, std::uint32_t number) const override {
    const std::uint32_t leaf = number / heads(call);
    const std::uint32_t head = number % heads(call);
    if (leaf * in_leaf(call) < call.communicator->size())
      return {leaf * in_leaf(call) + head, AggregatorSite::Level::leaf, head, in_leaf(call) / heads(call), heads(call)};
    return {head, AggregatorSite::Level::top, heads(call) + head, call.communicator->size() / heads(call), heads(call)};
  }
  std::string refuses(const CollectiveCall& call) const override {
    const std::uint32_t server = heads(call);
    if (call.communicator->size() % server != 0)
      return fmt::format("{} ranks are not whole servers of {}", call.communicator->size(), server);
    if (call.communicator->size() % in_leaf(call) != 0 || in_leaf(call) % server != 0)
      return fmt::format("{} ranks in servers of {} are not whole leaves of {} (ranks_per_leaf)",
                         call.communicator->size(), server, in_leaf(call));
    if (2 * server > AggregatorSite::most_units)
      return fmt::format("servers of {} ranks are too large; at most {} each", server, AggregatorSite::most_units / 2);
    return CollectiveAlgorithm::refuses(call);
  }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    const std::uint32_t n = call.communicator->size();
    if (n == 1) return lone_stream(call, lane);
    const std::uint32_t count = call.tuning.channels;
    const MessageSizes sizes = nvls_sizes(call, heads(call));
    const HeadShares shares = HeadShares::of_vector(call, {count, lane % count}, heads(call), sizes.chunk);
    const Part part{shares, sizes, n, heads(call), in_leaf(call), index};
    const bool upwards = lane % (2 * count) < count;
    const bool first = lane < 2 * count;
    if (index >= n) return stream_of(!first ? no_steps() : upwards ? aggregate(part) : distribute(part, lane % count));
    if (upwards) return stream_of(first ? scatter(part) : reduce(part));
    return stream_of(first ? spread(part) : gather(part));
  }

 private:
  /// Ranks of a server: one, unless the call says more.
  static std::uint32_t heads(const CollectiveCall& call) {
    return std::min(std::max(1U, call.tuning.ranks_per_server), call.communicator->size());
  }
  static std::uint32_t in_leaf(const CollectiveCall& call) {
    const std::uint32_t leaf = call.tuning.ranks_per_leaf;
    return leaf == 0 || leaf > call.communicator->size() ? call.communicator->size() : leaf;
  }
};

const Registration<CollectiveAlgorithm, CollNet> registration(
    "collnet", "SHARP: switches of the network reduce and multicast, direct exchange inside servers");

}  // namespace
}  // namespace weft
