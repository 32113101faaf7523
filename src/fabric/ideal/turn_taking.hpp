// SPDX-License-Identifier: GPL-2.0-only
// A port at which messages of several flows share the rate equally, without counting packets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "units/time.hpp"

namespace weft {

/// Packetised processor sharing with equal weights (Parekh and Gallager, "A generalized processor sharing approach to
/// flow control", IEEE/ACM ToN 1(3), 1993, doi:10.1109/90.234856), for messages: the behaviour of a NIC that serves its
/// flows packet by packet in turn. Virtual time is the service, as time at the full rate, that every flow with
/// something to send has had in the fluid system: among n of them it goes at 1/n, rounded down to ps. A message of a
/// flow begins at virtual time S, when the flow's message before ends there or now, and ends at F = S + work. When its
/// last packet is all that is left, at F - last, that packet is sent as soon as those before it are out.
///
/// So a flow alone has the whole rate, exactly, and messages of equal length that begin together end one packet after
/// another.
class TurnTaking {
 public:
  struct Turn {
    Time ready;                ///< virtual time when its last packet is left
    std::uint64_t number = 0;  ///< orders messages that are ready at the same time
    Time last;                 ///< work of that packet
    std::uint32_t flow = 0;
    bool operator>(const Turn& other) const {
      return ready != other.ready ? ready > other.ready : number > other.number;
    }
  };

  /// Flows of this port are numbered from 0.
  std::uint32_t add_flow() {
    ends_of_flows_.push_back(Time());
    return static_cast<std::uint32_t>(ends_of_flows_.size() - 1);
  }
  /// `flow` of this port has a message with so much work, `last` of it in its last packet, from `now` on; the previous
  /// one has been taken. Times never decrease. `name` is returned by take().
  void begin(Time now, std::uint32_t flow, Time work, Time last, std::uint64_t number, std::uint32_t name) {
    catch_up(now);
    Time& end = ends_of_flows_[flow];
    if (ends_.empty() || end <= served_ || time_of(end) <= now) {  // it is not served in the fluid system
      if (!ends_.empty()) served_ += (now - updated_) / static_cast<std::int64_t>(ends_.size());
      updated_ = now;
      end = served_;
      push(ends_, End{end + work, flow});
    }
    end += work;
    push(waiting_, Turn{end - last, number, last, name});
  }
  /// Messages are being served.
  bool busy() const { return !waiting_.empty() || leaves(); }
  /// Time until which no event occurs here if no other message begins. Requires busy().
  Time next_event() const {
    if (leaves()) return leaving_[left_].at;
    const Turn& next = waiting_.front();
    if (!ends_.empty() && ends_.front().at < next.ready) return time_of(ends_.front().at);
    return std::max(time_of(next.ready), last_out_) + next.last;
  }
  /// Removes a message whose last bit has left by `now`; false if there is none.
  bool take(Time now, std::uint32_t& name) {
    catch_up(now);
    if (!leaves() || leaving_[left_].at > now) return false;
    name = leaving_[left_++].name;
    if (!leaves()) {
      leaving_.clear();
      left_ = 0;
    }
    return true;
  }
  std::size_t memory_bytes() const {
    return waiting_.capacity() * sizeof(Turn) + leaving_.capacity() * sizeof(Leaving) + ends_.capacity() * sizeof(End) +
           ends_of_flows_.capacity() * sizeof(Time);
  }

 private:
  struct End {
    Time at;  // virtual
    std::uint32_t flow;
    bool operator>(const End& other) const { return at != other.at ? at > other.at : flow > other.flow; }
  };
  struct Leaving {
    Time at;
    std::uint32_t name;
  };
  bool leaves() const { return left_ < leaving_.size(); }
  template <class Item>
  static void push(std::vector<Item>& heap, const Item& item) {
    heap.push_back(item);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
  template <class Item>
  static Item pop(std::vector<Item>& heap) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const Item item = heap.back();
    heap.pop_back();
    return item;
  }
  Time time_of(Time virtual_time) const {
    return updated_ + (virtual_time - served_) * static_cast<std::int64_t>(ends_.size());
  }
  /// Advances to the last moment until `now` at which a flow was ready or had ended; from there on nothing changes.
  void catch_up(Time now) {
    while (!ends_.empty()) {
      const bool ready = !waiting_.empty() && waiting_.front().ready <= ends_.front().at;
      const Time next = ready ? waiting_.front().ready : ends_.front().at;
      const Time then = time_of(next);
      if (then > now) return;
      updated_ = then;
      served_ = next;
      if (ready)
        send_last(pop(waiting_));
      else
        end_of_flow(pop(ends_));
    }
  }
  void send_last(const Turn& turn) {
    last_out_ = std::max(updated_, last_out_) + turn.last;
    leaving_.push_back({last_out_, turn.flow});
  }
  // It may have begun another message since.
  void end_of_flow(const End& end) {
    if (ends_of_flows_[end.flow] > end.at) push(ends_, End{ends_of_flows_[end.flow], end.flow});
  }

  Time updated_;
  Time served_;                      // virtual time
  Time last_out_;                    // of the last packets that have been given their time
  std::vector<Turn> waiting_;        // heap, the first to be ready in front
  std::vector<End> ends_;            // heap: of the flows that are served in the fluid system
  std::vector<Time> ends_of_flows_;  // virtual
  std::vector<Leaving> leaving_;     // in order
  std::size_t left_ = 0;             // so many of them are gone
};

}  // namespace weft
