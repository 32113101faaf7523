// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/execution/collective_run.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/execution/rank_executor.hpp"
#include "support/basics/contract.hpp"
#include "support/system/interrupt.hpp"

namespace weft {
namespace {

std::string name_of(const CollectiveCall& call, std::uint32_t index) {
  if (index < call.communicator->size()) return fmt::format("rank {}", call.communicator->rank(index).value());
  return fmt::format("aggregator {}", index - call.communicator->size());
}

}  // namespace

CollectiveRun::CollectiveRun(const CollectiveCall& call, std::uint32_t index, std::uint64_t operation,
                             RankExecutor& executor)
    : call_(call),
      index_(index),
      operation_(operation),
      executor_(executor),
      algorithm_(find_collective(call.algorithm)) {
  WEFT_EXPECT(algorithm_ != nullptr, "collective algorithm {}", call.algorithm);
  channels_ = algorithm_->channels(call);
  credits_ = algorithm_->credits(call);
  if (call.graph) passed_on_ = call.tuning.passed_on;
  unfinished_ = algorithm_->lanes(call);
  lanes_.resize(unfinished_);
  const std::vector<bool> without_steps = algorithm_->lanes_without_steps(call, index);
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    // Other channels of an aggregator are in other switches.
    const bool elsewhere = is_aggregator() && rank(index, lane % channels_) != executor_.rank();
    lanes_[lane].finished = elsewhere || (!without_steps.empty() && without_steps[lane]);
    if (lanes_[lane].finished)
      --unfinished_;
    else
      lanes_[lane].stream = algorithm_->steps(call, index, lane);
  }
}

std::uint32_t CollectiveRun::rank(std::uint32_t index, std::uint32_t channel) const {
  return rank_of(*algorithm_, call_, index, channel, executor_.placement());
}

bool CollectiveRun::advance(Time now, std::uint32_t channel) {
  for (std::uint32_t lane = channel; lane < lanes_.size(); lane += channels_) walk(now, lane);
  while (marked_) {
    marked_ = false;
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane)
      if (lanes_[lane].has_step && lanes_[lane].step.wait_lane != no_lane) walk(now, lane);
  }
  return unfinished_ == 0;
}

void CollectiveRun::walk(Time now, std::uint32_t lane) {
  while (!lanes_[lane].finished && !lanes_[lane].handling && advance_slice(now, lane)) {
    lanes_[lane].since = now;
    look_for_interrupt();  // slices may be of a byte
  }
}

bool CollectiveRun::fetch(Lane& lane) {
  if (!lane.stream->next(lane.step)) {
    lane.finished = true;
    lane.stream.reset();
    if (lane.posts.empty())
      --unfinished_;
    else
      ++busy_;
    return false;
  }
  lane.has_step = true;
  lane.done = Bytes(0);
  return true;
}

bool CollectiveRun::waits(const Lane& lane) const {
  return lane.step.wait_lane != no_lane && lanes_[lane.step.wait_lane].marks < lane.step.wait_marks;
}

std::int64_t CollectiveRun::wait(Time now, std::uint32_t channel) const {
  Time longest;
  for (std::uint32_t number = channel; number < lanes_.size(); number += channels_) {
    const Lane& lane = lanes_[number];
    if (!lane.finished && !lane.handling && !waits(lane)) longest = std::max(longest, now - lane.since);
  }
  return longest.ps();
}

// What is left of the slice.
Bytes CollectiveRun::slice_of(const Lane& lane) const {
  const Bytes left = lane.step.bytes - lane.done;
  if (passed_on_ == Bytes(0)) return std::min(lane.step.slice, left);
  return std::min(lane.step.slice - Bytes(lane.done.count() % lane.step.slice.count()), left);
}

// What the lane does at a time: a slice, or what it passes on of one.
Bytes CollectiveRun::piece_of(const Lane& lane) const {
  const Bytes slice = slice_of(lane);
  return passed_on_ > Bytes(0) ? std::min(passed_on_, slice) : slice;
}

// To another server a message is a slice.
std::uint32_t CollectiveRun::credits(const Step& step, std::uint32_t peer) const {
  if (passed_on_ == Bytes(0) || over_network(peer)) return credits_;
  return credits_ * static_cast<std::uint32_t>((step.slice + passed_on_ - Bytes(1)) / passed_on_);
}

Time CollectiveRun::time_of(const Step& step, Bytes slice) const {
  if (is_aggregator() || step.instant) return Time();
  const CollectiveTuning& tuning = call_.tuning;
  if (step.primitive == Primitive::copy && tuning.copies_while_sending) return Time();
  Bandwidth rate = reduces(step.primitive) ? tuning.reduce_rate : tuning.copy_rate;
  if (!sends(step.primitive) && tuning.store_rate.bps() > 0) rate = tuning.store_rate;
  if (tuning.network_rate.bps() > 0 && (rate.bps() == 0 || tuning.network_rate < rate) && over_network(step))
    rate = tuning.network_rate;
  const Time of_bytes = rate.bps() > 0 ? serialization_time(slice, rate) : Time();
  Time stage;
  if (!step.joined) {
    stage = step.of_all_heads ? tuning.heads_latency : tuning.stage_latency;
    if (tuning.stage_rate.bps() > 0) stage = std::max(stage, serialization_time(slice, tuning.stage_rate));
  }
  if (tuning.network_step > Time() && begins_at_network(step)) stage = bounded_sum(stage, tuning.network_step);
  const Time latency = bounded_sum(tuning.step_latency, stage);
  return bounded_sum(latency, std::max(of_bytes, tuning.min_step));
}

// A receiver that reads begins with a slice when the one before is done, so only the part of the link's time since then
// has passed when the slice arrives.
Time CollectiveRun::still_fetching(Time now, const Lane& lane) const {
  const Bandwidth rate = call_.tuning.fetch_rate;
  if (rate.bps() <= 0 || !receives(lane.step.primitive) || is_aggregator() || over_network(lane.step)) return Time();
  const Time fetched = bounded_sum(serialization_time(piece_of(lane), rate), lane.fetched);
  return fetched > now ? fetched - now : Time();
}

// A channel's thread block passes the first lines of a slice on before the last ones have come. So a slice that comes
// from another rank takes no time of its own, but ends no earlier than its bytes after the one before; a rank's own
// data take all of it, if the block's lines are the limit. Lanes of a channel share the block.
Time CollectiveRun::until_paced(Time now, const Lane& lane) const {
  const Bandwidth rate = call_.tuning.pace_rate;
  if (rate.bps() <= 0 || is_aggregator() || lane.step.instant) return Time();
  const auto sharing = static_cast<std::int64_t>(lanes_.size() / channels_);
  const Time of_bytes = serialization_time(piece_of(lane) * sharing, rate);
  const bool all_of_it = call_.tuning.paces_own_data && !receives(lane.step.primitive);
  const Time begin = all_of_it ? std::max(lane.handled, now) : lane.handled;
  const Time end = bounded_sum(of_bytes, begin);
  return end > now ? end - now : Time();
}

bool CollectiveRun::over_network(std::uint32_t peer) const {
  const ChannelGraph* const graph = call_.graph.get();
  const std::uint32_t members = call_.communicator->size();
  return graph != nullptr && index_ < members && peer < members && graph->server_of(index_) != graph->server_of(peer);
}

bool CollectiveRun::over_network(const Step& step) const {
  for (std::uint32_t i = 0; i < step.receive_count(); ++i)
    if (over_network(step.receive_from(i))) return true;
  for (std::uint32_t i = 0; i < step.send_count(); ++i)
    if (over_network(step.send_to(i))) return true;
  return false;
}

// What a sender reads for a slice passes while it waits for the slice from another member.
bool CollectiveRun::begins_at_network(const Step& step) const {
  const bool waits = step.receive_count() > 0;
  const std::uint32_t count = waits ? step.receive_count() : step.send_count();
  for (std::uint32_t i = 0; i < count; ++i)
    if (over_network(waits ? step.receive_from(i) : step.send_to(i))) return true;
  return false;
}

ReceiveConnection& CollectiveRun::receiver(std::uint32_t number, Lane& lane, std::uint32_t peer) const {
  if (lane.source != peer) {
    lane.source = peer;
    lane.from =
        &executor_.receive_connection(call_.communicator->id(), number % channels_, rank(peer, number % channels_));
  }
  return *lane.from;
}

SendConnection& CollectiveRun::sender(std::uint32_t number, Lane& lane, std::uint32_t peer) const {
  if (lane.destination != peer) {
    lane.destination = peer;
    lane.to = &executor_.send_connection(call_, number % channels_, rank(peer, number % channels_));
  }
  return *lane.to;
}

bool CollectiveRun::can_move(std::uint32_t number, Lane& lane) const {
  const Step& step = lane.step;
  for (std::uint32_t i = 0; i < step.receive_count(); ++i)
    if (receiver(number, lane, step.receive_from(i)).empty()) return false;
  if (!executor_.credits_limited()) return true;
  for (std::uint32_t i = 0; i < step.send_count(); ++i)
    if (sender(number, lane, step.send_to(i)).in_flight >= credits(step, step.send_to(i))) return false;
  return true;
}

// One slice further; false if the lane must wait or is at its end.
bool CollectiveRun::advance_slice(Time now, std::uint32_t number) {
  Lane& lane = lanes_[number];
  if (!lane.has_step && !fetch(lane)) return false;
  if (waits(lane)) return false;
  if (lane.step.primitive == Primitive::nop) {
    finish_step(lane);
    return true;
  }
  if (!can_move(number, lane)) return false;
  ++moves_;
  const Time duration =
      std::max(bounded_sum(time_of(lane.step, piece_of(lane)), still_fetching(now, lane)), until_paced(now, lane));
  if (duration > Time()) {
    lane.handling = true;
    ++busy_;
    executor_.set_lane_timer(bounded_sum(now, duration), operation_, number);
    return false;
  }
  handle(now, number, lane);
  return true;
}

bool CollectiveRun::on_timer(Time now, std::uint32_t number) {
  if ((number & posts_bit) != 0) {
    post(now, number & ~posts_bit);
    return unfinished_ == 0;
  }
  lanes_[number].handling = false;
  lanes_[number].since = now;
  --busy_;
  handle(now, number, lanes_[number]);
  return advance(now, number % channels_);
}

void CollectiveRun::handle(Time now, std::uint32_t number, Lane& lane) {
  const std::uint32_t channel = number % channels_;
  const Step& step = lane.step;
  const Bytes piece = piece_of(lane);
  // A message is a piece, and between servers a slice, with its last piece.
  const bool last = piece == slice_of(lane);
  const Bytes of_piece = wire_bytes(call_.tuning.protocol, piece);
  const auto whole = [&](std::uint32_t peer) { return passed_on_ > Bytes(0) && over_network(peer); };
  const auto of_slice = [&] {
    return wire_bytes(call_.tuning.protocol, Bytes(lane.done.count() % step.slice.count()) + piece);
  };
  for (std::uint32_t i = 0; i < step.receive_count(); ++i) {
    const std::uint32_t peer = step.receive_from(i);
    if (!last && whole(peer)) continue;
    const Bytes wire = whole(peer) ? of_slice() : of_piece;
    const ReceiveConnection::Slice arrived = receiver(number, lane, peer).pop();
    WEFT_EXPECT(arrived.bytes == wire && arrived.collective == call_.id,
                "collective {} channel {} expected a slice of {} bytes, found {} of collective {}", call_.id, channel,
                wire.count(), arrived.bytes.count(), arrived.collective);
    if (executor_.credits_limited()) {
      Time late;
      if (executor_.explains()) {
        const std::int64_t peers = parts_[TimePart::peers] + expected_[TimePart::peers];
        late = receiver(number, lane, peer).late(now, arrived, launched_, peers);
      }
      executor_.return_credit(now, rank(peer, channel), arrived.queue_pair, late);
    }
    lane.fetched = now;
  }
  for (std::uint32_t i = 0; i < step.send_count(); ++i) {
    if (!last && whole(step.send_to(i))) continue;
    const Bytes wire = whole(step.send_to(i)) ? of_slice() : of_piece;
    SendConnection& to = sender(number, lane, step.send_to(i));
    ++to.in_flight;
    ++messages_;
    bytes_ += wire;
    const Time due = is_aggregator() ? now : time_of_post(now, step.send_to(i));
    if (due > now)
      post_later(number, lane, {due, now, &to, wire, step.send_to(i)});
    else
      executor_.send_slice(now, to, call_, channel, wire, step.send_to(i), Time());
  }
  lane.handled = now;
  lane.done += piece;
  if (lane.done == step.bytes) finish_step(lane);
}

// To another server NCCL's proxy (src/proxy.cc, progressOps) hands messages to the NIC, one after another.
Time CollectiveRun::time_of_post(Time now, std::uint32_t peer) {
  const CollectiveTuning& tuning = call_.tuning;
  if (tuning.network_latency < Time() || !over_network(peer)) return bounded_sum(now, tuning.message_latency);
  return executor_.proxy_turn(bounded_sum(now, tuning.network_latency), tuning.network_turn);
}

void CollectiveRun::post_later(std::uint32_t number, Lane& lane, const Lane::Post& post) {
  const auto later = [](Time due, const Lane::Post& other) { return due < other.due; };
  lane.posts.insert(std::upper_bound(lane.posts.begin(), lane.posts.end(), post.due, later), post);
  executor_.set_lane_timer(post.due, operation_, number | posts_bit);
}

void CollectiveRun::post(Time now, std::uint32_t number) {
  Lane& lane = lanes_[number];
  const Lane::Post due = lane.posts.front();
  lane.posts.erase(lane.posts.begin());
  executor_.send_slice(now, *due.to, call_, number % channels_, due.bytes, due.member, now - due.handled);
  if (!lane.finished || !lane.posts.empty()) return;
  --unfinished_;
  --busy_;
}

void CollectiveRun::finish_step(Lane& lane) {
  lane.has_step = false;
  ++lane.steps;
  if (!lane.step.mark) return;
  ++lane.marks;
  marked_ = true;
}

std::string CollectiveRun::waiting() const {
  for (std::uint32_t number = 0; number < lanes_.size(); ++number) {
    const Lane& lane = lanes_[number];
    if (lane.finished) continue;
    std::string peers;
    if (waits(lane)) peers = fmt::format(" for lane {}", lane.step.wait_lane);
    for (std::uint32_t i = 0; i < lane.step.receive_count(); ++i)
      peers += " from " + name_of(call_, lane.step.receive_from(i));
    for (std::uint32_t i = 0; i < lane.step.send_count(); ++i) peers += " to " + name_of(call_, lane.step.send_to(i));
    return fmt::format("{} ({}{}) waits", algorithm_->name_step(call_, index_, number, lane.steps),
                       to_text(lane.step.primitive), peers);
  }
  return "nothing";
}

std::vector<CollectiveRun::Awaited> CollectiveRun::awaited_ranks() const {
  std::vector<Awaited> ranks;
  for (std::uint32_t number = 0; number < lanes_.size(); ++number) {
    const Lane& lane = lanes_[number];
    if (lane.finished || !lane.has_step) continue;
    const std::uint32_t channel = number % channels_;
    if (waits(lane)) {
      const std::uint32_t other = lane.step.wait_lane % channels_;
      if (is_aggregator() && other != channel) ranks.push_back({rank(index_, other), other, channel});
      continue;
    }
    for (std::uint32_t i = 0; i < lane.step.receive_count(); ++i) {
      const std::uint32_t source = rank(lane.step.receive_from(i), channel);
      if (executor_.receive_connection(call_.communicator->id(), channel, source).empty())
        ranks.push_back({source, channel, channel});
    }
    for (std::uint32_t i = 0; executor_.credits_limited() && i < lane.step.send_count(); ++i)
      if (const std::uint32_t to = rank(lane.step.send_to(i), channel);
          executor_.send_connection(call_, channel, to).in_flight >= credits(lane.step, lane.step.send_to(i)))
        ranks.push_back({to, channel, channel});
  }
  return ranks;
}

}  // namespace weft
