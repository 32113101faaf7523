// SPDX-License-Identifier: GPL-2.0-only
// One rank's execution of one collective: every lane walks its stream of steps, slice by slice.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/books/open_waits.hpp"
#include "runtime/execution/connection.hpp"
#include "schedule/collective/collective.hpp"
#include "support/basics/time_parts.hpp"
#include "units/time.hpp"

namespace weft {

class RankExecutor;

/// NCCL's primitives (src/device/prims_simple.h): a step waits for its slice to arrive from each peer and for a free
/// slot on each sending connection, handles the slice for as long as the tuning says (not at all by default), then
/// forwards it and frees its slots.
class CollectiveRun {
 public:
  /// `operation` names the run to the executor.
  CollectiveRun(const CollectiveCall& call, std::uint32_t index, std::uint64_t operation, RankExecutor& executor);
  /// Walk the lanes of `channel`, and those that wait for them, as far as they go. True when all are at their end.
  bool advance(Time now, std::uint32_t channel);
  /// The time is over that the current slice of `lane` takes, or, of a lane with `posts_bit`, the latency of its oldest
  /// message.
  bool on_timer(Time now, std::uint32_t lane);
  static constexpr std::uint32_t posts_bit = 0x80000000U;
  std::uint32_t channels() const { return channels_; }
  std::uint64_t messages() const { return messages_; }
  /// Slices that had all they waited for: an event after which there are no more is not what the run waited for.
  std::uint64_t moves() const { return moves_; }
  Bytes bytes() const { return bytes_; }
  const CollectiveCall& call() const { return call_; }
  void begin_at(Time begin) { settled_ = begin; }
  /// Until now it was being launched.
  void launched_at(Time now) {
    launched_ = now;
    parts_[TimePart::launch] += (now - std::exchange(settled_, now)).ps();
    for (Lane& lane : lanes_) lane.since = now;
  }
  /// Lanes that are not at their end, and those of them that handle slices, or post the last ones.
  std::uint32_t open_lanes() const { return unfinished_; }
  std::uint32_t busy_lanes() const { return busy_; }
  /// To be called before each change: what lanes have handled counts until now, and waits go on (OpenWaits).
  void settle(Time now) {
    open_.pass((now - std::exchange(settled_, now)).ps());
    open_.settle(parts_, busy_, unfinished_);
  }
  /// ps for which lanes of `channel` have waited, the longest of them.
  std::int64_t wait(Time now, std::uint32_t channel) const;
  /// What explain_wait() adds if the wait of `wait` ps has ended because of `why` (runtime/books/explanation.hpp).
  /// advance() tells peers how late this rank was, so that it needs this before.
  template <class Why>
  const TimeParts& expect(const Why& why, std::int64_t wait) {
    return expected_ = parts_of_wait(why, wait, open_.open());
  }
  /// What was expected has come: the wait has ended.
  void explain_wait() {
    parts_ += std::exchange(expected_, {});
    open_.take();
  }
  void forget_expected() { expected_ = {}; }
  /// All lanes are at their end: what they waited for last were other lanes.
  void explain_rest() { parts_[TimePart::handling] += open_.take(); }
  /// Of all the time that was explained.
  const TimeParts& parts() const { return parts_; }
  /// The reason why the first unfinished lane waits.
  std::string waiting() const;
  struct Awaited {
    std::uint32_t rank = 0;
    std::uint32_t channel = 0;     ///< of that rank
    std::uint32_t in_channel = 0;  ///< the one that waits
  };
  /// Ranks for which it waits: for data, or for a free slot. An aggregator also waits for itself: a channel of it
  /// sends on what another one has reduced.
  std::vector<Awaited> awaited_ranks() const;

 private:
  static constexpr Time long_ago = Time::from_ps(std::numeric_limits<std::int64_t>::min() / 2);
  struct Lane {
    std::unique_ptr<StepStream> stream;
    Step step;
    bool has_step = false;
    bool finished = false;
    bool handling = false;  // a slice, until the timer
    // The connections that it has used last; most steps of a lane have the same peers.
    std::uint32_t source = no_slot;
    std::uint32_t destination = no_slot;
    ReceiveConnection* from = nullptr;
    SendConnection* to = nullptr;
    struct Post {
      Time due;
      Time handled;
      SendConnection* to;
      Bytes bytes;
      std::uint32_t member;
    };
    std::vector<Post> posts;  // handled, not yet sent; few, in the order of their times
    Bytes done;               // of the step
    Time fetched = long_ago;  // the slice that was received last
    Time handled = long_ago;  // the last slice
    Time since;               // it waits, if it does
    std::uint64_t steps = 0;  // completed
    std::uint64_t marks = 0;
  };
  ReceiveConnection& receiver(std::uint32_t number, Lane& lane, std::uint32_t peer) const;
  SendConnection& sender(std::uint32_t number, Lane& lane, std::uint32_t peer) const;
  bool advance_slice(Time now, std::uint32_t lane);
  bool fetch(Lane& lane);
  bool waits(const Lane& lane) const;
  bool can_move(std::uint32_t number, Lane& lane) const;
  void handle(Time now, std::uint32_t number, Lane& lane);
  void post(Time now, std::uint32_t lane);
  void finish_step(Lane& lane);
  void walk(Time now, std::uint32_t lane);
  Bytes slice_of(const Lane& lane) const;
  Bytes piece_of(const Lane& lane) const;
  std::uint32_t credits(const Step& step, std::uint32_t peer) const;
  Time time_of(const Step& step, Bytes slice) const;
  Time still_fetching(Time now, const Lane& lane) const;
  Time until_paced(Time now, const Lane& lane) const;
  bool over_network(std::uint32_t peer) const;
  bool over_network(const Step& step) const;
  bool begins_at_network(const Step& step) const;
  Time time_of_post(Time now, std::uint32_t peer);
  void post_later(std::uint32_t number, Lane& lane, const Lane::Post& post);
  /// Rank of a member or aggregator. Aggregators have a rank for each channel, by the switch that serves it.
  std::uint32_t rank(std::uint32_t index, std::uint32_t channel) const;
  bool is_aggregator() const { return index_ >= call_.communicator->size(); }

  const CollectiveCall& call_;
  std::uint32_t index_;
  std::uint64_t operation_;
  RankExecutor& executor_;
  std::shared_ptr<const CollectiveAlgorithm> algorithm_;
  std::uint32_t channels_;
  std::uint32_t credits_;
  Bytes passed_on_;  // CollectiveTuning
  std::uint32_t unfinished_;
  bool marked_ = false;  // a lane has a mark more
  std::vector<Lane> lanes_;
  std::uint64_t messages_ = 0;
  std::uint64_t moves_ = 0;
  Bytes bytes_;
  std::uint32_t busy_ = 0;
  Time settled_;
  OpenWaits open_;
  TimeParts parts_;
  TimeParts expected_;
  Time launched_;
};

}  // namespace weft
