// SPDX-License-Identifier: GPL-2.0-only
// SHARP between servers: switches of the network sum up what the servers have and copy the sum to all of them.
//
// NCCL src/device/all_reduce.h (NCCL_ALGO_COLLNET_DIRECT): inside a server each GPU gets its share of the data from all
// others (scatter) and sends the sum to the network; the result goes to all others (gather). In the network: R. Graham
// et al., "Scalable Hierarchical Aggregation Protocol (SHArP)", COMHPC 2016, doi:10.1109/COMHPC.2016.006: a tree of
// aggregation nodes in switches, of two levels here: leaf switches with `ranks_per_leaf` ranks each and one root, or a
// single switch. Each share has a separate tree. A GPU sends and receives S/g bytes over its NIC (g in a server), and
// (g-1)/g 2S inside the server; a leaf sends S/g per share to the root. The switches sum up whole slices.
#include <fmt/format.h>

#include "collectives/steps/in_network.hpp"

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
  /// The other GPUs of the server, from the next one on.
  Peers neighbours() const {
    return {index / in_server * in_server, index % in_server + 1, 1, in_server - 1, in_server};
  }
  /// Their places: the shares of which they are the heads.
  Peers other_heads() const { return {0, index % in_server + 1, 1, in_server - 1, in_server}; }
  StepGenerator chunks(std::function<StepGenerator(const HeadChunk&)> steps) const {
    return of_chunks(shares, Peers::only(head()), std::move(steps));
  }
  /// The children of an aggregator: the heads of a leaf's servers, or the leaves.
  Peers children() const {
    if (leaf() == leaves()) return Peers::range(aggregator(0), leaves(), in_server);
    return Peers::range(leaf() * in_leaf + head(), in_leaf / in_server, in_server);
  }
  /// The sums of this aggregator are those of all.
  bool is_top() const { return leaves() == 1 || leaf() == leaves(); }
  Place so_far(std::int64_t loop) const { return {Buffer::scratch, shares.scratch(loop)}; }
  Place final_sum(std::int64_t loop) const { return {Buffer::scratch, shares.scratch_end() + shares.scratch(loop)}; }
};

/// Sends to each other GPU of the server the share of which it is the head.
StepGenerator scatter(const Part& part) {
  return of_chunks(part.shares, part.other_heads(), [part](const HeadChunk& chunk) {
    const std::uint32_t peer = part.index / part.in_server * part.in_server + chunk.head;
    return send_to_all(Peers::only(peer), part.sizes, chunk.bytes, {Buffer::input, chunk.offset});
  });
}

/// Sends the server's sum of the share of which the rank is the head to the network.
StepGenerator reduce(const Part& part) {
  return part.chunks([part](const HeadChunk& chunk) {
    const Place own{Buffer::input, chunk.offset};
    if (part.in_server == 1) return send_to_all(Peers::only(part.own_aggregator()), part.sizes, chunk.bytes, own);
    return sum_of(part.neighbours(), part.sizes, chunk.bytes, own, part.so_far(chunk.loop), part.own_aggregator());
  });
}

/// The sum of all from the network, for the rank and the others of the server.
StepGenerator spread(const Part& part) {
  return part.chunks([part](const HeadChunk& chunk) {
    return copy_to_all(part.own_aggregator(), part.neighbours(), part.sizes, chunk.bytes,
                       {Buffer::output, chunk.offset});
  });
}

StepGenerator gather(const Part& part) {
  // In the order in which the others send: each starts with the next of the server.
  return of_chunks(part.shares, part.other_heads(), [part](const HeadChunk& chunk) {
    const std::uint32_t peer = part.index / part.in_server * part.in_server + chunk.head;
    return copy_to_all(peer, {}, part.sizes, chunk.bytes, {Buffer::output, chunk.offset});
  });
}

/// In a switch, upwards.
StepGenerator aggregate(const Part& part) {
  const std::optional<std::uint32_t> to = part.is_top() ? std::nullopt : std::optional(part.aggregator(part.leaves()));
  return part.chunks([=](const HeadChunk& chunk) {
    return sum_of(part.children(), part.sizes, chunk.bytes, std::nullopt, part.so_far(chunk.loop), to);
  });
}

/// In a switch, downwards.
StepGenerator distribute(const Part& part, std::uint32_t sums) {
  return part.chunks([=](const HeadChunk& chunk) {
    if (part.is_top())
      return send_to_all(part.children(), part.sizes, chunk.bytes, part.so_far(chunk.loop), sums, chunk.number);
    return copy_to_all(part.aggregator(part.leaves()), part.children(), part.sizes, chunk.bytes,
                       part.final_sum(chunk.loop));
  });
}

class CollNet final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  std::optional<Protocol> fixed_protocol() const override { return Protocol::simple; }
  std::uint32_t credits(const CollectiveCall& call) const override { return collnet_sizes(call, heads(call)).credits; }
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
      return {leaf * in_leaf(call) + head, AggregatorSite::Level::leaf, number, in_leaf(call) / heads(call),
              heads(call)};
    return {head, AggregatorSite::Level::top, number, call.communicator->size() / heads(call), heads(call)};
  }
  std::string refuses(const CollectiveCall& call) const override {
    const std::uint32_t server = heads(call);
    if (std::string parts = refuse_parts_of_servers(call, server); !parts.empty()) return parts;
    if (call.communicator->size() % in_leaf(call) != 0 || in_leaf(call) % server != 0)
      return fmt::format("{} ranks in servers of {} are not whole leaves of {} (ranks_per_leaf)",
                         call.communicator->size(), server, in_leaf(call));
    if (aggregators(call) > AggregatorSite::max_units)
      return fmt::format("{} ranks in leaves of {} need {} aggregators; at most {} (ranks_per_leaf)",
                         call.communicator->size(), in_leaf(call), aggregators(call), AggregatorSite::max_units);
    return CollectiveAlgorithm::refuses(call);
  }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    const std::uint32_t n = call.communicator->size();
    if (n == 1) return lone_stream(call, lane);
    const std::uint32_t count = call.tuning.channels;
    const MessageSizes sizes = collnet_sizes(call, heads(call));
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

const Registration<CollectiveAlgorithm, CollNet> collnet_registration(
    "collnet", "SHARP: switches of the network reduce and multicast, direct exchange inside servers");

}  // namespace
}  // namespace weft
