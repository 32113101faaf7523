// SPDX-License-Identifier: GPL-2.0-only
// NCCL's sends and receives: the rounds in which it schedules all pairs, several at the same time.
//
// Schedule: NCCL src/init.cc (ncclP2pSchedule): groups of members by the quadratic deltas (x^2 + x)/2 modulo a power of
// two, those beyond the number of groups left out, and within them a rotation; in each round a rank sends to one delta
// and receives from the opposite one. Rounds are dealt to channels by the bits of their numbers in reverse order
// (src/include/channel.h, ncclP2pChannelBaseForRound). A channel's kernel works on 8 of its rounds at a time
// (src/include/device.h, NCCL_MAX_DEV_WORK_P2P_PER_BATCH), each a send and a receive of its own. On a machine that is
// known a large message is dealt out in parts to several channels, the round's and those after it. Chunks: 128 KiB
// between servers, 512 KiB inside one (src/init.cc, NCCL_P2P_{NET,NVL}_CHUNKSIZE), a quarter for messages below a
// chunk, half below 8 chunks (src/enqueue.cc). With LL a chunk is a step of its buffers, or half of it between servers.
#include "collectives/nccl/nccl_p2p.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "collectives/steps/exchange.hpp"
#include "collectives/steps/nccl_sizes.hpp"
#include "schedule/collective/step_generator.hpp"
#include "schedule/pairs/peer_messages.hpp"

namespace weft {

std::uint32_t P2pRounds::group_of(std::uint32_t server) {
  return server > 8 ? std::gcd(server, 8U) : std::max(1U, server);
}

P2pRounds::P2pRounds(std::uint32_t ranks, std::uint32_t server) : ranks_(ranks) {
  group_ = group_of(server);
  if (group_ == 0 || ranks % group_ != 0) group_ = 1;
  groups_ = ranks / group_;
}

P2pRounds::Peers P2pRounds::peers(std::uint32_t index) const {
  const std::uint32_t group = index / group_;
  const std::uint32_t local = index % group_;
  return {(group + delta_) % groups_ * group_ + (local + step_) % group_,
          (group + groups_ - delta_) % groups_ * group_ + (local + group_ - step_) % group_};
}

void P2pRounds::advance() {
  ++round_;
  if (++step_ < group_) return;
  step_ = 0;
  const std::uint32_t power = std::bit_ceil(groups_);
  do {
    ++number_;
    delta_ = (delta_ + number_) & (power - 1);
  } while (delta_ >= groups_ && number_ < power);
}

namespace {

constexpr std::uint32_t batch = 8;

std::uint32_t channel_of_round(std::uint32_t round, std::uint32_t channels) {
  const auto bits = static_cast<std::uint32_t>(std::bit_width(std::bit_ceil(channels)) - 1);
  std::uint32_t reversed = 0;
  for (std::uint32_t bit = 0; bit < bits; ++bit) reversed |= (round >> bit & 1U) << (bits - 1 - bit);
  return reversed % channels;
}

std::uint32_t known_server(const CollectiveCall& call) { return std::max(1U, call.tuning.ranks_per_server); }

/// Of a message of so many bytes between two ranks.
MessageSizes p2p_sizes(const CollectiveCall& call, std::int64_t bytes, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t server = known_server(call);
  const bool ll = call.tuning.protocol == Protocol::ll;
  std::int64_t chunk = ll ? MessageSizes::nccl_step_bytes(call) : peer_chunk(call);
  if (from / server != to / server) chunk = ll ? chunk / 2 : p2p_net_chunk(bytes, chunk);
  if (call.tuning.chunk.count() != 0) chunk = call.tuning.chunk.count();
  CollectiveCall sized = call;
  sized.tuning.chunk = Bytes(chunk);
  return MessageSizes::whole(sized);
}

/// Parts of messages, each on a channel of its own.
std::uint32_t parts_of(const CollectiveCall& call, std::int64_t bytes) {
  return std::min(peer_parts(call, bytes), call.tuning.channels);
}
std::uint32_t max_parts(const CollectiveCall& call) { return std::min(peer_channels(call), call.tuning.channels); }

/// Rounds that begin on the same channel: over several servers those with one server are a batch.
std::uint32_t rounds_of_a_channel(const CollectiveCall& call) {
  return call.graph && known_server(call) < call.communicator->size() ? P2pRounds::group_of(known_server(call)) : 1;
}

std::int64_t bytes_between(const CollectiveCall& call, std::uint32_t from, std::uint32_t to) {
  switch (call.kind) {
    case CollectiveKind::all_to_all:
      return pair_bytes(call, from, to);
    case CollectiveKind::gather:
      return to == call.root ? block_bytes(call, from) : 0;
    case CollectiveKind::scatter:
      return from == call.root ? block_bytes(call, to) : 0;
    default:
      return to == (from + 1) % call.communicator->size() ? call.size.count() : 0;
  }
}

/// Data from one rank to another, by their place in the sender's input or the receiver's output: that of the rank whose
/// lane it is, which is the sender if `out`. Both places are known of what stays.
struct Transfer {
  std::int64_t bytes = 0;
  std::int64_t input = 0;
  std::int64_t output = 0;
};
Transfer transfer(const CollectiveCall& call, std::uint32_t from, std::uint32_t to, bool out) {
  const std::int64_t bytes = bytes_between(call, from, to);
  // No disk access for the places of pairs that send nothing, which are most pairs in a table of many ranks.
  if (bytes == 0) return {};
  switch (call.kind) {
    case CollectiveKind::all_to_all: {
      // A place at the other end would fetch lines of the table that belong to that rank.
      const std::int64_t input = out ? pair_input(call, from, to) : 0;
      const std::int64_t output = out && from != to ? 0 : pair_output(call, from, to);
      return {bytes, input, output};
    }
    case CollectiveKind::gather:
      return {bytes, 0, block_begin(call, from)};
    case CollectiveKind::scatter:
      return {bytes, block_begin(call, to), 0};
    default:
      return {bytes, 0, 0};
  }
}

bool has_part(const CollectiveCall& call, std::int64_t bytes, std::uint32_t part) {
  return bytes > 0 && part < parts_of(call, bytes);
}

/// Whether a rank's send or receive of a round has this part. Those that have none are no work of the part's channel
/// (src/enqueue.cc, addP2pToPlan), and batches are counted without them.
bool is_work(const CollectiveCall& call, std::uint32_t index, const P2pRounds::Peers& peers, std::uint32_t part) {
  return has_part(call, bytes_between(call, index, peers.to), part) ||
         has_part(call, bytes_between(call, peers.from, index), part);
}

Transfer part_of(const Transfer& whole, std::uint32_t part, std::uint32_t parts) {
  const Piece piece = part < parts ? ChannelShare{parts, part}.of(0, whole.bytes) : Piece{};
  return {piece.bytes, whole.input + piece.offset, whole.output + piece.offset};
}

std::uint32_t lane_of(std::uint32_t channel, std::uint32_t channels, std::uint32_t place, bool out) {
  return channel + channels * (2 * place + (out ? 0 : 1));
}

/// Lane of one of the 8 places of a channel's kernel, for sends or for receives.
StepGenerator place_of_kernel(CollectiveCall call, std::uint32_t index, std::uint32_t channel, std::uint32_t place,
                              bool out, std::uint32_t lanes) {
  const std::uint32_t channels = call.tuning.channels;
  const std::uint32_t own_lane = lane_of(channel, channels, place, out);
  P2pRounds rounds(call.communicator->size(), known_server(call));
  const std::uint32_t alike = rounds_of_a_channel(call);
  const std::uint32_t max = max_parts(call);
  std::uint32_t of_channel = 0;
  for (; !rounds.done(); rounds.advance()) {
    // Which part of the round's messages this channel has.
    const std::uint32_t base = channel_of_round(rounds.round() / alike, channels);
    const std::uint32_t part = (channel + channels - base) % channels;
    if (part >= max) continue;
    const P2pRounds::Peers peers = rounds.peers(index);
    if (!is_work(call, index, peers, part)) continue;
    const std::uint32_t number = of_channel++;
    if (number % batch == 0 && number > 0) {
      // The whole kernel ends a batch before the next one: the end of this lane's part, and that of the others.
      const Step mark = marks();
      co_yield mark;
      for (std::uint32_t lane = channel; lane < lanes; lane += channels) {
        const Step wait = waits_for(lane, number / batch);
        if (lane != own_lane) co_yield wait;
      }
    }
    if (number % batch != place) continue;
    const std::uint32_t peer = out ? peers.to : peers.from;
    const Transfer whole = transfer(call, out ? index : peer, out ? peer : index, out);
    const Transfer moved = part_of(whole, part, parts_of(call, whole.bytes));
    if (moved.bytes == 0) continue;
    if (peer == index) {
      Step copy = local_copy(Buffer::input, moved.input, Buffer::output, moved.output, moved.bytes);
      if (out) co_yield copy;
      continue;
    }
    Exchange exchange(p2p_sizes(call, whole.bytes, index, peer));
    if (out)
      exchange.send(peer, Buffer::input, one_piece({moved.input, moved.bytes}));
    else
      exchange.receive(peer, Buffer::output, one_piece({moved.output, moved.bytes}));
    for (Step step; exchange.next(step);) co_yield step;
  }
}

class NcclP2p final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_to_all || kind == CollectiveKind::gather || kind == CollectiveKind::scatter ||
           kind == CollectiveKind::send_recv;
  }
  bool takes_block_tables(CollectiveKind kind) const override { return kind != CollectiveKind::send_recv; }
  std::uint32_t usual_channels(const CollectiveCall& call) const override { return std::bit_ceil(nccl_channels(call)); }
  std::uint32_t lanes(const CollectiveCall& call) const override { return 2 * batch * call.tuning.channels; }
  std::uint32_t credits(const CollectiveCall& call) const override { return p2p_sizes(call, 1, 0, 0).credits; }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    if (call.communicator->size() == 1) return lone_stream(call, lane);
    const std::uint32_t channels = call.tuning.channels;
    const std::uint32_t slot = lane / channels;
    return stream_of(place_of_kernel(call, index, lane % channels, slot / 2, slot % 2 == 0, lanes(call)));
  }
  // Of 16 lanes on each of 32 channels a call of 8 ranks uses some 20. A stream for each took half of a run's time.
  std::vector<bool> lanes_without_steps(const CollectiveCall& call, std::uint32_t index) const override {
    if (call.communicator->size() == 1) return {};
    const std::uint32_t channels = call.tuning.channels, max = max_parts(call), alike = rounds_of_a_channel(call);
    std::vector<bool> without(lanes(call), true);
    std::vector<std::uint32_t> works(channels);
    for (P2pRounds rounds(call.communicator->size(), known_server(call)); !rounds.done(); rounds.advance()) {
      const P2pRounds::Peers peers = rounds.peers(index);
      const std::int64_t sent = bytes_between(call, index, peers.to), received = bytes_between(call, peers.from, index);
      const std::uint32_t base = channel_of_round(rounds.round() / alike, channels);
      for (std::uint32_t part = 0; part < max && part < channels; ++part) {
        const bool sends = has_part(call, sent, part), receives = has_part(call, received, part);
        if (!sends && !receives) continue;
        const std::uint32_t channel = (base + part) % channels, number = works[channel]++;
        if (number < batch) {
          if (sends) without[lane_of(channel, channels, number, true)] = false;
          const bool stays = peers.from == index;  // what stays is copied by the lane that sends
          if (receives && !stays) without[lane_of(channel, channels, number, false)] = false;
        } else if (number == batch) {  // all lanes of the channel wait for each other between batches
          for (std::uint32_t lane = channel; lane < without.size(); lane += channels) without[lane] = false;
        }
      }
    }
    return without;
  }
};

const Registration<CollectiveAlgorithm, NcclP2p> nccl_p2p_registration(
    "nccl_p2p", "NCCL's rounds of sends and receives, 8 at a time");

}  // namespace
}  // namespace weft
