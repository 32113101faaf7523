// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/collective/collective_cost.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/basics/contract.hpp"
#include "support/basics/random.hpp"

namespace weft {
namespace {

struct Lane {
  std::unique_ptr<StepStream> stream;
  Step step;
  bool active = false;
  bool ended = false;
  bool handling = false;
  Bytes done;
  std::uint64_t marks = 0;
  std::uint64_t depth = 0;       ///< messages before the lane's current step
  std::uint64_t mark_depth = 0;  ///< at its last mark
};

/// Numbers in the order in which they came, of many queues whose entries lie together.
class DepthQueues {
 public:
  struct Queue {
    std::uint32_t first = none;
    std::uint32_t last = none;
    bool empty() const { return first == none; }
  };
  std::uint64_t front(const Queue& queue) const { return entries_[queue.first].depth; }
  void push(Queue& queue, std::uint64_t depth) {
    std::uint32_t place = free_;
    if (place == none) {
      place = static_cast<std::uint32_t>(entries_.size());
      entries_.emplace_back();
    } else {
      free_ = entries_[place].next;
    }
    entries_[place] = {depth, none};
    (queue.empty() ? queue.first : entries_[queue.last].next) = place;
    queue.last = place;
  }
  void pop(Queue& queue) {
    const std::uint32_t place = std::exchange(queue.first, entries_[queue.first].next);
    entries_[place].next = std::exchange(free_, place);
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffU;
  struct Entry {
    std::uint64_t depth = 0;
    std::uint32_t next = none;
  };
  std::vector<Entry> entries_;
  std::uint32_t free_ = none;
};

struct Connection {
  DepthQueues::Queue arrived;  ///< depths of messages that have not been received
  std::uint32_t in_flight = 0;
};

struct MixedHash {
  std::size_t operator()(std::uint64_t key) const { return mix64(key); }
};

struct Event {
  Time at;
  std::uint64_t number = 0;  ///< in order of making: ties are broken by it
  enum class Kind { wake, head, tail, handled } kind = Kind::wake;
  std::uint32_t rank = 0;
  std::uint32_t lane = 0;
  ModelMessage message;
  std::uint64_t depth = 0;
};

/// Connections by sender, receiver and channel: in a table if it is small.
class Connections {
 public:
  Connections(std::uint32_t members, std::uint32_t channels) : members_(members), channels_(channels) {
    constexpr std::uint64_t most = 1U << 22;
    const std::uint64_t count = std::uint64_t{members} * members * channels;
    if (count <= most) table_.resize(count);
  }
  Connection& at(std::uint32_t from, std::uint32_t to, std::uint32_t channel) {
    // Those of a receiver lie together: it looks at all of them.
    const std::uint64_t key = (std::uint64_t{to} * members_ + from) * channels_ + channel;
    return table_.empty() ? map_[key] : table_[key];
  }

 private:
  std::uint32_t members_;
  std::uint32_t channels_;
  std::vector<Connection> table_;
  std::unordered_map<std::uint64_t, Connection, MixedHash> map_;
};

/// Events in the order of their times and numbers. Those of one source are added in this order, and of each source only
/// the first is compared with others: hundreds of thousands of messages may wait for one NIC.
class EventOrder {
 public:
  explicit EventOrder(std::uint32_t sources) : sources_(sources) {}
  bool empty() const { return first_.empty(); }
  Time next() const { return first_.top().at; }
  /// Without an order among the others.
  void add(const Event& event) {
    std::uint32_t place = static_cast<std::uint32_t>(alone_.size());
    if (free_.empty()) {
      alone_.push_back(event);
    } else {
      place = free_.back();
      free_.pop_back();
      alone_[place] = event;
    }
    first_.push({event.at, event.number, sources_.size() + place});
  }
  void add(std::uint32_t source, const Event& event) {
    std::deque<Event>& waiting = sources_[source];
    waiting.push_back(event);
    if (waiting.size() == 1) first_.push({event.at, event.number, source});
  }
  Event pop() {
    const std::uint64_t source = first_.top().source;
    first_.pop();
    if (source >= sources_.size()) {
      const auto place = static_cast<std::uint32_t>(source - sources_.size());
      free_.push_back(place);
      return alone_[place];
    }
    std::deque<Event>& waiting = sources_[source];
    const Event event = waiting.front();
    waiting.pop_front();
    if (!waiting.empty()) first_.push({waiting.front().at, waiting.front().number, source});
    return event;
  }

 private:
  struct First {
    Time at;
    std::uint64_t number;
    std::uint64_t source;
    friend bool operator<(const First& a, const First& b) {  // the earliest first
      return std::tie(b.at, b.number) < std::tie(a.at, a.number);
    }
  };
  std::priority_queue<First> first_;
  std::vector<std::deque<Event>> sources_;
  std::vector<Event> alone_;
  std::vector<std::uint32_t> free_;
};

class Model {
 public:
  Model(const CollectiveAlgorithm& algorithm, const CollectiveCall& call, Time latency, Bandwidth rate,
        const std::function<void(const ModelMessage&)>& on_message)
      : call_(call),
        latency_(latency),
        rate_(rate),
        on_message_(on_message),
        ranks_(call.communicator->size()),
        members_(ranks_ + algorithm.aggregators(call)),
        channels_(algorithm.channels(call)),
        lanes_(algorithm.lanes(call)),
        credits_(algorithm.credits(call)),
        send_free_(members_),
        receive_free_(members_),
        connections_(members_, channels_),
        events_(2 * members_) {
    all_.resize(std::size_t{members_} * lanes_);
    cost_.sent.resize(ranks_);
    for (std::uint32_t rank = 0; rank < members_; ++rank) {
      for (std::uint32_t number = 0; number < lanes_; ++number)
        lane(rank, number).stream = algorithm.steps(call, rank, number);
      add({call.tuning.launch, 0, Event::Kind::wake, rank, 0, {}, 0});
    }
  }

  CollectiveCost run(Time limit) {
    while (!events_.empty()) {
      if (events_.next() > limit) break;
      const Event event = events_.pop();
      now_ = event.at;
      handle(event);
    }
    cost_.finished = std::all_of(all_.begin(), all_.end(), [](const Lane& one) { return one.ended; });
    return std::move(cost_);
  }

 private:
  Lane& lane(std::uint32_t rank, std::uint32_t number) { return all_[std::size_t{rank} * lanes_ + number]; }
  Connection& connection(std::uint32_t from, std::uint32_t to, std::uint32_t channel) {
    return connections_.at(from, to, channel);
  }
  void add(Event event) {
    event.number = number_++;
    events_.add(event);
  }
  /// After those before it from the same source: what a rank sends (the source is its number), or receives.
  void add_in_order(std::uint32_t source, Event event) {
    event.number = number_++;
    events_.add(source, event);
  }

  void handle(const Event& event) {
    const ModelMessage& message = event.message;
    switch (event.kind) {
      case Event::Kind::wake:
        return wake(event.rank);
      case Event::Kind::handled:
        lane(event.rank, event.lane).handling = false;
        move(event.rank, event.lane);
        return wake(event.rank);
      case Event::Kind::head: {
        Event tail = event;
        tail.kind = Event::Kind::tail;
        tail.at = std::max(now_, receive_free_[message.receiver]) + wire_time(message.bytes);
        if (message.receiver >= ranks_) return add(tail);  // any number at a time
        receive_free_[message.receiver] = tail.at;
        return add_in_order(members_ + message.receiver, tail);
      }
      case Event::Kind::tail: {
        ModelMessage ended = message;
        ended.end = now_;
        if (on_message_) on_message_(ended);
        depths_.push(connection(message.sender, message.receiver, message.channel).arrived, event.depth);
        return wake(message.receiver);
      }
    }
  }

  Time wire_time(Bytes bytes) const {
    return rate_.bps() > 0 ? serialization_time(wire_bytes(call_.tuning.protocol, bytes), rate_) : Time();
  }

  /// Runs all lanes of a rank as far as possible; lanes may wait for each other.
  void wake(std::uint32_t rank) {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::uint32_t number = 0; number < lanes_; ++number)
        while (advance(rank, number)) progress = true;
    }
  }

  bool advance(std::uint32_t rank, std::uint32_t number) {
    Lane& one = lane(rank, number);
    if (one.ended || one.handling) return false;
    if (!one.active) {
      one.active = one.stream->next(one.step);
      one.done = Bytes(0);
      if (!one.active) {
        one.ended = true;
        one.stream.reset();
        cost_.time = std::max(cost_.time, now_);
      }
      return one.active;
    }
    const Step& step = one.step;
    if (step.wait_lane != no_lane) {
      const Lane& other = lane(rank, step.wait_lane);
      if (other.marks < step.wait_marks) return false;
      one.depth = std::max(one.depth, other.mark_depth);
    }
    for (std::uint32_t i = 0; i < step.receive_count(); ++i)
      if (connection(step.receive_from(i), rank, number % channels_).arrived.empty()) return false;
    for (std::uint32_t i = 0; i < step.send_count(); ++i)
      if (connection(rank, step.send_to(i), number % channels_).in_flight >= credits_) return false;
    const Time duration = rank < ranks_ ? handling_time(one) : Time();
    if (duration > Time()) {
      one.handling = true;
      add({now_ + duration, 0, Event::Kind::handled, rank, number, {}, 0});
      return false;
    }
    move(rank, number);
    return true;
  }

  Time handling_time(const Lane& one) const {
    if (one.step.primitive == Primitive::nop || one.step.instant) return Time();
    const Bandwidth rate = reduces(one.step.primitive) ? call_.tuning.reduce_rate : call_.tuning.copy_rate;
    return call_.tuning.step_latency + (rate.bps() > 0 ? serialization_time(slice_of(one), rate) : Time());
  }
  static Bytes slice_of(const Lane& one) { return std::min(one.step.slice, one.step.bytes - one.done); }

  /// One slice, for which all is there.
  void move(std::uint32_t rank, std::uint32_t number) {
    Lane& one = lane(rank, number);
    const Step& step = one.step;
    const Bytes slice = slice_of(one);
    const std::uint32_t channel = number % channels_;
    for (std::uint32_t i = 0; i < step.receive_count(); ++i) {
      Connection& from = connection(step.receive_from(i), rank, channel);
      one.depth = std::max(one.depth, depths_.front(from.arrived));
      depths_.pop(from.arrived);
      --from.in_flight;
      add({now_, 0, Event::Kind::wake, step.receive_from(i), 0, {}, 0});
    }
    for (std::uint32_t i = 0; i < step.send_count(); ++i) {
      const std::uint32_t peer = step.send_to(i);
      ++connection(rank, peer, channel).in_flight;
      const Time start = std::max(now_, send_free_[rank]);
      if (rank < ranks_) {
        send_free_[rank] = start + wire_time(slice);
        cost_.sent[rank] += slice;
      }
      cost_.rounds = std::max(cost_.rounds, one.depth + 1);
      ++cost_.messages;
      const ModelMessage message{rank, peer, channel, slice, start, Time()};
      add_in_order(rank, {start + latency_, 0, Event::Kind::head, rank, 0, message, one.depth + 1});
    }
    one.done += slice;
    if (one.done < step.bytes) return;
    one.active = false;
    if (!step.mark) return;
    ++one.marks;
    one.mark_depth = one.depth;
  }

  const CollectiveCall& call_;
  Time latency_;
  Bandwidth rate_;
  const std::function<void(const ModelMessage&)>& on_message_;
  std::uint32_t ranks_;
  std::uint32_t members_;  ///< ranks, and aggregators behind them
  std::uint32_t channels_;
  std::uint32_t lanes_;
  std::uint32_t credits_;
  std::vector<Time> send_free_;
  std::vector<Time> receive_free_;
  std::vector<Lane> all_;
  Connections connections_;
  DepthQueues depths_;
  EventOrder events_;
  std::uint64_t number_ = 0;
  Time now_;
  CollectiveCost cost_;
};

}  // namespace

CollectiveCost model_cost(const CollectiveAlgorithm& algorithm, const CollectiveCall& call, Time latency,
                          Bandwidth rate, const std::function<void(const ModelMessage&)>& on_message, Time limit) {
  WEFT_EXPECT(call.communicator->size() > 0, "a communicator of no ranks");
  WEFT_EXPECT(call.tuning.channels > 0, "{} without channels", call.algorithm);
  return Model(algorithm, call, latency, rate, on_message).run(limit);
}

}  // namespace weft
