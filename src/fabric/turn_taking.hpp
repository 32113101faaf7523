// SPDX-License-Identifier: GPL-2.0-only
// A port at which messages of several flows share the rate equally, without counting packets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace weft {

/// Generalised processor sharing with equal weights (Parekh and Gallager, "A generalized processor sharing approach to
/// flow control", IEEE/ACM ToN 1(3), 1993, doi:10.1109/90.234856): the fluid limit of a NIC that serves its queue pairs
/// packet by packet in turn. Each flow has at most one message in service. Its virtual time is the service, in ps at
/// the full rate, that every flow in service has had; a message that comes at virtual time v with work w is over at v +
/// w. A flow alone has the whole rate, exactly; among n flows virtual time goes at 1/n, rounded down to ps.
class TurnTaking {
 public:
  struct Turn {
    std::int64_t finish = 0;   ///< virtual time
    std::uint64_t number = 0;  ///< orders messages that are over at the same time
    std::uint32_t flow = 0;
    bool operator>(const Turn& other) const {
      return finish != other.finish ? finish > other.finish : number > other.number;
    }
  };

  bool empty() const { return turns_.empty(); }
  std::size_t size() const { return turns_.size(); }
  /// A message with so much work, in ps at the full rate, is served from `now` on. Times never decrease.
  void begin(std::int64_t now, std::int64_t work, std::uint64_t number, std::uint32_t flow) {
    catch_up(now);
    turns_.push_back({served_ + work, number, flow});
    std::push_heap(turns_.begin(), turns_.end(), std::greater<>());
  }
  /// When the next message is over if no other one begins. Requires !empty().
  std::int64_t next_end() const {
    return updated_ + (turns_.front().finish - served_) * static_cast<std::int64_t>(turns_.size());
  }
  /// Takes a message out that is over by `now`; false if there is none.
  bool take(std::int64_t now, Turn& turn) {
    catch_up(now);
    if (turns_.empty() || turns_.front().finish > served_) return false;
    turn = turns_.front();
    std::pop_heap(turns_.begin(), turns_.end(), std::greater<>());
    turns_.pop_back();
    return true;
  }
  std::size_t memory_bytes() const { return turns_.capacity() * sizeof(Turn); }

 private:
  void catch_up(std::int64_t now) {
    if (!turns_.empty()) served_ += (now - updated_) / static_cast<std::int64_t>(turns_.size());
    updated_ = now;
  }

  std::int64_t updated_ = 0;
  std::int64_t served_ = 0;
  std::vector<Turn> turns_;  // binary heap, the first to be over in front
};

}  // namespace weft
